// Lists of single events. Each identity is seen once (`FINAL`), person ids are those of today, and whatever a caller
// sends travels as a query parameter, never as SQL. Three steps keep it light: the page is found by narrow columns, cut by
// the sizes of its rows, and only what is left of it is read in full.

import { TupleParam } from '@clickhouse/client'
import type { Lane } from '#core/events/captured-event.ts'
import type { EventIdentity, PersonMode } from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { type JsonValue, numberOf, textOf } from '#core/json.ts'
import { identityKey } from '#core/processing/charge-once.ts'
import { dayMs } from '#core/time.ts'
import type { EventCursor, EventQuery, EventView } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'
import { type AskedIdentities, askedIdentities, utcDayOf } from './identity-lists.ts'
import { rowsInTurns } from './rows-in-turns.ts'

export interface EventPage {
  readonly events: readonly EventView[]
  readonly next: EventCursor | null
}

interface Filter {
  readonly conditions: string[]
  /** Those of the conditions that hold for every copy of an identity or for none, and bounds of its day. */
  readonly keyConditions: string[]
  readonly params: Record<string, unknown>
}

/** Expressions that name one event beside its project: what the sort key has, in its order. */
const identity = 'toDate32(timestamp), event, distinct_id, uuid'
const tieBreak = 'sipHash64(event, distinct_id)'

/** Bounds the texts of one page, which only its first event may exceed. A thousand usual events stay below it. */
const pageBytesMax = 4 * 1024 * 1024

/** One page; see `EventStore.listEvents`. */
export async function listEvents(client: ClickHouseClient, query: EventQuery, signal: AbortSignal): Promise<EventPage> {
  const filter = filterOf(query)
  if (filter === null) return { events: [], next: null }
  const order = query.descending ? 'DESC' : 'ASC'
  const places: Place[] = []
  for await (const days of dayWindows(client, filter, order, signal)) {
    const bounds = 'toDate32(timestamp) BETWEEN {first_day:Date32} AND {last_day:Date32}'
    const params = { ...filter.params, ...days, rows: query.limit + 1 - places.length }
    const conditions = [...filter.conditions, bounds]
    places.push(...(await findPlaces(client, query.projectId, { conditions, params, order }, signal)))
    if (places.length > query.limit) break
  }
  const page = await fittingPlaces(client, places.slice(0, query.limit), signal)
  const events = await readEvents(client, query.projectId, page, signal)
  const last = page.at(-1)
  return { events, next: places.length > page.length && last !== undefined ? cursorOf(last) : null }
}

/** An event of a page, by its narrow columns. */
interface Place extends EventIdentity {
  readonly tieBreak: string
}

