// Lists of single events. Each identity is seen once (`FINAL`), person ids are those of today, and whatever a caller
// sends travels as a query parameter, never as SQL. Two steps keep it light: the page is found by narrow columns, and
// only its rows are read in full.

import type { Lane } from '#core/events/captured-event.ts'
import type { PersonMode } from '#core/events/stored-event.ts'
import { type JsonValue, numberOf, textOf } from '#core/json.ts'
import type { EventCursor, EventQuery, EventView } from '#ports/event-store.ts'
import type { ClickHouseClient } from './clickhouse-clients.ts'

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

/** One page; see `EventStore.listEvents`. */
export async function listEvents(client: ClickHouseClient, query: EventQuery, signal: AbortSignal): Promise<EventPage> {
  const filter = filterOf(query)
  if (filter === null) return { events: [], next: null }
  const order = query.descending ? 'DESC' : 'ASC'
  const orderBy = `ORDER BY timestamp ${order}, uuid ${order}, ${tieBreak} ${order}`
  const statement = `SELECT ${viewColumns} FROM events FINAL
    WHERE project_id = {project:UInt32} AND (${identity}) IN (
      SELECT ${identity} FROM events FINAL
      WHERE ${filter.conditions.join(' AND ')} AND toDate32(timestamp) BETWEEN {first_day:Date32} AND {last_day:Date32}
      ${orderBy} LIMIT {rows:UInt32}
    ) ${orderBy}`
  const rows: EventRow[] = []
  for await (const days of dayWindows(client, filter, order, signal)) {
    const params = { ...filter.params, ...days, rows: query.limit + 1 - rows.length }
    rows.push(...(await readRows(client, statement, params, signal)))
    if (rows.length > query.limit) break
  }
  const page = rows.slice(0, query.limit)
  const events = await withPersonsOfToday(client, query.projectId, page.map(viewOfRow), signal)
  const last = page.at(-1)
  const next = rows.length > query.limit && last !== undefined ? cursorOfRow(last) : null
  return { events, next }
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
  const rows = await readRows(
    client,
    `SELECT ${viewColumns} FROM events FINAL
     WHERE project_id = {project:UInt32} AND (${identity}) IN (
       SELECT DISTINCT ${identity} FROM events WHERE project_id = {project:UInt32} AND uuid = {uuid:UUID} LIMIT 1000
     ) ORDER BY timestamp DESC LIMIT 1`,
    { project: projectId, uuid },
    signal,
  )
  const events = await withPersonsOfToday(client, projectId, rows.map(viewOfRow), signal)
  return events[0] ?? null
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
  tieBreak: string,
]

const viewColumns = `project_id, toString(uuid), event, distinct_id, toUnixTimestamp64Milli(timestamp),
  toUnixTimestamp64Milli(captured_at), toUnixTimestamp64Milli(created_at), lane, historical_migration, import_job_id,
  properties, elements_chain, toString(person_id), toUnixTimestamp64Milli(person_created_at), person_properties,
  person_mode, toString(${tieBreak})`

async function readRows(
  client: ClickHouseClient,
  query: string,
  params: Record<string, unknown>,
  signal: AbortSignal,
): Promise<EventRow[]> {
  const result = await client.query({
    query,
    query_params: params,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return result.json<EventRow>()
}

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

function cursorOfRow(row: EventRow): EventCursor {
  return { timestampMs: Number(row[4]), uuid: row[1], tieBreak: row[16] }
}

export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text)
}
