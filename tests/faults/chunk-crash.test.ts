import assert from 'node:assert/strict'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { createEventProcessor } from '#services/processing/process-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { migrateSqlite } from '../../src/adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '../../src/adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '../../src/adapters/sqlite/sqlite-management-store.ts'
import { openSqliteLogReader } from '../../src/adapters/sqlite-log/sqlite-log-reader.ts'
import { openSqliteLogWriter } from '../../src/adapters/sqlite-log/sqlite-log-writer.ts'
import { startEngine, type TestEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aCapturedEvent, aChange, aNewProject, encodedEvents, noSalts } from '../support/values.ts'

// A worker that crashes between two steps of a chunk, and its successor, on the real log, state and engine.

const steps = ['read', 'load', 'apply', 'insert', 'commit'] as const
type Step = (typeof steps)[number]
interface Crash {
  readonly at: Step
  readonly passing: number
}

const chunkSize = 5
const clock = fixedClock('2026-09-21T10:00:00Z')
/** All runs share the engine, so each has a separate project. */
const runCountMax = 20
const untouched = tempDir({ after })
let engine: TestEngine
let runCount = 0

before(async () => {
  engine = await startEngine()
  await migrateSqlite(untouched)
  const management = openSqliteManagementStore({ dataFolder: untouched, access: 'write' })
  for (let id = 1; id <= runCountMax; id++) {
    const created = await management.createProject(aNewProject({ apiToken: `phc_${id}` }), aChange())
    assert.ok(created.ok && created.value.value.id === id)
  }
  await management.close()
})
after(() => engine.stop())

/** Three chunks that create, update, link and chain-merge persons, with personless events, and describe groups. */
function story(projectId: number): CapturedEvent[] {
  const event = (n: number, over: Partial<CapturedEvent>) => aCapturedEvent(n, { projectId, ...over })
  return [
    event(1, { distinctId: 'anon', propertiesJson: '{"$set_once":{"first":"a"},"$set":{"visits":1}}' }),
    event(2, { distinctId: 'ada', name: '$set', propertiesJson: '{"$set":{"plan":"free"}}' }),
    event(3, {
      distinctId: 'ada',
      name: '$identify',
      propertiesJson: '{"$anon_distinct_id":"anon","$set":{"visits":2}}',
    }),
    event(4, { distinctId: 'anon', propertiesJson: '{"$set":{"plan":"pro"}}' }),
    event(5, {
      distinctId: 'bob',
      name: '$groupidentify',
      propertiesJson: '{"$group_type":"company","$group_key":"acme","$group_set":{"seats":1}}',
    }),
    event(6, { distinctId: 'bob', propertiesJson: '{"$groups":{"company":"acme"},"$set":{"n":1.0}}' }),
    event(7, { distinctId: 'bob', propertiesJson: '{"$unset":["n"]}' }),
    event(8, {
      distinctId: 'bob',
      name: '$groupidentify',
      propertiesJson: '{"$group_type":"company","$group_key":"acme","$group_set":{"seats":2}}',
    }),
    event(9, { distinctId: 'ada', propertiesJson: '{"$set":{"visits":3}}' }),
    event(10, { distinctId: 'ada', name: '$create_alias', propertiesJson: '{"alias":"bob"}' }),
    event(11, { distinctId: 'tab', propertiesJson: '{"$process_person_profile":false}' }),
    event(12, { distinctId: 'eve', name: '$merge_dangerously', propertiesJson: '{"alias":"tab","$set":{"last":1}}' }),
    event(13, { distinctId: 'eve', name: '$merge_dangerously', propertiesJson: '{"alias":"anon"}' }),
  ]
}

/**
 * Appends the story, crashes the first worker when it passes a step the n-th time, lets a second one finish, and
 * returns the result.
 */
async function processStory(
  t: Parameters<typeof tempDir>[0],
  crash: Crash | null,
  chunkSizeAfter = chunkSize,
): Promise<object> {
  const dataFolder = tempDir(t)
  const projectId = makeState(dataFolder)
  const log = await openSqliteLogWriter({ folder: join(dataFolder, 'log'), nowMs: clock.nowMs, logBytesMax: 2 ** 30 })
  for (const event of story(projectId)) await log.append('live', encodedEvents([event]))
  await log.close()

  if (crash !== null) await work(dataFolder, crash)
  await work(dataFolder, null, chunkSizeAfter)
  return readResult(dataFolder, projectId)
}

/** @returns this run's project. */
function makeState(dataFolder: string): number {
  assert.ok(runCount < runCountMax)
  cpSync(untouched, dataFolder, { recursive: true })
  return ++runCount
}

/** Runs a worker until everything is committed or it crashes: its connections are then closed, and it never resumes. */
async function work(dataFolder: string, crash: Crash | null, recordCountMax = chunkSize): Promise<void> {
  const state = openSqliteChunkStore({ dataFolder })
  const log = openSqliteLogReader({ folder: join(dataFolder, 'log') })
  const events = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
  await events.migrate()
  let passings = 0
  let crashed = false
  const stopping = new AbortController()
  const processor = createEventProcessor({
    log,
    state,
    events,
    geoip: null,
    saltOf: noSalts,
    clock,
    metrics: createMetrics(),
    logger: createSilentLogger(),
    ownerId: `worker ${Math.random()}`,
    logId: 'log',
    limits: { recordCountMax, restMs: 0 },
    faultPoint: name => {
      if (crash === null || name !== crash.at || ++passings !== crash.passing) return
      crashed = true
      return new Promise(() => undefined)
    },
  })
  const running = processor.run(stopping.signal)
  if (crash === null) {
    const { endOffset } = await log.readStreamStatus('main', 0)
    await eventually(async () => (await offsetOf(dataFolder)) === endOffset, { what: 'the second worker' })
    stopping.abort()
    await running
  } else {
    await eventually(() => crashed, { what: 'the crash' })
  }
  await Promise.all([state.close(), log.close(), events.close()])
}

