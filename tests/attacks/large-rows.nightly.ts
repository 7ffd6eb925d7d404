// Any client with a project key can make large rows: a person with 100,000 distinct ids, persons and groups of 640 KiB,
// a flood of events of 900 KB. For any request about them, a turn of the front's event loop may read or write at most
// one page of them, no page may grow with the rows, and pages may neither skip nor repeat.

import assert from 'node:assert/strict'
import { get } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openPostgresSubjectStore } from '#adapters/postgres/postgres-subject-store.ts'
import { stateFilePath } from '#adapters/sqlite/open-sqlite.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { startEngine } from '../support/engine.ts'
import { allScopesKey, type ManagementApi, startManagement } from '../support/management-api.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { type TurnCounts, watchTurns } from '../support/turn-counts.ts'
import { aChange, aNewProject, aStoredEvent } from '../support/values.ts'

/** Limit per turn for reading, writing and measuring: one page of rows. */
const pageBytesMax = 8 * 2 ** 20
const turnMax: TurnCounts = { jsonChars: 3 * pageBytesMax, literals: 1_000 }
const idCount = 100_000
const largeCount = 12
const giant = '11111111-1111-5111-8111-000000000000'
/** Numbers whose literals are kept, which take eighty times as long to read as text of the same length. */
const properties = `{"plan":"pro","n":1.0,"many":[${'1.0,'.repeat(160_000)}1.0]}`

describe('rows of unlimited size', () => {
  it('do not block other requests when pages are read from SQLite', async t => {
    const api = await startManagement(t, {
      wrap: async (_, dataFolder) => {
        seedSqlite(dataFolder)
        const writer = await openStateWriter({ dataFolder, logger: createSilentLogger() })
        t.after(() => writer.close())
        return writer as ManagementStore
      },
    })
    await askForAll(t, api, 'sqlite')
    await evaluate(api)
  })

  it('do not block other requests when pages are read from PostgreSQL', { skip: noPostgres() }, async t => {
    const postgres = await startPostgres()
    t.after(() => postgres.stop())
    const url = await postgres.createDatabase({ template: await migratedTemplate(postgres) })
    const logger = createSilentLogger()
    const management = openPostgresManagementStore({ url, logger })
    t.after(() => management.close())
    await management.createProject(aNewProject(), aChange())
    for (const [text, values] of seeds(
      (n, from) => `generate_series(${from}, ${n}) AS s (i)`,
      n => `$${n}`,
    ))
      await postgres.query(text, values, url)
    // The tests' server reads keys and projects from its own store.
    const lists = ['listPersons', 'findPersonByUuid', 'listDistinctIds', 'listGroups', 'findStoredGroup'] as const
    const api = await startManagement(t, {
      wrap: store => ({ ...store, ...Object.fromEntries(lists.map(name => [name, management[name]])) }),
    })
    await askForAll(t, api, 'postgres')

    const subjects = openPostgresSubjectStore({ url, logger })
    t.after(() => subjects.close())
    const turns = watchTurns()
    const found = await Promise.all(
      Array.from({ length: 5 }, (_, index) => subjects.findPerson(1, `large ${index + 1}`, () => new Set(['plan']))),
    )
    report('postgres: 5 subjects of 640 KiB', turns.end())
    assert.deepEqual(found[4]?.properties, { plan: 'pro' })
  })

  it('do not exceed the page size when pages are read from the event store', async t => {
    const engine = await startEngine()
    t.after(() => engine.stop())
    const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: { nowMs: Date.now } })
    t.after(() => store.close())
    await store.migrate()
    const eventCount = 500
    await insertLargeEvents(store, eventCount)
    const api = await startManagement(t, { events: store })
    const path = '/api/projects/1/events/?limit=1000'
    const seen = await walk(api, path, `${eventCount} events of 900 KB`, 'distinct_id', 10)
    const newest = Array.from({ length: seen.length }, (_, index) => `d${eventCount - 1 - index}`)
    assert.deepEqual(seen, newest)
    assert.ok(seen.length > 20)
  })
})

