// Lists single events. Each identity appears once (`FINAL`), person ids are current, and a caller's values are always query
// parameters, never SQL. Three steps keep it cheap: find the page by narrow columns, shorten it by the sizes of its rows,
// and read only the remaining rows in full.

import { TupleParam } from '@clickhouse/client'
import { buildIdentityKey, type EventIdentity } from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { EventCursor, EventQuery, EventScope, EventView } from '#ports/events/event-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { encodeIdentities, type IdentityConditions } from '../parameters/encoded-lists.ts'
import { eventsWithPersonsSql } from './current-persons.ts'
import { buildEventFilter, type EventFilter, tieBreak } from './event-filter.ts'
import { type SelectedEventRow, storedColumns, toEventView, viewColumns } from './event-rows.ts'
import { buildVisibleEventSources, type EventSources } from './event-sources.ts'
import { readRowsInSlices } from './rows-in-slices.ts'

export interface EventPage {
  readonly events: readonly EventView[]
  readonly next: EventCursor | null
}

/**
 * SQL of the columns that identify an event within its project: those of the sort key without the project, in the same
 * order.
 */
const identity = 'toDate32(timestamp), event, distinct_id, uuid'

/**
 * The most bytes of texts on one page; only a single first event may exceed this. A thousand usual events stay below it.
 */
const pageBytesMax = 4 * 1024 * 1024

/** One page; see `EventQueries.listEvents`. */
export async function listEvents(client: ClickHouseClient, query: EventQuery, signal: AbortSignal): Promise<EventPage> {
  const filter = buildEventFilter(query)
  if (filter === null) return { events: [], next: null }
  const seen = buildVisibleEventSources(query)
  const order = query.descending ? 'DESC' : 'ASC'
  const places: Place[] = []
  for await (const days of listDayWindows(client, seen, filter, order, signal)) {
    const bounds = 'toDate32(timestamp) BETWEEN {first_day:Date32} AND {last_day:Date32}'
    const params = { ...filter.params, ...days, rows: query.limit + 1 - places.length }
    const conditions = [...filter.conditions, bounds]
    places.push(...(await findPlaces(client, seen, query.projectId, { ...filter, conditions, params, order }, signal)))
    if (places.length > query.limit) break
  }
  const page = await selectFittingPlaces(client, seen, places.slice(0, query.limit), signal)
  const events = await readEvents(client, seen, query.projectId, page, signal)
  const last = page.at(-1)
  return { events, next: places.length > page.length && last !== undefined ? toCursor(last) : null }
}

/** An event of a page, by its narrow columns. */
interface Place extends EventIdentity {
  readonly tieBreak: string
}

async function findPlaces(
  client: ClickHouseClient,
  seen: EventSources,
  projectId: number,
  filter: Omit<EventFilter, 'keyConditions'> & { readonly order: 'ASC' | 'DESC' },
  signal: AbortSignal,
): Promise<Place[]> {
  const { personId, params, order } = filter
  const conditions = `WHERE ${filter.conditions.join(' AND ')}`
  const columns = 'timestamp, event, distinct_id, uuid'
  // Overrides of persons are joined only if the list is filtered by person.
  const events =
    personId === undefined
      ? `${seen.once} ${conditions}`
      : `(${eventsWithPersonsSql(columns, conditions, undefined, seen)}) WHERE person = {person:UUID}`
  const rows = await readRows<[time: number | string, event: string, id: string, uuid: string, tie: string]>(
    client,
    signal,
    {
      query: `SELECT toUnixTimestamp64Milli(timestamp), event, distinct_id, toString(uuid), toString(${tieBreak})
      FROM ${events}
      ORDER BY timestamp ${order}, uuid ${order}, ${tieBreak} ${order} LIMIT {rows:UInt32}`,
      query_params: { ...params, person: personId },
    },
  )
  return rows.map(([time, event, distinctId, uuid, tie]) => ({
    ...{ projectId, timestampMs: Number(time), event, distinctId, uuid, tieBreak: tie },
  }))
}

/**
 * Returns as many of the places as fit on a page, at least one. Reads only the lengths of texts, of every copy, and does
 * not use FINAL, which would first gather the texts of a whole block.
 */
