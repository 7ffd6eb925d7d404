// Restoring rows that the event store lost, while their job is being published or discarded.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import { type RestoreDeps, restoreEvents } from '#services/processing/restore-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { openSqliteState } from '../support/state.ts'
import { anImportedEvent, noSalts, recordsAt } from '../support/values.ts'
import { type ImportWorld, importWorld } from '../support/world/import-world.ts'

/** Restores the event of a pending job, and calls `meanwhile` between computing the row and inserting it. */
async function restoreWhile(t: TestContext, meanwhile: (world: ImportWorld, job: ImportJob) => Promise<void>) {
  const world = await importWorld(t, openSqliteState)
  const job = await world.createJob()
  const event = anImportedEvent('e', 'a', 86_400_000, {}, { importJobId: job.id })
  await world.apply(event)
  world.events.pending.length = 0
  let isDone = false
  const { chunks, clock, management } = world
  const { events } = world
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
        await meanwhile(world, job)
      }
      return events.insert(rows)
    },
  }
  const records = recordsAt([{ kind: 'event', event }])
  const info = { stream: 'historical', traffic: 'import' } as const
  await restoreEvents(
    'historical',
    { fromOffset: 0, toOffset: records[0]!.offset + 1 },
    {
      log: {
        read: async (_, offset) =>
          ({ ...info, records, nextOffset: Math.max(offset, records[0]!.offset + 1) }) as never,
      },
      ...{ logId: 'log', state: chunks, events: inserting, jobs: management, geoip: null, saltOf: noSalts, clock },
      ...{ metrics: createMetrics(), logger: createSilentLogger(), random: () => 0.5 },
    },
    new AbortController().signal,
  )
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
