// Restoring rows that the event store lost, or may have lost, while their job is being published or discarded.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import { PortError } from '#ports/port-error.ts'
import { type RestoreDeps, restoreEvents } from '#services/processing/restore-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { openSqliteState } from '../support/state.ts'
import { anEvent, anImportedEvent, noSalts, recordsAt } from '../support/values.ts'
import { wrapMethods } from '../support/with-methods.ts'
import { type ImportWorld, importWorld } from '../support/world/import-world.ts'
import { shownBy } from './jobs/never-sent.ts'

/** Restores the rows of a chunk's events. Calls `meanwhile` after the rows were computed and before they are inserted. */
async function restore(
  world: ImportWorld,
  captured: readonly CapturedEvent[],
  meanwhile?: () => Promise<void>,
): Promise<void> {
  let isDone = false
  const { chunks, clock, events, management } = world
  const inserting: RestoreDeps['events'] = {
    findChargedTimes: identities => events.findChargedTimes(identities),
    findOverrides: ids => events.findOverrides(ids),
    findFlagCalls: calls => events.findFlagCalls(calls),
    publishJob: id => events.publishJob(id),
    discardJob: id => events.discardJob(id),
    deleteSharedJobRows: id => events.deleteSharedJobRows(id),
    insert: async rows => {
      if (!isDone) {
        isDone = true
        await meanwhile?.()
      }
      return events.insert(rows)
    },
  }
  const isImport = captured[0]!.lane === 'historical'
  const info = isImport
    ? ({ stream: 'historical', traffic: 'import' } as const)
    : ({ stream: 'main', traffic: 'live' } as const)
  const records = recordsAt(captured.map(event => ({ kind: 'event', event })))
  const range = { fromOffset: 0, toOffset: records.length }
  await restoreEvents(
    info.stream,
    range,
    {
      log: {
        read: async (_, offset) => ({ ...info, records, nextOffset: Math.max(offset, records.length) }) as never,
      },
      ...{ logId: 'log', state: chunks, events: inserting, jobs: management, geoip: null, saltOf: noSalts, clock },
      ...{ metrics: createMetrics(), logger: createSilentLogger(), random: () => 0.5 },
    },
    new AbortController().signal,
  )
}

/** Restores the row of a pending job's event, which was lost. */
async function restoreWhile(t: TestContext, meanwhile: (world: ImportWorld, job: ImportJob) => Promise<void>) {
  const world = await importWorld(t, openSqliteState)
  const job = await world.createJob()
  const event = anImportedEvent('e', 'a', 86_400_000, {}, { importJobId: job.id })
  await world.apply(event)
  world.events.pending.length = 0
  await restore(world, [event], () => meanwhile(world, job))
  return [world.events.pending.length, world.events.rows.size]
}

describe('restoring rows of an import job', () => {
  it('restores rows of a pending job as pending', async t => {
    assert.deepEqual(await restoreWhile(t, async () => undefined), [1, 0])
  })

  it('restores rows as visible if the job is published during the restore', async t => {
    assert.deepEqual(await restoreWhile(t, (world, job) => world.publish(job)), [0, 1])
  })

  it('restores no rows if the job is discarded during the restore', async t => {
    assert.deepEqual(await restoreWhile(t, (world, job) => world.discard(job)), [0, 0])
  })

  it('restores no rows if the job is discarded and its record deleted during the restore', async t => {
    const rows = restoreWhile(t, async (world, job) => {
      await world.discard(job)
      await world.management.deleteDiscardedJobs(1, 0)
    })
    assert.deepEqual(await rows, [0, 0])
  })
})

describe('restoring rows of a published job, after a worker was killed while it undid the job', () => {
  const day = 86_400_000
  const live = [
    anEvent('e', 'user', { $set: { live: 1 } }, { timestampMs: 20 * day }),
    anEvent('e', 'device', {}, { timestampMs: 20 * day }),
  ]
  const imported = (importJobId: number) =>
    anImportedEvent('$identify', 'user', day, { $anon_distinct_id: 'device', $set: { k: 1 } }, { importJobId })

  /** Fails at the first call of the method, as if the worker had been killed there. */
  async function undoUntil(world: ImportWorld, name: string): Promise<void> {
    const failing = <Port extends object>(port: Port): Port =>
      wrapMethods(port, async (each, run) => {
        if (each === name) throw new PortError('state', 'unavailable')
        return run()
      })
    const over = { state: failing(world.chunks), jobs: failing(world.management), events: failing(world.events) }
    world.clock.advance(10_000)
    await assert.rejects(world.work(over).workNow(new AbortController().signal), PortError)
  }

  for (const method of ['updateImportJob', 'listJobIds', 'commitChunk', 'discardJob', 'clearImportJob'])
    it(`leaves the rows that the undo needs, when it was killed at ${method}`, async t => {
      const world = await importWorld(t, openSqliteState)
      await world.apply(...live)
      const before = await shownBy(world)
      const job = await world.publishEvents(imported(0))
      await world.startDiscarding(job)
      await undoUntil(world, method)
      await restore(world, [imported(job.id)])
      await world.discard(job)
      assert.deepEqual(await world.notes(job), {})
      assert.deepEqual(await shownBy(world), before)
    })
})

it('leaves a live event before a job that was published between storing and restoring the event', async t => {
  const day = 86_400_000
  const world = await importWorld(t, openSqliteState)
  const live = [
    anEvent('e', 'other', {}, { timestampMs: 20 * day }),
    anEvent('$identify', 'user', { $anon_distinct_id: 'device' }, { timestampMs: 20 * day }),
  ]
  await world.apply(...live)
  const before = await shownBy(world)
  const job = await world.publishEvents(
    anImportedEvent('$identify', 'other', day, { $anon_distinct_id: 'device', $set: { k: 1 } }),
  )
  world.clock.advance(1_000)
  await restore(world, live)
  await world.discard(job)
  assert.deepEqual(await shownBy(world), before)
  assert.deepEqual(await world.notes(job), { cannot_merge_already_identified: 1 })
})
