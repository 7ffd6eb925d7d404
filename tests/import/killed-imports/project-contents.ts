// The events, persons and groups of a project, as the private API shows them to users, in a form that is equal for two
// projects with the same contents.

import { hash } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { type JsonObject, parseJson } from '#core/json.ts'
import { eventually } from '../../support/eventually.ts'
import { type Pennon, testPersonalKey } from '../../support/pennon.ts'

export interface ProjectContents {
  /** By day and name: the count, and the sum of the hashes, which is independent of order. */
  readonly events: Readonly<Record<string, Sum>>
  readonly eventCount: number
  readonly persons: Sum
  readonly groupTypes: unknown
  readonly groups: Sum
  /** Results of insights, SQL and definitions. */
  readonly answers: Readonly<Record<string, unknown>>
  /** One line for each event, person and group, to show differences. */
  readonly lines: ReadonlySet<string>
}

interface Sum {
  readonly count: number
  readonly hash: string
}

const range = { date_from: '2024-02-01', date_to: '2024-04-30' }

/** @param keepsLines false for projects too large to hold in memory. */
export async function contentsOf(
  pennon: Pennon,
  projectId: number,
  { keepsLines = true }: { keepsLines?: boolean } = {},
): Promise<ProjectContents> {
  const root = `/api/projects/${projectId}`
  const lines = new Set<string>()
  const sums = new Sums(keepsLines ? lines : null)
  const personKeys = new Map<string, string>()
  for await (const row of rowsOf(pennon, `${root}/persons/export/`)) {
    const ids = (row.distinct_ids as string[]).toSorted()
    // Person ids depend on the id of the project.
    personKeys.set(String(row.uuid), ids[0] ?? 'no ids')
    const { properties, created_at, is_identified, name } = row
    sums.add('persons', [ids, name, sortedKeys(properties as JsonObject), created_at, is_identified])
  }
  let eventCount = 0
  for await (const row of rowsOf(pennon, `${root}/events/export/?after=2024-01-01&before=2024-06-01`)) {
    eventCount++
    sums.add(`${String(row.timestamp).slice(0, 10)} ${row.event}`, eventColumns(row, personKeys))
  }
  const groupTypes = await pennon.api<{ group_type_index: number }[]>('GET', `${root}/groups_types/`)
  for (const { group_type_index: index } of groupTypes)
    for await (const { group_key, group_properties, created_at } of pagesOf(
      pennon,
      `${root}/groups/?group_type_index=${index}`,
    ))
      sums.add('groups', [index, group_key, sortedKeys(group_properties as JsonObject), created_at])
  const { persons = nothing, groups = nothing, ...events } = sums.all()
  const answers = await answersOf(pennon, root, persons.count, groups.count)
  return { events, eventCount, persons, groupTypes, groups, answers, lines }
}

/**
 * The columns of an event, except those of its job, and except its person as of that time: a batch that had to be sent
 * twice keeps the person of its second copy (docs/wire/ingestion.md 8.1).
 */
function eventColumns(row: JsonObject, personKeys: ReadonlyMap<string, string>): unknown[] {
  const { uuid, event, distinct_id, timestamp, person_id, person_mode } = row
  const { $import_job_id: _, ...properties } = row.properties as JsonObject
  return [
    ...[uuid, event, distinct_id, timestamp, properties, personKeys.get(String(person_id)) ?? 'nobody', person_mode],
    ...[row.elements_chain, row.lane, row.historical_migration],
  ]
}

