// Encodes long lists as query parameters: lists of event identities, with SQL conditions that select them, and lists of
// other items.

import type { EventIdentity } from '#core/events/stored-event.ts'
import { dayMs } from '#core/time.ts'
import { splitIntoLists } from './split-into-lists.ts'

/**
 * The most bytes of JSON in one form field: in Base64, they become 120,000 characters, and the server accepts fields of up
 * to 128 KiB.
 */
const fieldBytesMax = 90_000

export interface IdentityConditions {
  /**
   * SQL conditions that select the identities: the sort key finds the granules, the uuid selects which of their rows to
   * read in full.
   */
  readonly prewhere: string
  readonly where: string
  /** A query that returns the distinct ids of the identities. */
  readonly distinctIds: string
  /** Sent in the body: thousands of identities do not fit a URL. */
  readonly params: Record<string, unknown>
}

export interface EncodedList {
  /** An expression that returns the items as rows. */
  readonly sql: string
  /** Sent in the body: thousands of items do not fit a URL. */
  readonly params: Record<string, string>
}

/**
 * Encodes the items as JSON, which the engine reads as a column (`materialize`). A constant array of tuples would be copied
 * and hashed as a literal at every place that uses it, which would take the engine four times as long. The JSON is in
 * base64, because parameters are escaped and a text with many escapes would not fit into its field.
 * @param type the engine's type of an item. @param items at least one.
 */
export function encodeList(type: string, items: readonly unknown[]): EncodedList {
  const texts = items.map(item => JSON.stringify(item))
  const lists = splitIntoLists(texts, json => Buffer.byteLength(json) + 1, fieldBytesMax)
  const read = lists.map(
    (_, index) => `JSONExtract(base64Decode(materialize({list${index}:String})), 'Array(${type})')`,
  )
  return {
    sql: `arrayJoin(${read.length === 1 ? read[0]! : `arrayConcat(${read.join(', ')})`})`,
    params: Object.fromEntries(
      lists.map((list, index) => [`list${index}`, Buffer.from(`[${list.join(',')}]`).toString('base64')]),
    ),
  }
}

/** @param identities at least one, with storable times. */
export function encodeIdentities(identities: readonly EventIdentity[]): IdentityConditions {
  const { sql, params } = encodeList('Tuple(UInt32, Int32, String, String, UUID)', identities.map(toIdentityTuple))
  const asked = `(SELECT ${sql} AS id)`
  return {
    prewhere: `uuid IN (SELECT id.5 FROM ${asked})`,
    where: `(project_id, toDate32(timestamp), event, distinct_id, uuid)
      IN (SELECT id.1, toDate32(id.2), id.3, id.4, id.5 FROM ${asked})`,
    distinctIds: `SELECT id.4 FROM ${asked}`,
    params,
  }
}

function toIdentityTuple({ projectId, timestampMs, event, distinctId, uuid }: EventIdentity): readonly unknown[] {
  return [projectId, Math.floor(timestampMs / dayMs), event.toWellFormed(), distinctId.toWellFormed(), uuid]
}