async function selectFittingPlaces(
  client: ClickHouseClient,
  seen: EventSources,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<readonly Place[]> {
  if (places.length <= 1) return places
  const { prewhere, where, params } = encodePlaces(places, seen)
  const rows = await readRows<[day: number, event: string, id: string, uuid: string, bytes: number | string]>(
    client,
    signal,
    {
      query: `SELECT toInt32(toDate32(timestamp)) AS day, event, distinct_id, toString(uuid),
        max(length(properties) + 2 * length(person_properties) + 3 * length(elements_chain))
      FROM ${seen.copies} ${seen.where(prewhere, where)} GROUP BY day, event, distinct_id, uuid`,
      query_params: params,
    },
  )
  const { projectId } = places[0]!
  const bytesOf = new Map(
    rows.map(([day, event, distinctId, uuid, bytes]) => [
      buildIdentityKey({ projectId, timestampMs: day * dayMs, event, distinctId, uuid }),
      Number(bytes),
    ]),
  )
  let bytes = 0
  const end = places.findIndex((place, index) => {
    bytes += bytesOf.get(buildIdentityKey(place)) ?? 0
    return bytes > pageBytesMax && index > 0
  })
  return end === -1 ? places : places.slice(0, end)
}

/** Reads the events at these places, in the order of the places. */
async function readEvents(
  client: ClickHouseClient,
  seen: EventSources,
  projectId: number,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<readonly EventView[]> {
  if (places.length === 0) return []
  const { prewhere, where, distinctIds, params } = encodePlaces(places, seen)
  const events = eventsWithPersonsSql(storedColumns, seen.where(prewhere, where), distinctIds, seen)
  const result = await client.query({
    query: `SELECT ${viewColumns} FROM (${events})`,
    query_params: { ...params, project: projectId },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const views = (await readRowsInSlices<SelectedEventRow>(result)).map(toEventView)
  const viewOf = new Map(views.map(view => [buildIdentityKey(view), view]))
  return places.flatMap(place => viewOf.get(buildIdentityKey(place)) ?? [])
}

/** Longer texts, which no captured event has, are not sent as parameters: uuid and `tieBreak` identify such events. */
const askedTextCharsMax = 1_000

function encodePlaces(places: readonly Place[], seen: EventSources): IdentityConditions {
  const isShort = ({ event, distinctId }: Place) => Math.max(event.length, distinctId.length) <= askedTextCharsMax
  const short = places.filter(isShort)
  if (short.length === places.length) return encodeIdentities(short)
  const asked = '(SELECT arrayJoin({places:Array(Tuple(Date32, UUID, UInt64))}) AS place)'
  const prewhere = `uuid IN (SELECT place.2 FROM ${asked})`
  const where = `(toDate32(timestamp), uuid, ${tieBreak}) IN (SELECT place.1, place.2, place.3 FROM ${asked})
    AND project_id = {project:UInt32}`
  const long = {
    prewhere,
    where,
    distinctIds: `SELECT distinct_id FROM ${seen.copies} ${seen.where(prewhere, where)}`,
    params: {
      project: places[0]!.projectId,
      places: places
        .filter(place => !isShort(place))
        .map(place => new TupleParam([utcDay(place.timestampMs), place.uuid, BigInt(place.tieBreak)])),
    },
  }
  if (short.length === 0) return long
  const usual = encodeIdentities(short)
  return {
    prewhere: `(${usual.prewhere} OR ${long.prewhere})`,
    where: `(${usual.where} OR ${long.where})`,
    distinctIds: `${usual.distinctIds} UNION ALL ${long.distinctIds}`,
    params: { ...usual.params, ...long.params },
  }
}

function toCursor({ timestampMs, uuid, tieBreak: tie }: Place): EventCursor {
  return { timestampMs, uuid, tieBreak: tie }
}

/** The least number of rows in a list's first window of days, and the factor by which each next window is larger. */
const windowRowCountFirst = 200_000
const windowGrowth = 4

/**
 * Yields the days that may have matching events, in the order of the list, in ever larger windows: deduplication takes time
 * per row, and the first days nearly always fill a page. Only the sort key is read to find the days and their row counts,
 * copies included.
 */
async function* listDayWindows(
  client: ClickHouseClient,
  seen: EventSources,
  filter: EventFilter,
  order: 'ASC' | 'DESC',
  signal: AbortSignal,
): AsyncGenerator<{ first_day: string; last_day: string }> {
  const days = await readRows<[day: string, rowCount: number | string]>(client, signal, {
    query: `SELECT toString(toDate32(timestamp)) AS day, count() FROM ${seen.copies}
      WHERE ${filter.keyConditions.join(' AND ')} GROUP BY day ORDER BY day ${order}`,
    query_params: filter.params,
  })
  let rowCountMin = windowRowCountFirst
  let rowCount = 0
  let start = 0
  for (const [index, [day, dayRowCount]] of days.entries()) {
    rowCount += Number(dayRowCount)
    if (rowCount < rowCountMin && index < days.length - 1) continue
    const edge = days[start]![0]
    yield order === 'ASC' ? { first_day: edge, last_day: day } : { first_day: day, last_day: edge }
    start = index + 1
    rowCount = 0
    rowCountMin *= windowGrowth
  }
}

/** Finds the event with this uuid, the latest if several have it (on another day, or with another name or distinct id). */
export async function findEvent(
  client: ClickHouseClient,
  scope: EventScope,
  uuid: string,
  signal: AbortSignal,
): Promise<EventView | null> {
  if (!isUuid(uuid)) return null
  const { projectId } = scope
  const seen = buildVisibleEventSources(scope)
  // Without FINAL, the inner query reads only one column; that suffices, since every copy has the same identity.
  const conditions = [
    'project_id = {project:UInt32}',
    `(${identity}) IN (
      SELECT DISTINCT ${identity} FROM ${seen.copies} WHERE project_id = {project:UInt32} AND uuid = {uuid:UUID} LIMIT 1000)`,
  ]
  const params = { project: projectId, uuid, rows: 1 }
  const filter = { conditions, personId: undefined, params, order: 'DESC' } as const
  const latest = await findPlaces(client, seen, projectId, filter, signal)
  return (await readEvents(client, seen, projectId, latest, signal))[0] ?? null
}