async function answersOf(pennon: Pennon, root: string, personCount: number, groupCount: number) {
  const ask = (query: object) =>
    againOnTimeout(async () => (await pennon.api<{ results: unknown[] }>('POST', `${root}/query/`, { query })).results)
  const trends = (more: object) => ask({ kind: 'TrendsQuery', interval: 'day', dateRange: range, ...more })
  const sql = (query: string) => ask({ kind: 'HogQLQuery', query })
  const all = { kind: 'EventsNode' }
  const names = async (path: string) => {
    const found: string[] = []
    for await (const { name } of pagesOf(pennon, `${root}/${path}/?limit=100`)) found.push(String(name))
    return found.toSorted()
  }
  // Queries see persons and groups about half a second later than the lists.
  const counted = (table: string, count: number) =>
    eventually(async () => (await sql(`SELECT count() FROM ${table}`)).flat(2)[0] === count, { what: table })
  await counted('persons', personCount)
  await counted('groups', groupCount)
  return {
    total: await trends({
      series: [all, { ...all, math: 'dau' }, { ...all, math: 'unique_group', math_group_type_index: 0 }],
    }),
    hourly: await trends({
      interval: 'hour',
      series: [{ ...all, event: '$pageview' }],
      dateRange: { ...range, date_from: '2024-03-20', date_to: '2024-03-22' },
    }),
    sums: await trends({
      interval: 'week',
      series: ['sum', 'avg', 'max', 'p90'].map(math => ({ ...all, math, math_property: 'amount' })),
    }),
    byPlan: await trends({
      interval: 'month',
      series: [{ ...all, math: 'dau' }],
      breakdownFilter: { breakdown: 'plan', breakdown_type: 'event' },
    }),
    byPath: await trends({
      interval: 'month',
      series: [all],
      breakdownFilter: { breakdown: '$current_url', breakdown_type: 'event' },
    }),
    // No other answer shows microseconds.
    times: await sql(
      'SELECT toDate(timestamp) AS day, event, count(), uniqExact(distinct_id), uniqExact(person_id), sum(cityHash64(uuid, toUnixTimestamp64Micro(timestamp))) FROM events GROUP BY day, event ORDER BY day, event LIMIT 50000',
    ),
    sessions: await sql(
      'SELECT uniqExact(`$session_id`), uniqExact(`$group_0`), countIf(historical_migration) FROM events',
    ),
    ofPersons: await sql('SELECT count(), min(created_at), max(created_at), countIf(is_identified) FROM persons'),
    ofGroups: await sql(
      'SELECT group_type_index, group_key, arraySort(JSONExtractKeysAndValuesRaw(properties)) FROM groups ORDER BY 1, 2 LIMIT 50000',
    ),
    eventNames: await names('event_definitions'),
  }
}

/** A query over a million events may time out on a machine that also imports, and is then repeated. */
async function againOnTimeout<T>(ask: () => Promise<T>): Promise<T> {
  const deadlineMs = performance.now() + timeoutsMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!String(error).includes('"event_store_timeout"') || performance.now() > deadlineMs) throw error
    }
  }
}

const timeoutsMs = 300_000

async function* rowsOf(pennon: Pennon, path: string): AsyncGenerator<JsonObject> {
  // Compressing on the same machine would take longer than transferring the plain text.
  const headers = { authorization: `Bearer ${testPersonalKey}`, 'accept-encoding': 'identity' }
  const response = await fetch(pennon.url + path, { headers })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  for await (const line of createInterface({ input: Readable.fromWeb(response.body! as never), crlfDelay: Infinity })) {
    const row = parseJson(line) as JsonObject
    if (Object.hasOwn(row, 'export_error')) throw new Error(line)
    yield row
  }
}

async function* pagesOf(pennon: Pennon, path: string): AsyncGenerator<JsonObject> {
  for (let next: string | null = path; next !== null; ) {
    const page: { results: JsonObject[]; next: string | null } = await pennon.api('GET', next)
    yield* page.results
    next = page.next === null ? null : page.next.replace(/^https?:\/\/[^/]+/, '')
  }
}

const nothing: Sum = { count: 0, hash: '0' }
const modulus = 2n ** 64n

class Sums {
  readonly #sums = new Map<string, { count: number; hash: bigint }>()
  readonly #lines: Set<string> | null

  constructor(lines: Set<string> | null) {
    this.#lines = lines
  }

  add(key: string, columns: readonly unknown[]): void {
    const text = JSON.stringify(columns)
    const digest = hash('sha1', text, 'buffer').readBigUInt64BE()
    const sum = this.#sums.get(key) ?? { count: 0, hash: 0n }
    this.#sums.set(key, { count: sum.count + 1, hash: (sum.hash + digest) % modulus })
    this.#lines?.add(`${key}: ${text}`)
  }

  all(): Record<string, Sum> {
    const sorted = [...this.#sums].toSorted(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(sorted.map(([key, { count, hash: sum }]) => [key, { count, hash: sum.toString(16) }]))
  }
}

function sortedKeys(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
