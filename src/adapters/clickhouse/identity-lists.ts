// Lists of event identities as parameters of a query: a form field of the server holds 128 KiB, so there are several.

import { TupleParam } from '@clickhouse/client'
import type { EventIdentity } from '#core/events/stored-event.ts'

/** A unit of UTF-16 is three bytes at most, or two when it is escaped. */
const listCharsMax = 40_000
/** What an identity has beside its texts. */
const charsPerIdentity = 80

/** The identities in lists that fit a form field each. */
export function identityLists(identities: readonly EventIdentity[]): EventIdentity[][] {
  const lists: EventIdentity[][] = []
  let charCount = Number.POSITIVE_INFINITY
  for (const identity of identities) {
    const chars = charsPerIdentity + identity.event.length + identity.distinctId.length
    charCount += chars
    if (charCount > listCharsMax) {
      lists.push([])
      charCount = chars
    }
    lists.at(-1)!.push(identity)
  }
  return lists
}

export interface AskedIdentities {
  /** Conditions of a query on events: the sort key leads to the granules, the uuid says which of their rows to read in full. */
  readonly prewhere: string
  readonly where: string
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
    params: Object.fromEntries(lists.map((list, index) => [`ids${index}`, list.map(tupleOf)])),
  }
}

function tupleOf({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): TupleParam {
  return new TupleParam([projectId, utcDayOf(timestampMs), event, distinctId, uuid])
}

/** `YYYY-MM-DD` */
export function utcDayOf(timestampMs: number): string {
  return new Date(timestampMs).toISOString().slice(0, 10)
}
