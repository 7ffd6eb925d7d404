// Random trends over HTTP on the real engine, each compared with the plain program of `reference-trends.ts`, over events
// with repeats, merges before and after the fact, imports, changes of clock, and values of every kind.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import { noEventRows } from '#ports/events/event-writer.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { createClickHouseClients } from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngine } from '../support/engine.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { aMapping, aPerson, aStoredEvent, created, imported } from '../support/values.ts'
import {
  bucketsOf,
  type CountedEvent,
  countedEvents,
  previousQuery,
  type ReferenceLine,
  referenceLines,
  type World,
} from './reference-trends.ts'

export interface RandomTrendsOptions {
  readonly queryCount: number
  /** Per project; there are four projects. */
  readonly eventCount?: number
  readonly seed: number
  readonly log: (line: string) => void
}

const nowMs = Date.parse('2026-05-01T12:00:00Z')
const zones = ['Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'UTC'] as const
const names = ['$pageview', 'paid', 'покупка', "o'clock"]
/** JSON texts, without those that ClickHouse reads differently: `conditions.ci.ts` lists them. */
const values = [
  ...['1', '2', '3', '0', '2.5', '-4', '"1"', '"2.5"', '"1e1"', '".5"', '"x"', '""', 'null', 'true', 'false'],
  ...[
    '"pro"',
    '"Pro"',
    '"free"',
    '"日本"',
    '"Ж"',
    '"a\\"b"',
    '[1,"x"]',
    '{"a":1}',
    '"1.2.3"',
    '"2.0.0"',
    '"nan"',
    '"😀"',
  ],
  ...['"2026-03-29T01:00:00Z"', '"2026-03-29"', '1745000000', '"\\u0000"', '"$$_posthog_breakdown_other_$$"'],
]
const uuidOf = (kind: number, index: number) => `0000000${kind}-0000-4000-8000-${String(index).padStart(12, '0')}`

type Random = ReturnType<typeof randomOf>

function randomOf(seed: number) {
  const next = seededRandom(seed)
  const below = (count: number) => Math.floor(next() * count)
  return {
    below,
    chance: (share: number) => next() < share,
    pick: <T>(list: readonly T[]) => list[below(list.length)]!,
  }
}

/** @throws AssertionError for the first answer that is not the plain program's. */
export async function runRandomTrends(
  t: TestContext,
  { queryCount, eventCount = 250, seed, log }: RandomTrendsOptions,
): Promise<void> {
  const random = randomOf(seed)
  const engine = await startEngine({ queryTimeoutSeconds: 60 })
  t.after(() => engine.stop())
  const options = { endpoint: () => engine.endpoint(), queryTimeoutSeconds: 60 }
  let storeMs = nowMs
  const store = createClickHouseEventStore({ ...options, clock: { nowMs: () => ++storeMs } })
  const clients = createClickHouseClients(options)
  t.after(async () => {
    await clients.close()
    await store.close()
  })
  await store.migrate()
  const shown: typeof store.countTrend = (query, signal) =>
    store.countTrend(query, signal).catch(error => {
      log(`${error}: ${error.cause}`)
      throw error
    })
  const api = await startManagement(t, { events: { ...store, countTrend: shown } })
  const worlds: { projectId: number; world: World }[] = []
  for (const zone of zones) {
    const weekStartDay = random.chance(0.5) ? 1 : 0
    const body = { name: zone, timezone: zone, week_start_day: weekStartDay }
    const projectId: number = (await api.call('POST', '/api/projects/', { body })).body.id
    const world: World = {
      ...{ zone, weekStartDay, nowMs, copies: [], overrides: [] },
      ...{ persons: new Map(), groups: new Map(), cohorts: new Map() },
    }
    await makeSubjects(api, projectId, world, random)
    const { persons, groups } = world
    await store.writeSubjects(
      {
        persons: [...persons].map(([uuid, properties]) => ({
          ...{ projectId, uuid, createdAtMs: 0, isIdentified: true },
          propertiesJson: JSON.stringify(properties),
        })),
        groups: [...groups].map(([key, properties]) => ({
          ...{ projectId, typeIndex: Number(key[0]), key: key.slice(2), createdAtMs: 0 },
          propertiesJson: JSON.stringify(properties),
        })),
      },
      1,
    )
    worlds.push({ projectId, world })
  }
  await store.completeMirrorFill('filled', 2)
  const change = async (eventCount: number) => {
    for (const { projectId, world } of worlds) await addEvents(store, projectId, world, random, eventCount)
  }
  await change(eventCount)
  let events = worlds.map(({ world }) => countedEvents(world))
  const check = async (count: number) => {
    const index = random.below(worlds.length)
    const { projectId, world } = worlds[index]!
    const query = randomQuery(world, random)
    const what = `query ${count} of SEED=${seed} in ${world.zone}: ${JSON.stringify(query)}`
    const { status, body, text } = await api.call('POST', `/api/projects/${projectId}/query/`, { body: { query } })
    const expected = expectedLines(world, query, events[index]!)
    if (status === 400 && text.includes('could exceed 10000 points')) {
      assert.ok(pointCountMax(query, expected[0]?.days.length ?? 0) > 10_000, `${what}: ${text}`)
      return
    }
    assert.equal(status, 200, `${what}: ${text}`)
    // biome-ignore lint/suspicious/noExplicitAny: an answer of many shapes
    const actual = body.results.map((result: any) => ({
      ...{ order: result.action.order, value: shownValue(query, result.breakdown_value), days: result.days },
      ...{ period: result.compare_label, data: result.data as number[] },
    }))
    assert.deepEqual(actual.map(withoutData), expected.map(withoutData), what)
    for (const [line, { data, days }] of expected.entries())
      for (const [place, figure] of data.entries()) {
        const own = actual[line].data[place]
        const isSame = Math.abs(own - figure) <= 1e-9 * Math.max(1, Math.abs(figure))
        assert.ok(isSame, `${what}: line ${line}, ${days[place]}: ${own}, not ${figure}`)
      }
  }
  const third = Math.ceil(queryCount / 3)
  for (let start = 0; start < queryCount; start += atOnce) {
    // Repeats, imports and merges after the fact; then merges of parts and a restart.
    if (isReached(start, third)) {
      await change(60)
      events = worlds.map(({ world }) => countedEvents(world))
    }
    if (isReached(start, 2 * third)) {
      await clients.write((client, database) => client.command({ query: `OPTIMIZE TABLE ${database}.events FINAL` }))
      await engine.restart()
    }
    const count = Math.min(atOnce, queryCount - start)
    await Promise.all(Array.from({ length: count }, (_, index) => check(start + index)))
    if (isReached(start, 500 * Math.floor(start / 500))) log(`${start} queries`)
  }
}

/** As many as the store runs at once, and as many that wait. */
const atOnce = 4

function isReached(start: number, count: number): boolean {
  return count >= start && count < start + atOnce
}

interface ExpectedLine extends ReferenceLine {
  readonly order: number
  readonly days: readonly string[]
  readonly period: 'current' | 'previous' | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a query as it was sent
function expectedLines(world: World, query: any, events: readonly CountedEvent[]): ExpectedLine[] {
  const isCompared = query.compareFilter !== undefined
  const days = bucketsOf(world, query, events).names
  const before = isCompared ? previousQuery(world, query, events) : undefined
  const current: ExpectedLine[] = []
  const previous: ExpectedLine[] = []
  for (const [order, series] of query.series.entries()) {
    const lines = referenceLines(world, query, series, events)
    const period = isCompared ? ('current' as const) : undefined
    current.push(...lines.map(line => ({ order, days, period, ...line })))
    if (before === undefined) continue
    // Each line has its counterpart.
    const keys = lines.flatMap(({ key }) => key ?? [])
    const earlier = referenceLines(world, before, series, events, keys)
    const daysBefore = bucketsOf(world, before, events).names
    previous.push(...earlier.map(line => ({ order, days: daysBefore, period: 'previous' as const, ...line })))
  }
  return [...current, ...previous]
}

// biome-ignore lint/suspicious/noExplicitAny: a query as it was sent
function shownValue(query: any, value: unknown): string {
  if (value === undefined) return ''
  return query.breakdownFilter.breakdown_type === 'cohort' ? String(value) : JSON.stringify(value)
}

function withoutData({ order, value, days, period }: ExpectedLine) {
  return { order, value, days, period }
}

/** Persons, groups, and cohorts of them: listed, described, and described by others. */
async function makeSubjects(api: ManagementApi, projectId: number, world: World, random: Random): Promise<void> {
  for (let index = 0; index < 12; index++) world.persons.set(uuidOf(1, projectId * 100 + index), properties(random))
  for (const index of [0, 1])
    for (const key of ['acme', 'wile', 'ü']) world.groups.set(`${index} ${key}`, properties(random))
  const persons = [...world.persons.keys()].map((uuid, index) => ({ uuid, index }))
  const rows = persons.map(({ uuid }) => aPerson({ projectId, uuid }))
  await api.commit({
    persons: rows.map(created),
    mappings: rows.map((row, index) => created(aMapping(row, `id-${index}`))),
  })
  const make = async (body: object, kept: { listed?: ReadonlySet<string>; tree?: JsonObject }) => {
    const { body: made, text } = await api.call('POST', `/api/projects/${projectId}/cohorts/`, { body })
    assert.ok(made.id > 0, text)
    world.cohorts.set(made.id, kept)
    return made.id as number
  }
  const members = persons.filter(() => random.chance(0.5)).map(({ uuid }) => uuid)
  const listed = await make(
    { name: 'listed', is_static: true, _create_static_person_ids: members },
    { listed: new Set(members) },
  )
  const person = (key: string, operator: string, value: unknown) => ({ type: 'person', key, operator, value })
  const tree = (type: string, entries: object[]) => ({ type, values: entries }) as unknown as JsonObject
  const described = tree('OR', [
    tree('AND', [person('plan', 'exact', ['pro', '1']), person('age', 'is_set', 'is_set')]),
    tree('AND', [{ ...person('age', 'gt', 1), negation: true }]),
  ])
  const first = await make({ name: 'described', filters: { properties: described } }, { tree: described })
  const nested = tree('AND', [
    tree('OR', [
      { type: 'cohort', key: 'id', value: listed },
      person('plan', 'not_icontains', 'r'),
      person('age', 'is_not', 'false'),
    ]),
    tree('AND', [{ type: 'cohort', key: 'id', value: first, negation: true }]),
  ])
  await make({ name: 'nested', filters: { properties: nested } }, { tree: nested })
}

function properties(random: Random): JsonObject {
  const fields = ['plan', 'age', 'na"me'].filter(() => random.chance(0.7))
  return parseJson(`{${fields.map(name => `${JSON.stringify(name)}:${random.pick(values)}`).join(',')}}`) as JsonObject
}

/** Adds events, repeats of some in several forms, and merges. */
async function addEvents(
  store: ReturnType<typeof createClickHouseEventStore>,
  projectId: number,
  world: World,
  random: Random,
  count: number,
): Promise<void> {
  const persons = [...world.persons.keys()]
  const spans = [
    ['2026-02-20T00:00:00Z', 75],
    ['2026-03-28T20:00:00Z', 1],
    ['2026-03-08T00:00:00Z', 1],
    ['2025-10-20T00:00:00Z', 15],
    ['2025-10-24T22:00:00Z', 2],
  ] as const
  const fresh = Array.from({ length: count }, (): StoredEvent => {
    const [from, days] = random.pick(spans)
    const hour = random.below(days * 24)
    const within = random.chance(0.2) ? 0 : random.below(3_600_000)
    const id = random.below(14)
    const flags = ['new-nav', 'p%=&x'].filter(() => random.chance(0.6))
    return aStoredEvent({
      projectId,
      event: random.pick(names),
      distinctId: `id-${id}`,
      timestampMs: Date.parse(from) + hour * 3_600_000 + within,
      personId: persons[id] ?? uuidOf(2, id),
      propertiesJson: JSON.stringify(properties(random)),
      personPropertiesJson: JSON.stringify(properties(random)),
      groups: [random.pick(['', 'acme', 'wile', 'gone']), random.pick(['', 'ü']), '', '', ''],
      flags: new Map(
        flags.map(flag => [`$feature/${flag}`, random.pick(['true', 'false', 'control', 'tést', 'a&b=c'])]),
      ),
    })
  })
  const known = [...world.copies, ...fresh]
  const sameDay = (ms: number) => Math.floor(ms / 86_400_000) * 86_400_000 + random.below(86_400_000)
  const repeats = Array.from({ length: Math.floor(count / 5) }, () => {
    const event = random.pick(known)
    const over = { timestampMs: sameDay(event.timestampMs), propertiesJson: JSON.stringify(properties(random)) }
    return random.chance(0.5)
      ? imported({ ...event, ...over }, 1 + random.below(3))
      : { ...event, ...over, importJobId: 0, lane: 'main' as const, historicalMigration: false }
  })
  const imports = fresh.splice(0, Math.floor(count / 6)).map(event => imported(event, 1))
  const pending = Array.from({ length: 10 }, () => imported(aStoredEvent({ projectId, timestampMs: nowMs }), 9))
  for (const some of [imports, fresh, repeats]) {
    // Two copies in one insert would have one version.
    for (const event of some)
      if (!some.some(other => other !== event && other.uuid === event.uuid)) world.copies.push(event)
    const once = some.filter(event => world.copies.includes(event))
    await store.insert({ ...noEventRows, events: once, pendingEvents: some === fresh ? pending : [] })
  }
  const overrides = Array.from({ length: 3 }, () => ({
    distinctId: `id-${random.below(14)}`,
    personId: random.pick(persons),
    version: 1 + random.below(1_000_000),
  }))
  world.overrides.push(...overrides)
  await store.insert({ ...noEventRows, overrides: overrides.map(override => ({ projectId, ...override })) })
}

const filterOperators = [
  ...['exact', 'is_not', 'icontains', 'not_icontains', 'gt', 'lte', 'is_set', 'is_not_set', 'regex', 'not_regex'],
  ...['between', 'starts_with', 'not_ends_with', 'is_date_before', 'is_date_after', 'semver_gt', 'icontains_multi'],
]
const filterValues = [
  'pro',
  'PRO',
  '1',
  1,
  2.5,
  ['pro', '1'],
  [1, 3],
  'x',
  '^.$',
  '\\d',
  'true',
  true,
  '-60d',
  '2026-03-29',
  '1.2.0',
  '日',
  '',
]

function source(random: Random): { key: string; type: string; index?: number } {
  const key = random.pick(['plan', 'age', 'na"me', 'absent'])
  return random.pick([
    { key, type: 'event' },
    { key, type: 'person' },
    { key, type: 'group', index: random.below(2) },
    { key: '$group_key', type: 'group', index: random.below(2) },
    { key: random.pick(['$feature/new-nav', '$feature/p%=&x']), type: 'event' },
  ])
}

function filter(world: World, random: Random, depth = 0): object {
  if (depth < 2 && random.chance(0.3)) {
    const values = Array.from({ length: 1 + random.below(2) }, () => filter(world, random, depth + 1))
    return { type: random.pick(['AND', 'OR']), values }
  }
  if (random.chance(0.12)) {
    const value = random.pick([...world.cohorts.keys()])
    return { type: 'cohort', key: 'id', value, operator: random.pick(['in', 'not_in']) }
  }
  const { key, type, index } = source(random)
  const operator = random.pick(filterOperators)
  const value = operator === 'between' ? [1, 3] : random.pick(filterValues)
  return { key, type, operator, value, ...(index !== undefined && { group_type_index: index }) }
}

// biome-ignore lint/suspicious/noExplicitAny: a query of many shapes
function randomQuery(world: World, random: Random): any {
  const interval = random.pick(['hour', 'day', 'day', 'week', 'month'])
  const isWhole = world.zone !== 'Asia/Kathmandu'
  const ranges =
    interval === 'hour'
      ? [
          { date_from: '2026-03-28', date_to: '2026-03-30' },
          { date_from: '2025-10-25', date_to: '2025-10-26' },
          { date_from: '2026-03-08', date_to: '2026-03-08' },
          { date_from: '-1d' },
          ...(isWhole ? [{ date_from: '-30h' }] : []),
        ]
      : [
          { date_from: '-30d' },
          { date_from: '-14d' },
          {},
          { date_from: 'mStart' },
          { date_from: '-1mStart' },
          { date_from: '-10w' },
          { date_from: 'all' },
          { date_from: '2026-03-05', date_to: '2026-04-10' },
          { date_from: '2025-10-20', date_to: '2025-11-02' },
        ]
  const maths = [
    'total',
    'total',
    'dau',
    'dau',
    'unique_group',
    'sum',
    'avg',
    'min',
    'max',
    'median',
    'p90',
    'p95',
    'p99',
  ]
  const series = Array.from({ length: random.chance(0.15) ? 2 : 1 }, () => ({
    ...{ kind: 'EventsNode', event: random.chance(0.3) ? null : random.pick(names), math: random.pick(maths) },
    ...{ math_property: random.pick(['age', 'plan']), math_group_type_index: random.below(2) },
    ...(random.chance(0.2) && { properties: [filter(world, random, 2)] }),
  }))
  return {
    ...{ kind: 'TrendsQuery', interval, series, dateRange: random.pick(ranges) },
    ...(random.chance(0.4) && {
      properties: random.chance(0.5) ? [filter(world, random, 2)] : { type: 'AND', values: [filter(world, random)] },
    }),
    ...(random.chance(0.6) && { breakdownFilter: breakdown(world, random) }),
    ...(interval !== 'hour' && random.chance(0.12) && { compareFilter: comparison(interval, random) }),
  }
}

function comparison(interval: string, random: Random): object {
  return { compare: true, ...(interval === 'day' && random.chance(0.5) && { compare_to: '-1w' }) }
}

function breakdown(world: World, random: Random): object {
  const limit = { breakdown_limit: random.chance(0.6) ? 1 + random.below(4) : 20 }
  if (random.chance(0.04)) return { breakdown: [...world.cohorts.keys(), 'all'], breakdown_type: 'cohort' }
  const asked = () => {
    const { key, type, index } = source(random)
    return { property: key, type, ...(index !== undefined && { group_type_index: index }) }
  }
  if (random.chance(0.3)) return { breakdowns: random.chance(0.3) ? [asked()] : [asked(), asked()], ...limit }
  const { property, type, group_type_index } = asked()
  return {
    breakdown: property,
    breakdown_type: type,
    ...(group_type_index !== undefined && { breakdown_group_type_index: group_type_index }),
    ...limit,
  }
}

/** How many points the answer to a query might have. */
// biome-ignore lint/suspicious/noExplicitAny: a query of many shapes
function pointCountMax({ series, breakdownFilter, compareFilter }: any, dayCount: number): number {
  const linesOfSeries = breakdownFilter === undefined ? 1 : (breakdownFilter.breakdown_limit ?? 25) + 2
  return dayCount * series.length * linesOfSeries * (compareFilter?.compare === true ? 2 : 1)
}
