// Reads the stored events of persons and groups, which a fold makes persons and groups of. Every copy of an event is read
// (no FINAL), since each was processed. Events are not sorted by distinct id, so each call looks through those of the project.

import type { Lane } from '#core/events/captured-event.ts'
import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import type { PersonMode } from '#core/events/stored-event.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'
import { type EventHistory, foundCharsMax, foundRowsMax } from '#ports/events/event-history.ts'
import { QueryTooLargeError } from '#ports/port-error.ts'
import type { ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { encodeList } from '../parameters/encoded-lists.ts'
import { jobCondition } from './imported-counts.ts'

/** The queries are the worker's own: they wait for no queries of users. */
export function createEventHistory(clients: Pick<ClickHouseClients, 'read'>): EventHistory {
  const ask = <Row>(query: string, params: Record<string, unknown>) =>
    clients.read(async (client, signal) => {
      const result = await client.query({
        query,
        query_params: params,
        use_multipart_params: true,
        format: 'JSONCompactEachRow',
        abort_signal: signal,
      })
      return result.json<Row>()
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
      const rows = await ask<[string, string]>(query, { project, mergeEvents: [...mergeEventNames], ...asked.params })
      requireBounded(rows, ([distinctId, linkedId]) => distinctId.length + linkedId.length)
      return rows.map(([distinctId, linkedId]) => ({ distinctId, linkedId }))
    },

    async readHistory(project, { distinctIds, groups }) {
      const isOfPersons = distinctIds !== undefined
      if ((distinctIds ?? groups).length === 0) return []
      const asked = isOfPersons
        ? encodeList('String', distinctIds)
        : encodeList(
            'Tuple(String, String)',
            groups.map(({ typeName, key }) => [typeName, key]),
          )
      const query = isOfPersons ? personsQuery(asked.sql) : groupsQuery(asked.sql)
      const rows = await ask<[HistoryRow]>(query, { project, ...(isOfPersons ? {} : groupEvents), ...asked.params })
      const found = rows.map(([row]) => toHistoricEvent(row))
      requireBounded(found, each => each.distinctId.length + each.linkedId.length + each.changesJson.length)
      return found
    },
  }
}

const groupEvents = { groupEvents: [...groupEventNames] }

function requireBounded<Row>(rows: readonly Row[], charsOf: (row: Row) => number): void {
  let charCount = 0
  for (const row of rows) charCount += charsOf(row)
  if (rows.length > foundRowsMax || charCount > foundCharsMax)
    throw new QueryTooLargeError('event-store', 'full', new Error('too many events for one reading'))
}

/** Of the rows that write and link nothing, the first one and the one with the earliest time stand for all of a kind. */
function personsQuery(asked: string): string {
  const rows = rowsSql(
    ['$set', '$set_once', '$unset'],
    `PREWHERE project_id = {project:UInt32} AND distinct_id IN (SELECT ${asked})`,
  )
  return `SELECT arrayJoin(arrayDistinct([first, earliest])) AS row FROM (
      SELECT argMin(fields, place) AS first, if(alone = 0, argMinIf(fields, (sent_at, place), alone = 0), first) AS earliest,
        if(changes = '{}' AND linked_id = '', 0, cityHash64(uuid, event, timestamp, place)) AS alone
      FROM (${rows})
      GROUP BY distinct_id, import_job_id, import_partition, historical_migration, person_mode, lane = 'ai', alone
    ) LIMIT ${foundRowsMax + 1}`
}

function groupsQuery(asked: string): string {
  const rows = rowsSql(
    ['$group_type', '$group_key', '$group_set', '$group_unset'],
    `PREWHERE project_id = {project:UInt32} AND event IN {groupEvents:Array(String)}
      WHERE (${typeNameSql}, ${groupKeySql}) IN (SELECT ${asked})`,
  )
  return `SELECT fields FROM (${rows}) LIMIT ${foundRowsMax + 1}`
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
  changesJson: string,
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
    changesJson: row[13],
  }
}

function rowsSql(keys: readonly string[], where: string): string {
  return `SELECT distinct_id, import_job_id, import_partition, historical_migration, person_mode, lane, uuid, event, timestamp,
      linked_id, (created_at, log_stream, log_offset) AS place, ${changesSql(keys)} AS changes,
      toUnixTimestamp64Milli(timestamp) + sent_later_ms AS sent_at,
      (toString(uuid), event, distinct_id, linked_id, lane, person_mode, historical_migration, import_job_id,
        import_partition > 1, log_stream, log_offset, sent_at, toUnixTimestamp64Milli(created_at), changes) AS fields
    FROM events ${where}`
}

/**
 * Those of the properties with these keys, as JSON text. The engine writes its own text for what it has parsed, so that is
 * used only where it equals the client's. In any other case (a key that occurs twice or within a value or has an escape,
 * numbers like 1.0, spaces), it is the text of all properties.
 */
function changesSql(keys: readonly string[]): string {
  const countOf = (key: string) => `countSubstrings(properties, '"${key}"')`
  const rawOf = (key: string) => `JSONExtractRaw(properties, '${key}')`
  const memberOf = (key: string) => `concat('"${key}":', ${rawOf(key)})`
  const members = keys.map(key => `if(${countOf(key)} = 0, '', ${memberOf(key)})`)
  const areSame = keys.map(
    key => `(${countOf(key)} = 0 OR (${countOf(key)} = 1 AND position(properties, ${memberOf(key)}) > 0
      AND substring(${rawOf(key)}, 1, 1) IN ('{', '[', '"')))`,
  )
  return `multiIf(
    multiSearchAny(properties, [${escapedAscii}]), properties,
    NOT multiSearchAny(properties, [${keys.map(key => `'"${key}"'`).join(', ')}]), '{}',
    ${areSame.join(' AND ')},
      concat('{', arrayStringConcat(arrayFilter(text -> text != '', [${members.join(', ')}]), ','), '}'),
    properties)`
}

/** How a letter, or a dollar sign, of a key may be written. */
const escapedAscii = [2, 3, 4, 5, 6, 7].map(digit => `'\\\\u00${digit}'`).join(', ')

const typeNameSql = textPropertySql('$group_type')
const groupKeySql = scalarPropertySql('$group_key')

/** The parser of this engine refuses properties with a number of 30 digits anywhere in them. */
function textPropertySql(key: string): string {
  return `if(isValidJSON(properties), JSONExtractString(properties, '${key}'),
    extract(properties, '"[$]${key.slice(1)}"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`
}

/** Text, or what `textOf` makes of another value. */
function scalarPropertySql(key: string): string {
  return `multiIf(JSONType(properties, '${key}') NOT IN ('String', 'Null'), JSONExtractRaw(properties, '${key}'),
    isValidJSON(properties) OR ${textPropertySql(key)} != '', ${textPropertySql(key)},
    extract(properties, '"[$]${key.slice(1)}"\\\\s*:\\\\s*([0-9]+)'))`
}
