// Turns lists of event identities into query parameters and conditions.

import type { EventIdentity } from '#core/events/stored-event.ts'
import { dayMs } from '#core/time.ts'
import { splitIntoLists } from './field-lists.ts'

/** Base64 turns this into 120,000 characters, and a form field of the server holds 128 KiB. */
const fieldBytesMax = 90_000
const listType = 'Array(Tuple(UInt32, Int32, String, String, UUID))'

export interface AskedIdentities {
  /** Conditions on events: the sort key finds the granules, the uuid selects which of their rows to read in full. */
  readonly prewhere: string
  readonly where: string
  /** A query that returns the distinct ids of the identities. */
  readonly distinctIds: string
  /** Sent with `use_multipart_params`: thousands of identities do not fit a URL. */
  readonly params: Record<string, unknown>
}

/**
 * The identities travel as JSON, which the engine reads as a column (`materialize`). A constant array of tuples would
 * be copied and hashed as a literal at every place that uses it, which would take the engine four times as long. They
 * are in base64, because a parameter is escaped and a text of many escapes would not fit its field.
 * @param identities at least one, with storable times.
 */
export function encodeIdentities(identities: readonly EventIdentity[]): AskedIdentities {
  const lists = splitIntoLists(identities.map(encodeIdentity), json => Buffer.byteLength(json) + 1, fieldBytesMax)
  const read = lists.map((_, index) => `JSONExtract(base64Decode(materialize({ids${index}:String})), '${listType}')`)
  const all = read.length === 1 ? read[0]! : `arrayConcat(${read.join(', ')})`
  const asked = `(SELECT arrayJoin(${all}) AS id)`
  return {
    prewhere: `uuid IN (SELECT id.5 FROM ${asked})`,
    where: `(project_id, toDate32(timestamp), event, distinct_id, uuid)
      IN (SELECT id.1, toDate32(id.2), id.3, id.4, id.5 FROM ${asked})`,
    distinctIds: `SELECT id.4 FROM ${asked}`,
    params: Object.fromEntries(lists.map((list, index) => [`ids${index}`, encodeList(list)])),
  }
}

function encodeIdentity({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): string {
  const day = Math.floor(timestampMs / dayMs)
  return JSON.stringify([projectId, day, event.toWellFormed(), distinctId.toWellFormed(), uuid])
}

function encodeList(items: readonly string[]): string {
  return Buffer.from(`[${items.join(',')}]`).toString('base64')
}