/** Requests every list and every single row, and prints figures for each. */
async function askForAll(t: TestContext, api: ManagementApi, engine: string): Promise<void> {
  const rssBefore = process.memoryUsage.rss()
  const persons = await walk(api, '/api/projects/1/persons/?limit=1000', `${engine}: persons`, 'uuid')
  assert.equal(persons.length, largeCount + 1)
  const groups = await walk(
    api,
    '/api/projects/1/groups/?limit=1000&group_type_index=0',
    `${engine}: groups`,
    'group_key',
  )
  assert.equal(groups.length, largeCount)
  const ids = await walk(
    api,
    `/api/projects/1/persons/${giant}/distinct_ids/?limit=1000`,
    `${engine}: ids`,
    'distinct_id',
  )
  assert.equal(ids.length, idCount)
  const one = await timed(api, `/api/projects/1/persons/${giant}/`, `${engine}: a person of ${idCount} ids`)
  assert.deepEqual([one.distinct_ids.length, one.distinct_id_count], [100, 2_501])
  const [large] = (await timed(api, '/api/projects/1/persons/?distinct_id=large%201', `${engine}: a person of 640 KiB`))
    .results
  assert.equal(large.properties.plan, 'pro')
  const grownMiB = (process.memoryUsage.rss() - rssBefore) / 2 ** 20
  t.diagnostic(`${engine}: memory grew by ${grownMiB.toFixed(0)} MiB`)
  assert.ok(grownMiB < 300, `${grownMiB} MiB`)
}

/** Evaluates flags and cohorts that read such persons. */
async function evaluate(api: ManagementApi): Promise<void> {
  const filters = [{ key: 'plan', type: 'person', operator: 'exact', value: 'pro' }]
  const flag = { key: 'pros', filters: { groups: [{ properties: filters, rollout_percentage: 100 }] } }
  assert.equal((await api.call('POST', '/api/projects/1/feature_flags/', { body: flag })).status, 201)
  const { answer: explained, turn } = await watched(() =>
    api.call('POST', '/api/projects/1/feature_flags/pros/explain/', { body: { distinct_id: 'large 2' } }),
  )
  report('sqlite: a flag for a person of 640 KiB', turn)
  assert.equal(explained.body.value, true, explained.text)
  const cohort = { name: 'pros', filters: { properties: { type: 'AND', values: filters } } }
  assert.equal((await api.call('POST', '/api/projects/1/cohorts/', { body: cohort })).status, 201)
  const members = await walk(
    api,
    '/api/projects/1/cohorts/1/persons/?limit=1000',
    'sqlite: members of a cohort',
    'uuid',
  )
  assert.equal(members.length, largeCount)
}

