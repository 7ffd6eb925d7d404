import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { NamedImportJob } from '#ports/state/import-job-store.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createOpenJobCache, unknownPerMinuteMax } from './open-jobs.ts'

const job: NamedImportJob = { id: 3, projectId: 1, state: 'sending', publicId: 2 ** 45 }

function prepare() {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const asked: (readonly number[])[] = []
  const failing = { is: false }
  const jobs = {
    findNamedImportJobs: async (ids: readonly number[]) => {
      asked.push(ids)
      await new Promise(setImmediate)
      if (failing.is) throw new Error('away')
      return ids.includes(job.publicId) ? [job] : []
    },
  }
  return { clock, asked, failing, openJobs: createOpenJobCache({ jobs, clock }) }
}

async function guess(openJobs: ReturnType<typeof createOpenJobCache>, count: number, address: string): Promise<void> {
  for (let id = 1; id <= count; id++) assert.equal(await openJobs.find(id, address), null)
}

describe('a front that looks up import jobs', () => {
  it('queries a job once a second', async () => {
    const { clock, asked, openJobs } = prepare()
    for (const advanceMs of [0, 500, 600]) {
      clock.advance(advanceMs)
      assert.deepEqual(await openJobs.find(job.publicId, 'a'), job)
    }
    assert.deepEqual(asked, [[job.publicId], [job.publicId]])
  })

  it('finds the job of an importer whose address is shared with a client that guessed too many ids', async () => {
    const { clock, openJobs } = prepare()
    await guess(openJobs, unknownPerMinuteMax, 'shared')
    assert.equal(await openJobs.find(99, 'shared'), 'too_many')
    assert.deepEqual(await openJobs.find(job.publicId, 'shared'), job)
    assert.equal(await openJobs.find(99, 'another'), null)
    clock.advance(60_000)
    assert.equal(await openJobs.find(99, 'shared'), null)
  })

  it('runs one query at a time, however many ids are guessed concurrently', async () => {
    const { asked, openJobs } = prepare()
    const guesses = Promise.all(Array.from({ length: 2_500 }, (_, id) => openJobs.find(id + 1, 'guesser')))
    assert.deepEqual(await openJobs.find(job.publicId, 'guesser'), job)
    assert.equal((await guesses).filter(answer => answer === 'too_many').length, 2_500 - unknownPerMinuteMax)
    assert.deepEqual(
      asked.map(ids => ids.length),
      [1, 1_000, 1_000, 500],
    )
  })

  it('does not count look-ups of known jobs or failed queries as guesses from a network', async () => {
    const { clock, failing, openJobs } = prepare()
    for (let time = 0; time < 2 * unknownPerMinuteMax; time++) {
      assert.deepEqual(await openJobs.find(job.publicId, 'a'), job)
      failing.is = true
      await assert.rejects(openJobs.find(7, 'a'), /away/)
      failing.is = false
      clock.advance(100)
    }
    await guess(openJobs, unknownPerMinuteMax, 'a')
  })
})
