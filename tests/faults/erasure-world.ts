// A project with a person of whom everything that can be stored is stored, in a real state and a real event store with
// the log in memory, and workers that crash where a test says.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import { encodeRecording } from '#core/log/recording-codec.ts'
import type { ErasureTerms } from '#core/persons/erasure.ts'
import { publishJob } from '#services/imports/manage-jobs.ts'
import { createImportWorker } from '#services/imports/run-import-work.ts'
import { erasePersons } from '#services/manage/erase-persons.ts'
import { createEventProcessor } from '#services/processing/process-events.ts'
import { RunningCalls } from '#services/shared/running-calls.ts'
import { createSerialQueue } from '#services/shared/serial-queue.ts'
import { createErasureWorker, type ErasureFaultPoint } from '#services/worker/erase-persons.ts'
import { createSubjectMirrorUpdater } from '#services/worker/mirror-subjects.ts'
import { createEventStoreRestorer } from '#services/worker/restore-event-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import type { EngineForTests } from '../support/engine-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { createMemoryEventLog, memoryLogStorage } from '../support/memory/memory-event-log.ts'
import type { OpenSqlState } from '../support/state.ts'
import {
  aCapturedEvent,
  aCapturedRecording,
  aCapturedReject,
  aChange,
  aNewCohort,
  encodedEvents,
  noSalts,
} from '../support/values.ts'

export class Crash extends Error {}

export const everything: ErasureTerms = { keepsPerson: false, deletesEvents: true, deletesRecordings: true }

/** Contained in all data of the erased person, and in no other. */
export const mark = 'of-the-erased'

const never = new AbortController().signal

export type ErasureWorld = Awaited<ReturnType<typeof erasureWorld>>

