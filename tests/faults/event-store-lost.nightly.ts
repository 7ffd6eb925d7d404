// The event store is removed, truncated or replaced by an older copy between two starts, while the state and the log
// remain. What the log still has is restored, nothing counts twice, no person changes, and what the log no longer has
// is reported.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'
import {
  createClickHouseClients,
  parseEndpointUrl,
} from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { startEngineForTests } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, startPennonFor, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Found {
  readonly events: readonly object[]
  readonly persons: readonly object[]
  readonly outcomes: readonly object[]
}

// The tests share one data folder, and each continues where the previous one ended: starts take most of the time.
describe('an event store that changed since the last run', () => {
  const dataFolder = tempDir({ after })
  const events = join(dataFolder, 'events')
  let pennon: Pennon
  let before: Found

  async function startAgain(): Promise<Pennon> {
    pennon = await startPennon({ dataFolder })
    return pennon
  }
  after(() => pennon?.killTree())

  it('is refilled from the log if it was removed, after a kill and after a regular stop', async t => {
    before = await fill(t, dataFolder, 'killed')
    for (const _ of ['killed', 'stopped']) {
      rmSync(events, { recursive: true })
      await startAgain()
      assert.deepEqual(await found(pennon), before)
      assert.match(pennon.output(), /the event store has changed/)
      assert.equal((await pennon.readiness()).events, 'ok')
      assert.equal(await pennon.stop(), 0)
    }
  })

  it('has truncated and removed parts refilled', async () => {
    const files = globSync(join(events, 'store/store/*/*/*_*_*/data.bin'))
    assert.ok(files.length > 3)
    for (const file of files) truncateSync(file, statSync(file).size >> 1)
    await startAgain()
    assert.deepEqual(await found(pennon), before)
    assert.equal(await pennon.stop(), 0)

    const part = globSync(join(events, 'store/store/*/*/0-*_*_*'))[0]!
    rmSync(part, { recursive: true })
    await startAgain()
    assert.deepEqual(await found(pennon), before)
    assert.equal(await pennon.stop(), 0)
  })

  it('is brought up to date if it is an older copy', async t => {
    const copy = join(tempDir(t), 'events')
    cpSync(events, copy, { recursive: true })
    before = await fill(t, dataFolder, 'stopped', 'later')
    rmSync(events, { recursive: true })
    cpSync(copy, events, { recursive: true })
    await startAgain()
    assert.deepEqual(await found(pennon), before)
    assert.equal((await pennon.readiness()).events, 'ok')
    assert.equal(await pennon.stop(), 0)
  })

  it('causes a report in readiness and doctor if the log lacks its lost rows, until the loss is accepted', async () => {
    rmSync(events, { recursive: true })
    for (const file of readdirSync(join(dataFolder, 'log/main'))) rmSync(join(dataFolder, 'log/main', file))
    await startAgain()
    await eventually(async () => (await pennon.readiness()).events === 'rows_missing', { what: 'readiness' })
    assert.match(pennon.output(), /are missing from the event store and are no longer in the log/)
    assert.equal((await pennon.readiness('?require=events')).status, 503)
    assert.equal((await pennon.readiness()).status, 200)
    const [exitCode, output] = doctor(dataFolder)
    assert.equal(exitCode, 1)
    assert.match(output, /^FAIL +stored events +events accepted from \S+ to \S+ are missing/m)

    assert.match(doctor(dataFolder, '--accept-missing-events')[1], /^ok +stored events/m)
    await eventually(async () => (await pennon.readiness()).events === 'ok', { what: 'readiness' })
    assert.equal((await send(pennon, 'goes on')).status, 200)
    await pennon.caughtUp()
  })
})