async function findPlaces(
  client: ClickHouseClient,
  projectId: number,
  of: { conditions: readonly string[]; params: Record<string, unknown>; order: 'ASC' | 'DESC' },
  signal: AbortSignal,
): Promise<Place[]> {
  const { conditions, params, order } = of
  const result = await client.query({
    query: `SELECT toUnixTimestamp64Milli(timestamp), event, distinct_id, toString(uuid), toString(${tieBreak})
      FROM events FINAL WHERE ${conditions.join(' AND ')}
      ORDER BY timestamp ${order}, uuid ${order}, ${tieBreak} ${order} LIMIT {rows:UInt32}`,
    query_params: params,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await result.json<[time: number | string, event: string, id: string, uuid: string, tie: string]>()
  return rows.map(([time, event, distinctId, uuid, tie]) => ({
    ...{ projectId, timestampMs: Number(time), event, distinctId, uuid, tieBreak: tie },
  }))
}

/**
 * As many as fit a page, one at least. Lengths alone are read, of every copy and without FINAL, which would gather the
 * texts of a whole block first.
 */
async function fittingPlaces(
  client: ClickHouseClient,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<readonly Place[]> {
  if (places.length <= 1) return places
  const { prewhere, where, params } = askedPlaces(places)
  const result = await client.query({
    query: `SELECT toInt32(toDate32(timestamp)) AS day, event, distinct_id, toString(uuid),
        max(length(properties) + 2 * length(person_properties) + 3 * length(elements_chain))
      FROM events PREWHERE ${prewhere} WHERE ${where} GROUP BY day, event, distinct_id, uuid`,
    query_params: params,
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await result.json<[day: number, event: string, id: string, uuid: string, bytes: number | string]>()
  const { projectId } = places[0]!
  const bytesOf = new Map(
    rows.map(([day, event, distinctId, uuid, bytes]) => [
      identityKey({ projectId, timestampMs: day * dayMs, event, distinctId, uuid }),
      Number(bytes),
    ]),
  )
  let bytes = 0
  const end = places.findIndex((place, index) => {
    bytes += bytesOf.get(identityKey(place)) ?? 0
    return bytes > pageBytesMax && index > 0
  })
  return end === -1 ? places : places.slice(0, end)
}

/** In the order of the places. */
async function readEvents(
  client: ClickHouseClient,
  projectId: number,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<readonly EventView[]> {
  if (places.length === 0) return []
  const { prewhere, where, params } = askedPlaces(places)
  const result = await client.query({
    query: `SELECT ${viewColumns} FROM events FINAL PREWHERE ${prewhere} WHERE ${where}`,
    query_params: params,
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const views = (await rowsInTurns<EventRow>(result)).map(viewOfRow)
  const viewOf = new Map(views.map(view => [identityKey(view), view]))
  const found = places.flatMap(place => viewOf.get(identityKey(place)) ?? [])
  return withPersonsOfToday(client, projectId, found, signal)
}

/** Longer texts, which none has that was captured, do not go into a parameter: what tells events apart stands for them. */
const askedTextCharsMax = 1_000

function askedPlaces(places: readonly Place[]): AskedIdentities {
  const isShort = ({ event, distinctId }: Place) => Math.max(event.length, distinctId.length) <= askedTextCharsMax
  const short = places.filter(isShort)
  if (short.length === places.length) return askedIdentities(short)
  const asked = '(SELECT arrayJoin({places:Array(Tuple(Date32, UUID, UInt64))}) AS place)'
  const long = {
    prewhere: `uuid IN (SELECT place.2 FROM ${asked})`,
    where: `(toDate32(timestamp), uuid, ${tieBreak}) IN (SELECT place.1, place.2, place.3 FROM ${asked})
      AND project_id = {project:UInt32}`,
    params: {
      project: places[0]!.projectId,
      places: places
        .filter(place => !isShort(place))
        .map(place => new TupleParam([utcDayOf(place.timestampMs), place.uuid, BigInt(place.tieBreak)])),
    },
  }
  if (short.length === 0) return long
  const { prewhere, where, params } = askedIdentities(short)
  return {
    prewhere: `(${prewhere} OR ${long.prewhere})`,
    where: `(${where} OR ${long.where})`,
    params: { ...params, ...long.params },
  }
}

function cursorOf({ timestampMs, uuid, tieBreak: tie }: Place): EventCursor {
  return { timestampMs, uuid, tieBreak: tie }
}

/** Rows that the first window of a list has at least, and the factor from one window to the next. */
const windowRowCountFirst = 200_000
const windowGrowth = 4

/**
 * The days that may have matching events, in the order of the list, gathered into ever larger windows: deduplicating
 * costs by the row, and the newest days nearly always fill a page. Which days there are, copies and all, is found by
 * the sort key alone.
 */
async function* dayWindows(
  client: ClickHouseClient,
  filter: Filter,
  order: 'ASC' | 'DESC',
  signal: AbortSignal,
): AsyncGenerator<{ first_day: string; last_day: string }> {
  const result = await client.query({
    query: `SELECT toString(toDate32(timestamp)) AS day, count() FROM events
      WHERE ${filter.keyConditions.join(' AND ')} GROUP BY day ORDER BY day ${order}`,
    query_params: filter.params,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const days = await result.json<[day: string, rowCount: number | string]>()
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

/** The event with this uuid; of several (another day, name or distinct id) the latest. */
export async function findEvent(
  client: ClickHouseClient,
  projectId: number,
  uuid: string,
  signal: AbortSignal,
): Promise<EventView | null> {
  if (!isUuid(uuid)) return null
  // Without FINAL the inner query reads one column of the project; every copy has the same identity.
  const conditions = [
    'project_id = {project:UInt32}',
    `(${identity}) IN (
      SELECT DISTINCT ${identity} FROM events WHERE project_id = {project:UInt32} AND uuid = {uuid:UUID} LIMIT 1000)`,
  ]
  const params = { project: projectId, uuid, rows: 1 }
  const latest = await findPlaces(client, projectId, { conditions, params, order: 'DESC' }, signal)
  return (await readEvents(client, projectId, latest, signal))[0] ?? null
}

/** @returns null when nothing can match: an id that is no UUID. */
function filterOf(query: EventQuery): Filter | null {
  const keyConditions = ['project_id = {project:UInt32}']
  const conditions: string[] = []
  const params: Record<string, unknown> = { project: query.projectId }
  const where = (to: string[], condition: string, values: Record<string, unknown>) => {
    to.push(condition)
    Object.assign(params, values)
  }
  /** Copies of one identity may differ in their time, within the day: days for all of them, the time for the winner. */
  const whereTime = (operator: '<' | '<=' | '>' | '>=', name: string, ms: number) => {
    where(conditions, `timestamp ${operator} ${timeParam(name)}`, { [name]: ms })
    keyConditions.push(`toDate32(timestamp) ${operator[0]}= toDate32(${timeParam(name)})`)
  }
  if (query.event !== undefined) where(keyConditions, 'event = {event:String}', { event: query.event })
  if (query.distinctId !== undefined) where(keyConditions, 'distinct_id = {id:String}', { id: query.distinctId })
  if (query.uuid !== undefined) {
    if (!isUuid(query.uuid)) return null
    where(keyConditions, 'uuid = {uuid:UUID}', { uuid: query.uuid })
  }
  if (query.afterMs !== undefined) whereTime('>', 'after', query.afterMs)
  if (query.beforeMs !== undefined) whereTime('<', 'before', query.beforeMs)
  if (query.personId !== undefined) {
    if (!isUuid(query.personId)) return null
    where(conditions, personIsToday, { person: query.personId })
  }
  query.properties?.forEach(({ key, value }, index) => {
    const params = { [`key${index}`]: key, [`texts${index}`]: textsOf(value) }
    where(conditions, propertyEquals(`key${index}`, `texts${index}`), params)
  })
  if (query.after !== undefined) {
    const { timestampMs, uuid, tieBreak: tie } = query.after
    if (!isUuid(uuid) || !/^\d{1,20}$/.test(tie)) return null
    whereTime(query.descending ? '<=' : '>=', 'from', timestampMs)
    const beyond = query.descending ? '<' : '>'
    where(
      conditions,
      `(timestamp, uuid, ${tieBreak}) ${beyond} (${timeParam('from')}, {from_uuid:UUID}, {from_tie:UInt64})`,
      { from_uuid: uuid, from_tie: tie },
    )
  }
  return { conditions: [...keyConditions, ...conditions], keyConditions, params }
}

/** The person of an event is the one its distinct id belongs to by now, else the one it was stored with. */
const personIsToday = `(
  distinct_id IN (
    SELECT distinct_id FROM person_distinct_id_overrides FINAL
    WHERE project_id = {project:UInt32} AND person_id = {person:UUID})
  OR person_id = {person:UUID} AND distinct_id NOT IN (
    SELECT distinct_id FROM person_distinct_id_overrides WHERE project_id = {project:UInt32}))`

/** Strings compare by what they say, everything else by its JSON text; an absent property equals nothing. */
function propertyEquals(key: string, texts: string): string {
  return `JSONHas(properties, {${key}:String}) AND if(
    JSONType(properties, {${key}:String}) = 'String',
    JSONExtractString(properties, {${key}:String}),
    JSONExtractRaw(properties, {${key}:String})) IN {${texts}:Array(String)}`
}

/** Texts that the engine may make of an equal value: it writes a number in its own way (`1.0` as 1, `1e+21` as 1e21). */
function textsOf(value: JsonValue): string[] {
  const number = numberOf(value)
  return number === undefined ? [textOf(value)] : [textOf(value), String(number), String(number).replace('e+', 'e')]
}

function timeParam(name: string): string {
  return `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`
}

async function withPersonsOfToday(
  client: ClickHouseClient,
  projectId: number,
  events: readonly EventView[],
  signal: AbortSignal,
): Promise<readonly EventView[]> {
  const lists = distinctIdLists(events)
  if (lists.length === 0) return events
  const conditions = lists.map((_, index) => `distinct_id IN {ids${index}:Array(String)}`)
  const result = await client.query({
    query: `SELECT distinct_id, toString(person_id) FROM person_distinct_id_overrides FINAL
      WHERE project_id = {project:UInt32} AND (${conditions.join(' OR ')})`,
    query_params: { project: projectId, ...Object.fromEntries(lists.map((ids, index) => [`ids${index}`, ids])) },
    use_multipart_params: true, // a thousand ids do not fit a URL
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const personIds = new Map(await result.json<[string, string]>())
  if (personIds.size === 0) return events
  return events.map(event => ({ ...event, personId: personIds.get(event.distinctId) ?? event.personId }))
}

/** Different ids in lists that fit a form field of the server (128 KiB). Ids too long for a person are left out. */
function distinctIdLists(events: readonly EventView[]): string[][] {
  const lists: string[][] = []
  let charCount = Number.POSITIVE_INFINITY
  for (const id of new Set(events.map(event => event.distinctId))) {
    if (id.length > distinctIdCharsMax) continue
    charCount += id.length + 3
    if (charCount > listCharsMax) {
      lists.push([])
      charCount = id.length + 3
    }
    lists.at(-1)!.push(id)
  }
  return lists
}

/** Far above the 400 that a person's distinct id may have. */
const distinctIdCharsMax = 1000
/** Times 4 bytes each, with escapes, at most. */
const listCharsMax = 20_000

/** In the order of `viewColumns`. */
type EventRow = [
  projectId: number,
  uuid: string,
  event: string,
  distinctId: string,
  timestampMs: number | string,
  capturedAtMs: number | string,
  createdAtMs: number | string,
  lane: Lane,
  historicalMigration: boolean,
  importJobId: number,
  propertiesJson: string,
  elementsChain: string,
  personId: string,
  personCreatedAtMs: number | string,
  personPropertiesJson: string,
  personMode: PersonMode,
]

const viewColumns = `project_id, toString(uuid), event, distinct_id, toUnixTimestamp64Milli(timestamp),
  toUnixTimestamp64Milli(captured_at), toUnixTimestamp64Milli(created_at), lane, historical_migration, import_job_id,
  properties, elements_chain, toString(person_id), toUnixTimestamp64Milli(person_created_at), person_properties,
  person_mode`

/** A server may be set to write 64-bit numbers as text. */
function viewOfRow(row: EventRow): EventView {
  return {
    projectId: row[0],
    uuid: row[1],
    event: row[2],
    distinctId: row[3],
    timestampMs: Number(row[4]),
    capturedAtMs: Number(row[5]),
    createdAtMs: Number(row[6]),
    lane: row[7],
    historicalMigration: row[8],
    importJobId: row[9],
    propertiesJson: row[10],
    elementsChain: row[11],
    personId: row[12],
    personCreatedAtMs: Number(row[13]),
    personPropertiesJson: row[14],
    personMode: row[15],
  }
}
