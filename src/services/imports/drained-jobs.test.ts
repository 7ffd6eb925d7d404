import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import type { Deferral } from '#ports/state/worker-state.ts'
import { createDrainedJobTracker, type DrainedJobTracker } from './drained-jobs.ts'

describe('a closed import job', () => {
  const job = { id: 1, projectId: 7, state: 'publishing', step: 'draining', updatedAtMs: 1_000_000 } as const
  let nowMs: number
  let position: number
  let endOffset: number
  let deferral: Deferral | null
  let drain: DrainedJobTracker
  const isDrained: DrainedJobTracker['isDrained'] = closed => drain.isDrained(closed)

  beforeEach(() => {
    nowMs = job.updatedAtMs
    ;[position, endOffset, deferral] = [0, 100, null]
    drain = createDrainedJobTracker({
      clock: { nowMs: () => nowMs },
      jobs: {
        findLogPosition: async () => ({ offset: position, committedAtMs: null }),
        findDeferral: async () => deferral,
        updateImportJob: async () => null,
      },
      log: {
        listStreams: async () => [{ stream: 'import', traffic: 'import' as const }],
        // As if the log's clock was ahead: record times must not matter.
        readStreamStatus: async () => ({ endOffset, appendedAtMs: job.updatedAtMs + 600_000 }),
      },
    })
  })

  it('is drained once the worker has processed all records that were in the log when fronts stopped accepting its events', async () => {
    ;[position, nowMs] = [90, job.updatedAtMs + 2_999]
    assert.equal(await isDrained(job), false)
    endOffset = 120
    nowMs = job.updatedAtMs + 3_000
    assert.equal(await isDrained(job), false)
    ;[position, endOffset] = [119, 500]
    assert.equal(await isDrained(job), false)
    position = 120
    assert.equal(await isDrained(job), true)
    drain.keepOnly([2, job.id])
    assert.equal(await isDrained(job), true, 'records that came later are not waited for after its next step failed')
    drain.keepOnly([])
    assert.equal(await isDrained(job), false)
  })

  it('waits for deferred records of its project, but not of other projects', async () => {
    ;[position, nowMs] = [200, job.updatedAtMs + 5_000]
    deferral = { offset: 10, projects: [{ projectId: 8, fromOffset: 5 }] }
    assert.equal(await isDrained(job), true)
    deferral = { offset: 10, projects: [...deferral.projects, { projectId: 7, fromOffset: 50 }] }
    assert.equal(await isDrained(job), false)
    deferral = { ...deferral, offset: 100 }
    assert.equal(await isDrained(job), true)
  })

  it('waits again if it is closed a second time, for all records that are in the log by then', async () => {
    nowMs = job.updatedAtMs + 5_000
    assert.equal(await isDrained(job), false)
    ;[endOffset, position] = [300, 150]
    const later = { ...job, state: 'discarding', updatedAtMs: nowMs } as const
    nowMs += 5_000
    assert.equal(await isDrained(later), false)
    position = 300
    assert.equal(await isDrained(later), true)
  })
})