async function offsetOf(dataFolder: string): Promise<number> {
  const management = openSqliteManagementStore({ dataFolder, access: 'read' })
  const { offset } = await management.findLogPosition('main')
  await management.close()
  return offset
}

/** What users can see afterwards, without what differs between projects. */
async function readResult(dataFolder: string, projectId: number): Promise<object> {
  const events = createClickHouseEventStore({ endpoint: engine.endpoint, clock })
  const { events: rows } = await events.listEvents({ projectId, descending: false, limit: 1_000 })
  await events.close()
  const management = openSqliteManagementStore({ dataFolder, access: 'read' })
  const { results } = await management.listPersons(projectId, { limit: 100, offset: 0 })
  const { results: groups } = await management.listGroups(projectId, { typeIndex: 0, limit: 100, offset: 0 })
  const outcomes = await management.listOutcomes(projectId)
  await management.close()
  const ownerOf = (uuid: string) =>
    results
      .find(person => person.uuid === uuid)
      ?.distinctIds.map(id => id.distinctId)
      .toSorted()
  return {
    events: rows.map(({ uuid, event, distinctId, propertiesJson, personPropertiesJson, personId, personMode }) => ({
      uuid,
      event,
      distinctId,
      propertiesJson,
      personPropertiesJson,
      person: ownerOf(personId),
      personMode,
    })),
    persons: results.map(({ propertiesJson, isIdentified, version, distinctIds }) => ({
      propertiesJson,
      isIdentified,
      version,
      distinctIds: distinctIds.map(({ distinctId, version: mapping }) => [distinctId, mapping]).toSorted(),
    })),
    groups: groups.map(({ key, propertiesJson, version }) => ({ key, propertiesJson, version })),
    outcomes: outcomes.map(({ outcome, reason, count }) => ({ outcome, reason, count })),
  }
}

describe('a worker that stops between two steps of a chunk', () => {
  let undisturbed: object

  before(async () => {
    undisturbed = await processStory({ after }, null)
  })

  it('is compared with a worker that does not stop and stores the expected events, persons and outcomes', () => {
    const seen = undisturbed as { events: { person: unknown }[]; persons: unknown[]; outcomes: unknown }
    assert.equal(seen.events.length, 13)
    assert.equal(seen.persons.length, 1, 'all ids ended as one person')
    assert.ok(seen.events.every(event => JSON.stringify(event.person) === '["ada","anon","bob","eve","tab"]'))
    assert.deepEqual(seen.outcomes, [{ outcome: 'stored', reason: '', count: 13 }])
  })

  for (const at of steps) {
    for (const passing of [1, 2, 3]) {
      it(`leaves no trace of stopping after “${at}” of chunk ${passing}`, async t => {
        assert.deepEqual(await processStory(t, { at, passing }), undisturbed)
      })
    }
  }

  for (const chunkSizeAfter of [1, 3, 13])
    it(`leaves no override without its row if it stops after writing rows, and later chunks have ${chunkSizeAfter} records`, async t => {
      const seen = await processStory(t, { at: 'insert', passing: 2 }, chunkSizeAfter)
      // Overrides that the first worker wrote for later merges are superseded by then.
      assert.deepEqual(withoutVersions(seen), withoutVersions(undisturbed))
      const versions = versionsOf(seen)
      for (const [distinctId, version] of versionsOf(undisturbed)) assert.ok(versions.get(distinctId)! >= version)
    })
})

type Persons = { persons: { distinctIds: [id: string, version: number][] }[] }

function withoutVersions(seen: object): object {
  const { persons } = seen as Persons
  return { ...seen, persons: persons.map(person => ({ ...person, distinctIds: person.distinctIds.map(([id]) => id) })) }
}

function versionsOf(seen: object): Map<string, number> {
  return new Map((seen as Persons).persons.flatMap(({ distinctIds }) => distinctIds))
}

describe('an event that is in two segments of the log', () => {
  it('is stored once, and both records are counted as processed', async t => {
    const dataFolder = tempDir(t)
    const projectId = makeState(dataFolder)
    const folder = join(dataFolder, 'log')
    // One frame fills a segment, so that repeats and originals are in different files.
    const log = await openSqliteLogWriter({ folder, nowMs: clock.nowMs, logBytesMax: 2 ** 30, segmentBytesMax: 1 })
    const repeatedEvents = story(projectId).slice(0, 5)
    for (const event of [...repeatedEvents, ...repeatedEvents]) await log.append('live', encodedEvents([event]))
    await log.close()
    assert.ok(readdirSync(join(folder, 'main')).filter(name => name.endsWith('.db')).length > 1)

    await work(dataFolder, null)
    const seen = (await readResult(dataFolder, projectId)) as { events: { uuid: string }[]; outcomes: unknown }
    assert.deepEqual(
      seen.events.map(event => event.uuid).toSorted(),
      repeatedEvents.map(event => event.uuid),
    )
    assert.deepEqual(
      seen.outcomes,
      [{ outcome: 'stored', reason: '', count: 10 }],
      'repeats are included in the balance',
    )
  })
})
