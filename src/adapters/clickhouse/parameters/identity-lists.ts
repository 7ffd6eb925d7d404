// Turns lists of event identities into query parameters and conditions.

import { TupleParam } from '@clickhouse/client'
import type { EventIdentity } from '#core/events/stored-event.ts'
import { utcDay } from '#core/usage.ts'
import { fieldLists } from './field-lists.ts'

/** Characters of an identity in a field, without its texts. */
const charsPerIdentity = 80

/** Splits the identities into lists that each fit a form field. */
export function identityLists(identities: readonly EventIdentity[]): EventIdentity[][] {
  return fieldLists(identities, ({ event, distinctId }) => charsPerIdentity + event.length + distinctId.length)
}

export interface AskedIdentities {
  /** Conditions on events: the sort key finds the granules, the uuid selects which of their rows to read in full. */
  readonly prewhere: string
  readonly where: string
  /** A query that returns the distinct ids of the identities. */
  readonly distinctIds: string
  /** Sent with `use_multipart_params`: thousands of identities do not fit a URL. */
  readonly params: Record<string, unknown>
}

export function askedIdentities(identities: readonly EventIdentity[]): AskedIdentities {
  const lists = identityLists(identities)
  const params = lists.map((_, index) => `{ids${index}:Array(Tuple(UInt32, Date32, String, String, UUID))}`)
  const asked = `(SELECT arrayJoin(arrayConcat(${params.join(', ')})) AS id)`
  return {
    prewhere: `uuid IN (SELECT id.5 FROM ${asked})`,
    where: `(project_id, toDate32(timestamp), event, distinct_id, uuid)
      IN (SELECT id.1, id.2, id.3, id.4, id.5 FROM ${asked})`,
    distinctIds: `SELECT id.4 FROM ${asked}`,
    params: Object.fromEntries(lists.map((list, index) => [`ids${index}`, list.map(tupleOf)])),
  }
}

function tupleOf({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): TupleParam {
  return new TupleParam([projectId, utcDay(timestampMs), event, distinctId, uuid])
}