export async function erasureWorld(t: TestContext, open: OpenSqlState, server: EngineForTests) {
  const command = (query: string) => server.clients.write(client => client.command({ query }))
  const rows = async <Row>(query: string): Promise<Row[]> =>
    server.clients.write(async client => (await client.query({ query, format: 'JSONEachRow' })).json<Row>())
  await command('DROP DATABASE IF EXISTS pennon SYNC')
  const { management, chunkStore: chunks, query } = await open(t, [{ geoipEnabled: false }])
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const events = createClickHouseEventStore({ endpoint: server.engine.endpoint, clock })
  t.after(() => events.close())
  await events.migrate()
  const project = await management.findProject(1)
  assert.ok(project)
  await management.followLog({ id: 'log', place: '', formerId: null, begunAt: '' })
  const storage = memoryLogStorage()
  const log = createMemoryEventLog({ storage, nowMs: clock.nowMs })
  const logger = createSilentLogger()
  const counts = { main: 0, historical: 0 }
  let [made, workerCount] = [0, 0]

  const event = (distinctId: string, name: string, over: Partial<CapturedEvent> = {}): CapturedEvent => {
    made++
    const propertiesJson = distinctId.includes(mark) ? `{"text":"${mark}"}` : '{}'
    return aCapturedEvent(made, { distinctId, name, propertiesJson, ...over })
  }
  async function append(...captured: readonly CapturedEvent[]): Promise<void> {
    const traffic = captured[0]!.lane === 'historical' ? 'import' : 'live'
    counts[traffic === 'live' ? 'main' : 'historical'] += captured.length
    await log.append(traffic, encodedEvents(captured))
  }
  const ofJob = (jobId: number) => ({ lane: 'historical', historicalMigration: true, importJobId: jobId }) as const

  /** Processes everything in the log. */
  async function process(): Promise<void> {
    const stopping = new AbortController()
    const ownerId = `worker-${++workerCount}`
    const processor = createEventProcessor({
      ...{ log, logId: 'log', state: chunks, events, geoip: null, saltOf: noSalts, clock, logger, ownerId, underWay },
      ...{ metrics: createMetrics(), limits: { restMs: 0, pollMs: 20 } },
    })
    const ended = processor.run(stopping.signal)
    await eventually(async () => {
      const [main, historical] = await Promise.all(['main', 'historical'].map(name => management.findLogPosition(name)))
      return main!.offset === counts.main && historical!.offset === counts.historical
    })
    stopping.abort()
    await ended
    await mirror().settle(never)
  }

  const changeNow = () => aChange('the key', clock.nowMs())
  const underWay = new RunningCalls()
  const serialize = createSerialQueue()
  const mirror = () =>
    createSubjectMirrorUpdater({ state: management, events, logger, newUuid: () => crypto.randomUUID() })
  const keeper = () =>
    createEventStoreRestorer({
      ...{ log, logId: 'log', state: chunks, events, geoip: null, saltOf: noSalts, clock, logger, serialize },
      metrics: createMetrics(),
      ...{ marks: management, rejectRetentionDays: 30, underWay, expiryClock: clock },
      ...{ newUuid: () => crypto.randomUUID(), random: Math.random, onRestoring: () => undefined },
    })
  const erasures = (faultPoint?: (name: ErasureFaultPoint) => void | Promise<void>) =>
    createErasureWorker({
      ...{ state: management, events, log, logId: 'log', underWay, serialize, clock, logger },
      ...(faultPoint && { faultPoint }),
    })
  const importWork = () => {
    const deps = {
      state: chunks,
      jobs: management,
      events,
      log,
      clock,
      logger,
      random: () => 0.5,
      retentionClock: { nowMs: clock.nowMs, isTrusted: () => true },
    }
    return createImportWorker({ ...deps, ownerId: `worker-${workerCount}`, underWay })
  }

  async function createJob(n: number): Promise<number> {
    const created = await management.createImportJob(
      {
        ...{ publicId: 2 ** 40 + n, projectId: 1, name: 'test', source: 'test', plan: {} },
        ...{ options: { countsInExperiments: false, overwritesLive: false, looksUpGeoip: false } as never },
      },
      { openMax: 1_000, perDayMax: 1_000, keptMax: 1_000 },
      changeNow(),
    )
    assert.ok(created.ok)
    return created.value.id
  }

  const pendingJob = await createJob(1)
  const publishedJob = await createJob(2)
  const secret = `{"$set":{"email":"${mark}@example.com"},"text":"${mark}"}`
  // Both persons have the same data: an anonymous visit, a log-in, earlier imports, a recording, a reject, a warning.
  for (const name of [mark, 'other']) {
    const propertiesJson = name === mark ? secret : '{"$set":{"email":"other@example.com"}}'
    const alias = `{"$anon_distinct_id":"visitor-${name}","$set":{"plan":"${name}"}}`
    await append(
      event(`visitor-${name}`, 'visit', { propertiesJson: `{"$process_person_profile":false,"text":"${name}"}` }),
      event(`visitor-${name}`, 'visit'),
      event(`user-${name}`, 'visit', { propertiesJson }),
      event(`user-${name}`, '$identify', { propertiesJson: alias }),
      event(`user-${name}`, 'visit', { uuid: crypto.randomUUID() }),
      event(`user-${name}`, '$groupidentify', { propertiesJson: `{"$group_type":"${'x'.repeat(500)}"}` }),
    )
    await append(event(`user-${name}`, 'imported', { ...ofJob(pendingJob), propertiesJson }))
    await append(event(`user-${name}`, 'imported', { ...ofJob(publishedJob), propertiesJson }))
    await log.append(
      'live',
      encodeRecording(aCapturedRecording(++made, { distinctId: `user-${name}`, sessionId: name })),
    )
    const refused = new RecordEncoder()
    refused.addReject(
      aCapturedReject({ receivedAtMs: Date.now(), distinctId: `user-${name}`, body: `{"distinct_id":"user-${name}"}` }),
    )
    await log.append('live', refused.finish())
    counts.main += 2
  }
  await process()
  assert.ok((await publishJob({ management }, 1, publishedJob, changeNow())).ok)
  clock.advance(10_000)
  await importWork().workNow(never)
  await query(
    `INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
      SELECT 1, person_id, 'flag', distinct_id FROM person_distinct_id WHERE project_id = 1 AND distinct_id LIKE 'visitor-%'
      RETURNING person_id`,
  )
  const cohort = await management.createCohort(aNewCohort({ projectId: 1, isStatic: true }), aChange(), {})
  assert.ok(cohort.ok)
  const personIds = await management.findPersonIds(1, { distinctIds: [`user-${mark}`, 'user-other'] })
  assert.equal(personIds.length, 2)
  for (const id of personIds)
    await query(
      `INSERT INTO cohort_person (person_id, cohort_id) VALUES (${id}, ${cohort.value.value.id}) RETURNING person_id`,
    )
  await query(
    `INSERT INTO import_assignments (import_job_id, person_uuid, survivor_uuid, own, taken)
      SELECT ${publishedJob}, p.uuid, '', '{"hashKeys":[["flag","' || d.distinct_id || '"]],"cohortIds":[]}', '{}'
      FROM person AS p JOIN person_distinct_id AS d ON d.person_id = p.id
      WHERE d.project_id = 1 AND d.distinct_id LIKE 'user-%' RETURNING person_uuid`,
  )
  await keeper().checkAtStart(never)
  await mirror().settle(never)

  return {
    ...{ management, events, clock, log, command, rows, query, event, append, process, erasures, mirror, keeper },
    ...{ importWork, pendingJob, ofJob, createJob, underWay },
    publishPending: async () => {
      assert.ok((await publishJob({ management }, 1, pendingJob, changeNow())).ok)
      clock.advance(10_000)
      await importWork().workNow(never)
    },
    erase: (terms: ErasureTerms = everything, distinctId = `user-${mark}`) =>
      erasePersons(
        { management, log },
        { projectId: 1, persons: { distinctIds: [distinctId] }, ...terms },
        changeNow(),
      ),
    /** Works until nothing is left to do; a crash is thrown. */
    finish: async (faultPoint?: (name: ErasureFaultPoint) => void | Promise<void>) => {
      const erasing = erasures(faultPoint)
      const crashes: Crash[] = []
      await eventually(
        async () => {
          try {
            await mirror().settle(never)
            return !(await erasing.work())
          } catch (cause) {
            if (!(cause instanceof Crash)) throw cause
            return crashes.push(cause) > 0
          }
        },
        { what: 'the end of the erasures' },
      )
      for (const crash of crashes) throw crash
    },
    /** The tables of either store, `state.…` or `events.…`, that have rows with the text. */
    tablesWith: async (text: string): Promise<string[]> => {
      const found: string[] = []
      for (const table of await stateTables(query))
        if (JSON.stringify(await query(`SELECT * FROM "${table}"`), (_key, value) => asText(value)).includes(text))
          found.push(`state.${table}`)
      for (const { name } of await rows<{ name: string }>("SELECT name FROM system.tables WHERE database = 'pennon'"))
        if (JSON.stringify(await rows(`SELECT * FROM pennon.${name}`)).includes(text)) found.push(`events.${name}`)
      return found.sort()
    },
    /** The data of others, in the tables related to persons. */
    others: async () => {
      const stored = await rows<Record<string, unknown>>(
        `SELECT * EXCEPT (created_at, row_version, erasures_before) FROM pennon.events FINAL
          WHERE position(distinct_id, '${mark}') = 0 ORDER BY event, uuid`,
      )
      const pending = await rows(
        `SELECT uuid, distinct_id FROM pennon.events_pending FINAL WHERE position(distinct_id, '${mark}') = 0`,
      )
      const rest = ['replay_messages', 'rejected_events', 'person_distinct_id_overrides'].map(table =>
        rows(`SELECT * FROM pennon.${table} FINAL WHERE position(distinct_id, '${mark}') = 0 ORDER BY ALL`),
      )
      const persons = await query(
        `SELECT uuid, properties, is_identified FROM person WHERE properties LIKE '%other%' ORDER BY project_id, uuid`,
      )
      const assigned = await query(`SELECT hash_key FROM flag_hash_key_override WHERE hash_key NOT LIKE '%${mark}%'`)
      const kept = await query(`SELECT * FROM import_assignments WHERE own NOT LIKE '%${mark}%'`)
      return { stored, pending, rest: await Promise.all(rest), persons, assigned, kept }
    },
    personOf: async (distinctId: string) => {
      const { results } = await management.listPersons(1, { distinctId, limit: 1, offset: 0 })
      return results[0]!
    },
    erased: async () => (await management.listErasedPersons(1, { limit: 10, offset: 0 })).results,
    outcomes: async () =>
      Object.fromEntries(
        (await management.listOutcomes(1)).map(({ lane, outcome, reason, count }) => [
          `${lane} ${outcome} ${reason}`,
          count,
        ]),
      ),
  }
}

/** SQLite has a table of tables, and so has PostgreSQL, under another name. */
async function stateTables(query: (text: string) => Promise<Record<string, unknown>[]>): Promise<string[]> {
  const names = await query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").catch(
    () => query("SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"),
  )
  return names.map(({ name }) => String(name))
}

function asText(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
