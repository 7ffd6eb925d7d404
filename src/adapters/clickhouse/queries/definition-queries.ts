// Lists the names of a project's events and properties. The names exist only in the stored rows: all event names are read
// by the sort key; property names are read from the newest events, or from some groups. `property-values.ts` lists values.

import type { EventName, PropertyName } from '#core/capture/event-and-property-names.ts'
import type { EventNameField, EventNameQuery, PropertyNameQuery } from '#ports/events/event-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { requireFilledMirrorSql } from './current-persons.ts'

/**
 * The most names that a list has; further names are left out. Otherwise a client that sends a new name with each event
 * could fill the memory.
 */
const namesMax = 100_000

const orderColumns: Readonly<Record<EventNameField, string>> = {
  name: 'event',
  firstCaptured: 'min(captured_at)',
  lastSeen: 'max(timestamp)',
  count: 'count()',
}

/** See `EventQueries.listEventNames`. All copies of an event have the same name, so nothing is deduplicated. */
export async function listEventNames(
  client: ClickHouseClient,
  { projectId, search, order = { by: 'name', isDescending: false }, limit, offset }: EventNameQuery,
  signal: AbortSignal,
): Promise<{ count: number; results: readonly EventName[] }> {
  const isWanted = search === undefined ? '' : 'AND positionCaseInsensitiveUTF8(event, {search:String}) > 0'
  const rows = await readRows<[string, number | string, number | string, number | string]>(client, signal, {
    query: `SELECT event, toUnixTimestamp64Milli(min(captured_at)), toUnixTimestamp64Milli(max(timestamp)),
        count() OVER () FROM events WHERE project_id = {project:UInt32} AND event IN (
        SELECT DISTINCT event FROM events WHERE project_id = {project:UInt32} ${isWanted} LIMIT ${namesMax}
      ) GROUP BY event ORDER BY ${orderColumns[order.by]} ${order.isDescending ? 'DESC' : 'ASC'}, event LIMIT {limit:UInt32} OFFSET {offset:UInt64}`,
    query_params: { project: projectId, limit, offset, ...(search === undefined ? {} : { search }) },
  })
  return {
    count: rows.length === 0 ? 0 : Number(rows[0]![3]),
    results: rows.map(([name, first, last]) => ({ name, firstCapturedAtMs: Number(first), lastSeenMs: Number(last) })),
  }
}

/** How many of the newest events are read, and how long their properties may be: reading them is the main cost. */
const sampledMax = 2_000
const sampledCharsMax = 16_384
const dateTimeForm = '^"\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:?\\d\\d)?)?"$'

/** See `EventQueries.listPropertyNames`. */
export async function listPropertyNames(
  client: ClickHouseClient,
  query: PropertyNameQuery,
  signal: AbortSignal,
): Promise<{ count: number; results: readonly PropertyName[] }> {
  const { projectId, kind, events = [], search, limit, offset } = query
  const conditions = ['1']
  if (search !== undefined) conditions.push('positionCaseInsensitiveUTF8(name, {search:String}) > 0')
  if (query.names !== undefined) conditions.push('name IN {names:Array(String)}')
  if (query.excludedNames !== undefined) conditions.push('name NOT IN {excluded:Array(String)}')
  if (query.leavesOutCore) conditions.push("NOT startsWith(name, '$')")
  if (query.ofFlags !== undefined) conditions.push(`${query.ofFlags ? '' : 'NOT '}startsWith(name, '$feature/')`)
  const rows = await readRows<[string, ...(number | string)[]]>(client, signal, {
    query: `SELECT name, countIf(match(raw, '^-?[0-9]')), countIf(raw IN ('true', 'false')),
        countIf(match(raw, {date_time:String})), countIf(startsWith(raw, '"')), countIf(raw != 'null'),
        countIf(event IN {events:Array(String)}), count() OVER ()
      FROM (
        SELECT event, arrayJoin(JSONExtractKeysAndValuesRaw(text)) AS pair, pair.1 AS name, pair.2 AS raw
        FROM (${sampleSql(query)})
      ) WHERE ${conditions.join(' AND ')}
      GROUP BY name ORDER BY name LIMIT {limit:UInt32} OFFSET {offset:UInt64}`,
    query_params: {
      project: projectId,
      events,
      limit,
      offset,
      date_time: dateTimeForm,
      ...(typeof kind === 'object' && { type: kind.groupTypeIndex }),
      ...(search === undefined ? {} : { search }),
      ...(query.names === undefined ? {} : { names: query.names }),
      ...(query.excludedNames === undefined ? {} : { excluded: query.excludedNames }),
    },
  })
  return {
    count: rows.length === 0 ? 0 : Number(rows[0]![7]),
    results: rows.map(([name, ...counts]) => {
      const [numbers, booleans, dateTimes, texts, values, seen] = counts.map(Number)
      const isOnEveryValue = (count: number | undefined) => values! > 0 && count === values
      const type = isOnEveryValue(numbers)
        ? 'Numeric'
        : isOnEveryValue(booleans)
          ? 'Boolean'
          : isOnEveryValue(dateTimes)
            ? 'DateTime'
            : isOnEveryValue(texts)
              ? 'String'
              : null
      return { name, type, isSeenOnEvents: seen! > 0 }
    }),
  }
}

/** SQL of a query that returns property texts to search as `text`, each with the name of its event as `event`. */
function sampleSql({ kind, events = [], onlyOfEvents }: PropertyNameQuery): string {
  if (typeof kind === 'object')
    return `SELECT '' AS event, properties AS text FROM groups FINAL
      WHERE ${requireFilledMirrorSql()} AND project_id = {project:UInt32} AND group_type_index = {type:UInt8} AND is_deleted = 0
        AND length(properties) <= ${sampledCharsMax} LIMIT ${sampledMax}`
  const column = kind === 'person' ? 'person_properties' : 'properties'
  const onlyThese = onlyOfEvents && events.length > 0 ? 'AND event IN {events:Array(String)}' : ''
  return `SELECT event, ${column} AS text FROM events
    WHERE project_id = {project:UInt32} ${onlyThese} AND length(${column}) <= ${sampledCharsMax}
    ORDER BY project_id DESC, toDate32(timestamp) DESC LIMIT ${sampledMax}`
}
