// Reads the stored events of persons and groups, from which a fold rebuilds these persons and groups. Every copy of an
// event is read (no FINAL), since each was processed. Events are not sorted by distinct id, so each call scans the
// project's events.

import type { Lane } from '#core/events/captured-event.ts'
import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import type { GroupIdentity } from '#core/events/group-identity.ts'
import type { PersonMode } from '#core/events/stored-event.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'
import { type EventHistory, foundCharsMax, foundRowsMax } from '#ports/events/event-history.ts'
import { QueryTooLargeError } from '#ports/port-error.ts'
import type { ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { encodeList } from '../parameters/encoded-lists.ts'
import { jobCondition } from './imported-counts.ts'
import { readRowsInSlices } from './rows-in-slices.ts'

/** These queries are only for the worker and do not wait in the queues of users' queries. */
export function createEventHistoryQueries(clients: Pick<ClickHouseClients, 'read'>): EventHistory {
  const ask = <Row>(query: string, params: Record<string, unknown>, check?: (row: Row) => void) =>
    clients.read(async (client, signal) => {
      const result = await client.query({
        query,
        query_params: params,
        format: 'JSONCompactEachRow',
        abort_signal: signal,
      })
      return readRowsInSlices<Row>(result, check)
    })

  return {
    async listJobIds(project, job, after, limit) {
      const query = `SELECT distinct_id FROM events ${jobCondition} ${after === null ? '' : 'AND distinct_id > {after:String}'}
        GROUP BY distinct_id ORDER BY distinct_id LIMIT {limit:UInt32}`
      const rows = await ask<[string]>(query, { project, job, limit, ...(after !== null && { after }) })
      return rows.map(([id]) => id)
    },

    async listJobGroups(project, job, after, limit) {
      const query = `SELECT ${typeNameSql} AS type, ${groupKeySql} AS key FROM events
        ${jobCondition} AND event IN {groupEvents:Array(String)}
        WHERE type != '' AND key != '' ${after === null ? '' : 'AND (type, key) > ({typeName:String}, {key:String})'}
        GROUP BY type, key ORDER BY type, key LIMIT {limit:UInt32}`
      const rows = await ask<[string, string]>(query, { project, job, limit, ...groupEvents, ...after })
      return rows.map(([typeName, key]) => ({ typeName, key }))
    },

    async findLinks(project, distinctIds) {
      if (distinctIds.length === 0) return []
      const asked = encodeList('String', distinctIds)
      const query = `SELECT DISTINCT distinct_id, linked_id FROM events
        PREWHERE project_id = {project:UInt32} AND event IN {mergeEvents:Array(String)}
        WHERE linked_id != '' AND (distinct_id IN (SELECT ${asked.sql}) OR linked_id IN (SELECT ${asked.sql})) LIMIT ${foundRowsMax + 1}`
      const params = { project, mergeEvents: [...mergeEventNames], ...asked.params }
      const bound = createSizeCheck<[string, string]>(([distinctId, linkedId]) => distinctId.length + linkedId.length)
      const rows = await ask(query, params, bound)
      return rows.map(([distinctId, linkedId]) => ({ distinctId, linkedId }))
    },

    async readHistory(project, subjects) {
      const rows =
        subjects.groups === undefined
          ? readPersonRows(project, subjects.distinctIds)
          : readGroupRows(project, subjects.groups)
      return (await rows).map(toHistoricEvent)
    },
  }

  async function readGroupRows(project: number, groups: readonly GroupIdentity[]): Promise<readonly HistoryRow[]> {
    if (groups.length === 0) return []
    const asked = encodeList(
      'Tuple(String, String)',
      groups.map(({ typeName, key }) => [typeName, key]),
    )
    const keys = ['$group_type', '$group_key', '$group_set', '$group_unset']
    const query = `SELECT ${fieldsSql('linked_id', changesSql(keys))} FROM events
      PREWHERE project_id = {project:UInt32} AND event IN {groupEvents:Array(String)}
      WHERE (${typeNameSql}, ${groupKeySql}) IN (SELECT ${asked.sql}) LIMIT ${foundRowsMax + 1}`
    const params = { project, ...groupEvents, ...asked.params }
    return (
      await ask(
        query,
        params,
        createSizeCheck<[HistoryRow]>(([row]) => countChars(row)),
      )
    ).flat()
  }

  /**
   * Reads the events that change properties or link persons. Of the other events, reads only the first and the earliest of
   * each kind, since no later one can have created the person or made it older. Of events of the same time, an import's
   * event with the smallest uuid is the creator. The events of each kind are found without reading properties.
   */
  async function readPersonRows(project: number, distinctIds: readonly string[]): Promise<readonly HistoryRow[]> {
    if (distinctIds.length === 0) return []
    const asked = encodeList('String', distinctIds)
    const rows = `FROM events PREWHERE project_id = {project:UInt32} AND distinct_id IN (SELECT ${asked.sql})`
    const params = { project, ...asked.params }
    const fields = fieldsSql("''", "'{}'")
    // This query runs first: a row stored between the two queries is then found at least by the second, which reads its
    // changes.
    const ofKinds = await ask(
      `SELECT argMin(${fields}, (created_at, log_stream, log_offset)), argMin(${fields}, (${sentAtSql}, toString(uuid), ${isRestoredSql})) ${rows}
        GROUP BY distinct_id, import_job_id, import_partition, historical_migration, person_mode, lane = 'ai', erasures_before
        LIMIT ${foundRowsMax + 1}`,
      params,
      createSizeCheck<[HistoryRow, HistoryRow]>(([first, earliest]) => countChars(first) + countChars(earliest)),
    )
    const changing = await ask(
      `SELECT ${fieldsSql('linked_id', `${changesSql(['$set', '$set_once', '$unset'])} AS changes`)} ${rows}
        WHERE changes != '{}' OR linked_id != '' LIMIT ${foundRowsMax + 1}`,
      params,
      createSizeCheck<[HistoryRow]>(([row]) => countChars(row)),
    )
    // For a row that both queries have found, the result of the second query counts.
    return [...new Map([...ofKinds.flat(), ...changing.flat()].map(row => [toPlaceKey(row), row])).values()]
  }
}

const groupEvents = { groupEvents: [...groupEventNames] }

/**
 * @returns a check to call with each row of an answer: an answer that is too large is not read to its end, because it would
 * not fit into memory.
 */
function createSizeCheck<Row>(charsOf: (row: Row) => number): (row: Row) => void {
  let rowCount = 0
  let charCount = 0
  return row => {
    rowCount++
    charCount += charsOf(row)
    if (rowCount > foundRowsMax || charCount > foundCharsMax)
      throw new QueryTooLargeError('event-store', 'full', new Error('too many events for one reading'))
  }
}

function countChars(row: HistoryRow): number {
  return row[2].length + row[3].length + row[14].length
}

type HistoryRow = [
  uuid: string,
  event: string,
  distinctId: string,
  linkedId: string,
  lane: Lane,
  personMode: PersonMode,
  historicalMigration: boolean,
  importJobId: number,
  isOfJob: number,
  logStream: string,
  logOffset: number | string,
  timestampMs: number | string,
  storedAtMs: number | string,
  erasuresBefore: number,
  changesJson: string,
  isRestored: number,
]

function toHistoricEvent(row: HistoryRow): HistoricEvent {
  return {
    uuid: row[0],
    event: row[1],
    distinctId: row[2],
    linkedId: row[3],
    lane: row[4],
    personMode: row[5],
    historicalMigration: row[6],
    importJobId: row[7],
    isOfJob: row[8] === 1,
    logStream: row[9],
    logOffset: Number(row[10]),
    timestampMs: Number(row[11]),
    storedAtMs: Number(row[12]),
    erasuresBefore: row[13],
    changesJson: row[14],
    isRestored: row[15] === 1,
  }
}

/** A key that distinguishes a row from all other rows that the queries return. */
function toPlaceKey(row: HistoryRow): string {
  const [uuid, event, distinctId, , , , , importJobId, , logStream, logOffset, , storedAtMs] = row
  return JSON.stringify([uuid, event, distinctId, importJobId, logStream, logOffset, storedAtMs])
}

/** SQL of whether `writeEventRow` gave the row the version of a restored row. */
const isRestoredSql = `row_version < if(import_job_id = 0, ${2n ** 62n}, 1)`

const sentAtSql = 'toUnixTimestamp64Milli(timestamp) + sent_later_ms'

function fieldsSql(linkedId: string, changes: string): string {
  return `(toString(uuid), event, distinct_id, ${linkedId}, lane, person_mode, historical_migration, import_job_id,
    import_partition > 1, log_stream, log_offset, ${sentAtSql}, toUnixTimestamp64Milli(created_at), erasures_before,
    ${changes}, ${isRestoredSql})`
}

/**
 * SQL of the properties with these keys, as JSON text. The engine writes parsed values in its own form, so its text is used
 * only where it equals the client's text. In any other case (a key that has an escape, occurs twice or occurs within a
 * value; numbers like 1.0; spaces), the result is the text of all properties.
 */
function changesSql(keys: readonly string[]): string {
  const keyCountSql = (key: string) => `countSubstrings(properties, '"${key}"')`
  const rawValueSql = (key: string) => `JSONExtractRaw(properties, '${key}')`
  const memberSql = (key: string) => `concat('"${key}":', ${rawValueSql(key)})`
  const members = keys.map(key => `if(${keyCountSql(key)} = 0, '', ${memberSql(key)})`)
  const areSame = keys.map(
    key => `(${keyCountSql(key)} = 0 OR (${keyCountSql(key)} = 1 AND position(properties, ${memberSql(key)}) > 0
      AND substring(${rawValueSql(key)}, 1, 1) IN ('{', '[', '"')))`,
  )
  return `multiIf(
    multiSearchAny(properties, [${escapedAscii}]), properties,
    NOT multiSearchAny(properties, [${keys.map(key => `'"${key}"'`).join(', ')}]), '{}',
    ${areSame.join(' AND ')},
      concat('{', arrayStringConcat(arrayFilter(text -> text != '', [${members.join(', ')}]), ','), '}'),
    properties)`
}

/** The beginnings of the JSON escapes with which the letters and the dollar sign of a key can be written. */
const escapedAscii = [2, 3, 4, 5, 6, 7].map(digit => `'\\\\u00${digit}'`).join(', ')

const typeNameSql = textPropertySql('$group_type')
const groupKeySql = scalarPropertySql('$group_key')

/**
 * SQL of a property's text. Uses a regular expression for properties that this engine's parser refuses (numbers of 30
 * digits).
 */
function textPropertySql(key: string): string {
  return `if(isValidJSON(properties), JSONExtractString(properties, '${key}'),
    extract(properties, '"[$]${key.slice(1)}"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`
}

/** SQL of a property's text, or of what `toComparableText` makes of another value. */
function scalarPropertySql(key: string): string {
  return `multiIf(JSONType(properties, '${key}') NOT IN ('String', 'Null'), JSONExtractRaw(properties, '${key}'),
    isValidJSON(properties) OR ${textPropertySql(key)} != '', ${textPropertySql(key)},
    extract(properties, '"[$]${key.slice(1)}"\\\\s*:\\\\s*([0-9]+)'))`
}
