import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import { formatJobFailure, type JobFailure } from '#core/imports/job-failure.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import type { ImportWorkDeps } from './job-batch.ts'
import { createJobFailureTracker } from './job-failures.ts'

function prepare() {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const noted: (JobFailure | null)[] = []
  let job = { id: 2, projectId: 1, failure: null } as ImportJob
  const jobs = {
    recordImportFailure: async (_: number, failure: JobFailure | null) => {
      noted.push(failure)
      job = { ...job, failure }
    },
  } as ImportWorkDeps['jobs']
  let nowMs = 0
  const failures = createJobFailureTracker({ jobs, clock, logger: createSilentLogger(), random: () => 1 }, () => nowMs)
  return {
    noted,
    failures,
    clock,
    job: () => job,
    wait: (ms: number) => {
      nowMs += ms
    },
  }
}

describe('a failing import job', () => {
  it('is retried after growing waits, and without a wait once it makes progress', async () => {
    const { failures, job, wait } = prepare()
    assert.ok(failures.isDue(2))
    for (const waitMs of [50, 100, 200]) {
      await failures.note(job(), new PortError('event-store', 'unavailable'))
      wait(waitMs - 1)
      assert.ok(!failures.isDue(2))
      wait(1)
      assert.ok(failures.isDue(2))
    }
    await failures.note(job(), new PortError('event-store', 'unavailable'))
    await failures.forget(job())
    assert.ok(failures.isDue(2))
  })

  it('reports why and since when it fails, once for each reason', async () => {
    const { failures, job, noted, clock } = prepare()
    const sinceMs = clock.nowMs()
    for (const cause of [
      new PortError('event-store', 'unavailable'),
      new PortError('event-store', 'unavailable'),
      new QueryTooLargeError('event-store', 'full', new Error('rows')),
      new TypeError('ours'),
      new PortError('evaluation', 'full'),
    ]) {
      await failures.note(job(), cause)
      clock.advance(1_000)
    }
    await failures.forget(job())
    await failures.forget(job())
    assert.deepEqual(noted, [
      { code: 'event_store_unavailable', sinceMs },
      { code: 'event_store_full', sinceMs },
      { code: 'internal_error', sinceMs },
      null,
    ])
  })

  it('has a readable message for every error code, even for unknown codes', () => {
    assert.equal(formatJobFailure('event_store_unavailable'), 'the event store cannot be reached')
    assert.match(formatJobFailure('of a later version'), /instance’s log/)
  })
})
