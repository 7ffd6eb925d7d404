import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DescribedImportJob } from '#core/imports/import-job.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createOpenJobs, unknownPerMinuteMax } from './open-jobs.ts'

const known = { id: 3, projectId: 1, state: 'sending' } as const
const job = {
  ...known,
  publicId: 2 ** 45,
  plan: { text: 'x' },
  progress: { text: 'x' },
} as unknown as DescribedImportJob

function prepare() {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const asked: number[] = []
  const jobs = {
    findImportJobByPublicId: async (id: number) => {
      asked.push(id)
      return id === job.publicId ? job : null
    },
  }
  return { clock, asked, openJobs: createOpenJobs({ jobs, clock }) }
}

async function guess(openJobs: ReturnType<typeof createOpenJobs>, count: number, address: string): Promise<void> {
  for (let id = 1; id <= count; id++) assert.equal(await openJobs.find(id, address), null)
}

describe('the jobs that a front takes events for', () => {
  it('are asked for once a second', async () => {
    const { clock, asked, openJobs } = prepare()
    for (const advanceMs of [0, 500, 600]) {
      clock.advance(advanceMs)
      assert.deepEqual(await openJobs.find(job.publicId, 'a'), known, 'without its plan and progress')
    }
    assert.deepEqual(asked, [job.publicId, job.publicId])
  })

  it('are not looked up for an address that named too many unknown ones, until the next minute', async () => {
    const { clock, asked, openJobs } = prepare()
    await guess(openJobs, unknownPerMinuteMax, 'guesser')
    assert.equal(await openJobs.find(job.publicId, 'guesser'), 'too_many')
    assert.equal(asked.length, unknownPerMinuteMax)
    assert.deepEqual(await openJobs.find(job.publicId, 'importer'), known)
    clock.advance(60_000)
    assert.equal(await openJobs.find(99, 'guesser'), null)
  })

  it('stay open to an importer that has the address of a guesser', async () => {
    const { clock, openJobs } = prepare()
    await openJobs.find(job.publicId, 'shared')
    await guess(openJobs, unknownPerMinuteMax, 'shared')
    clock.advance(5_000)
    assert.deepEqual(await openJobs.find(job.publicId, 'shared'), known)
  })
})