describe('an event store at CLICKHOUSE_URL', () => {
  it('is refilled if its database was emptied or dropped, and what the log no longer has is reported', async t => {
    const engine = await startEngineForTests(t)
    const { url, writer, database } = engine.endpoint()
    const settings = {
      CLICKHOUSE_URL: `${url.replace('://', `://${writer.username}:${writer.password}@`)}/${database}`,
    }
    const empty = async (query: (database: string) => readonly string[]) => {
      const clients = createClickHouseClients({
        endpoint: () => parseEndpointUrl(settings.CLICKHOUSE_URL),
        queryTimeoutSeconds: 8,
      })
      try {
        for (const line of query(database)) await clients.write(client => client.command({ query: line }))
      } finally {
        await clients.close()
      }
    }
    const dataFolder = tempDir(t)
    const before = await fill(t, dataFolder, 'stopped', 'first', settings)
    await empty(name => ['events', 'rejected_events', 'worker_marks'].map(table => `TRUNCATE TABLE ${name}.${table}`))
    const filled = await start(t, dataFolder, settings)
    assert.deepEqual(await found(filled), before)
    assert.match(filled.output(), /the event store has changed/)
    assert.equal((await filled.readiness()).events, 'ok')
    assert.equal(await filled.stop(), 0)

    await empty(name => [`DROP DATABASE ${name} SYNC`])
    const made = await start(t, dataFolder, settings)
    assert.deepEqual(await found(made), before)
    assert.equal((await made.readiness()).events, 'ok')
    assert.equal(await made.stop(), 0)

    await empty(name => [`DROP DATABASE ${name} SYNC`])
    for (const file of readdirSync(join(dataFolder, 'log/main'))) rmSync(join(dataFolder, 'log/main', file))
    const lacking = await start(t, dataFolder, settings)
    await eventually(async () => (await lacking.readiness()).events === 'rows_missing', { what: 'readiness' })
    assert.match(lacking.output(), /are missing from the event store and are no longer in the log/)
    const { events, persons } = await found(lacking)
    assert.deepEqual(persons, before.persons)
    const names = events.map(event => (event as { event: string }).event)
    assert.deepEqual(names, ['first imported', 'first bad'], 'imports come from another log stream, which still exists')
  })
})

async function start(t: TestContext, dataFolder: string, settings: Record<string, string> = {}): Promise<Pennon> {
  const pennon = await startPennonFor(t, { dataFolder, settings })
  return pennon
}

function send(pennon: Pennon, event: string, more: object = {}) {
  const { properties = {}, ...rest } = more as { properties?: object }
  return pennon.post('/capture/', {
    api_key: testProjectKey,
    event,
    distinct_id: 'ada',
    properties,
    ...rest,
  })
}

/** Makes live and imported events, a person with two ids and a reject, and ends the instance once all are processed. */
async function fill(
  t: TestContext,
  dataFolder: string,
  end: 'stopped' | 'killed',
  name = 'first',
  settings: Record<string, string> = {},
): Promise<Found> {
  const pennon = await start(t, dataFolder, settings)
  for (let index = 0; index < 5; index++) {
    assert.equal((await send(pennon, `${name} ${index}`, { properties: { $set: { plan: name } } })).status, 200)
    await pennon.caughtUp()
  }
  const identify = { distinct_id: `${name} id`, properties: { $anon_distinct_id: `${name} anonymous` } }
  assert.equal((await send(pennon, 'anonymous', { distinct_id: `${name} anonymous` })).status, 200)
  assert.equal((await send(pennon, 'known', { distinct_id: `${name} id` })).status, 200)
  await pennon.caughtUp()
  assert.equal((await send(pennon, '$identify', identify)).status, 200)
  const batch = [
    { event: `${name} imported`, timestamp: '2020-01-01T00:00:00Z', properties: { distinct_id: 'ada' } },
    { event: `${name} bad`, timestamp: 'never', properties: { distinct_id: 'ada' } },
  ]
  const imported = await pennon.post('/batch/', { api_key: testProjectKey, historical_migration: true, batch })
  assert.equal(imported.status, 200)
  await pennon.caughtUp()
  const before = await found(pennon)
  if (end === 'stopped') assert.equal(await pennon.stop(), 0)
  else await pennon.killTree()
  return before
}

async function found(pennon: Pennon): Promise<Found> {
  const list = async (path: string) => (await pennon.api<{ results: object[] }>('GET', path)).results
  const events = await list('/api/projects/@current/events/?limit=1000')
  const rejected = await list('/api/projects/@current/rejected_events/?limit=1000')
  const persons = await list('/api/projects/@current/persons/?limit=1000')
  const { outcomes } = await pennon.api<{ outcomes: object[] }>('GET', '/api/projects/@current/ingestion_status/')
  return { events: [...events.map(withoutStoring), ...rejected], persons, outcomes }
}

/** Leaves out the time of storing and the person's properties, which change when a row is stored again. */
function withoutStoring(event: object): object {
  const {
    created_at: _createdAt,
    person_created_at: _personCreatedAt,
    person_properties: _personProperties,
    person,
    ...rest
  } = event as Record<string, { distinct_ids: unknown; uuid: unknown }>
  return { ...rest, person: [person!.uuid, person!.distinct_ids] }
}

function doctor(dataFolder: string, ...more: string[]): [exitCode: number, output: string] {
  const args = ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'doctor', ...more]
  try {
    const env = { ...process.env, PENNON_DATA: dataFolder, PORT: '0' }
    return [0, execFileSync(process.execPath, args, { encoding: 'utf8', env })]
  } catch (cause) {
    const { status, stdout } = cause as { status: number; stdout: string }
    return [status, stdout]
  }
}