/** Follows `next` to the end and requires each item once. @returns the ids of the items. */
async function walk(api: ManagementApi, path: string, what: string, name: string, pagesMax = 1_000): Promise<string[]> {
  const seen: string[] = []
  const most = { jsonChars: 0, literals: 0 }
  const figures = { bytes: 0, pages: 0 }
  for (let next: string | null = path; next !== null && figures.pages < pagesMax; ) {
    const url: string = api.url + next
    const {
      answer: { status, body },
      turn,
    } = await watched(() => read(url))
    assert.equal(status, 200, body.toString().slice(0, 300))
    most.jsonChars = Math.max(most.jsonChars, turn.jsonChars)
    most.literals = Math.max(most.literals, turn.literals)
    figures.bytes = Math.max(figures.bytes, body.length)
    figures.pages++
    const page = JSON.parse(body.toString())
    seen.push(...page.results.map((item: Record<string, string>) => item[name]!))
    next = page.next === null ? null : page.next.slice(api.url.length)
  }
  report(`${what}, ${figures.pages} pages`, most, figures.bytes)
  assert.equal(new Set(seen).size, seen.length, 'no page repeats')
  return seen
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
async function timed(api: ManagementApi, path: string, what: string): Promise<any> {
  const {
    answer: { status, body },
    turn,
  } = await watched(() => read(api.url + path))
  report(what, turn, body.length)
  assert.equal(status, 200, body.toString().slice(0, 300))
  return JSON.parse(body.toString())
}

function report(what: string, { jsonChars, literals }: TurnCounts, bytes = 0): void {
  const text = `${what}: ${jsonChars} characters and ${literals} literals in a turn, ${bytes} bytes at most`
  console.log(text)
  assert.ok(jsonChars <= turnMax.jsonChars && literals <= turnMax.literals && bytes <= pageBytesMax, text)
}

async function watched<Answer>(ask: () => Promise<Answer>): Promise<{ answer: Answer; turn: TurnCounts }> {
  const turns = watchTurns()
  const answer = await ask()
  return { answer, turn: turns.end() }
}

/** Returns the answer as bytes, so that reading it costs this thread almost nothing. */
function read(address: string): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    get(address, { headers: { authorization: `Bearer ${allScopesKey}` } }, response => {
      const pieces: Buffer[] = []
      response.on('data', piece => pieces.push(piece))
      response.on('end', () => resolve({ status: response.statusCode!, body: Buffer.concat(pieces) }))
      response.on('error', reject)
    }).on('error', reject)
  })
}

function seedSqlite(dataFolder: string): void {
  const db = new Database(stateFilePath(dataFolder))
  const series = (n: number, from: number) =>
    `(WITH RECURSIVE s (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM s WHERE i < ${n}) SELECT i FROM s) AS s`
  for (const [text, values] of seeds(series, () => '?')) db.prepare(text).run(...values)
  db.close()
}

/** Makes one person with very many ids, and persons and groups of 640 KiB. */
function seeds(
  series: (last: number, first: number) => string,
  param: (place: number) => string,
): [text: string, values: string[]][] {
  const person =
    'INSERT INTO person (id, project_id, uuid, properties, property_marks, created_at, is_identified, version, last_seen_at)'
  const uuid = giant.slice(0, 24)
  return [
    [`${person} VALUES (1, 1, ${param(1)}, '{}', '[]', 0, 0, 0, 0)`, [giant]],
    [
      `INSERT INTO person_distinct_id (project_id, distinct_id, person_id, version)
        SELECT 1, '0190b7a5-6b2e-7c3d-9f10-' || (100000000000 + i), 1, 0 FROM ${series(idCount, 1)}`,
      [],
    ],
    [
      `${person} SELECT i + 1, 1, ${param(1)} || (900000000000 + i), ${param(2)}, '[]', 0, 0, 0, 0
        FROM ${series(largeCount, 1)}`,
      [uuid, properties],
    ],
    [
      `INSERT INTO person_distinct_id (project_id, distinct_id, person_id, version)
        SELECT 1, 'large ' || i, i + 1, 0 FROM ${series(largeCount, 1)}`,
      [],
    ],
    [
      `INSERT INTO "group" (project_id, group_type_index, group_key, group_properties, property_marks, created_at, version)
        SELECT 1, 0, 'g' || i, ${param(1)}, '[]', i / 7, 1 FROM ${series(largeCount, 1)}`,
      [properties],
    ],
  ]
}

async function insertLargeEvents(store: EventStore, count: number): Promise<void> {
  const text = JSON.stringify({ text: 'x'.repeat(900_000) })
  const nothing = { pendingEvents: [], overrides: [], recordings: [], rejected: [] }
  for (let first = 0; first < count; first += 20) {
    const events = Array.from({ length: Math.min(20, count - first) }, (_, index) =>
      aStoredEvent({
        distinctId: `d${first + index}`,
        timestampMs: 1_770_000_000_000 + first + index,
        propertiesJson: text,
      }),
    )
    await store.insert({ ...nothing, events })
  }
}
