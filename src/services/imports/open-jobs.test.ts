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
  const failing = { is: false }
  const jobs = {
    findImportJobByPublicId: async (id: number) => {
      asked.push(id)
      if (failing.is) throw new Error('away')
      return id === job.publicId ? job : null
    },
  }
  return { clock, asked, failing, openJobs: createOpenJobs({ jobs, clock }) }
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

  it('are looked up for so many guesses alone, also when all of them come side by side', async () => {
    const { asked, openJobs } = prepare()
    const answers = await Promise.all(Array.from({ length: 400 }, (_, id) => openJobs.find(id + 1, 'guesser')))
    assert.equal(asked.length, unknownPerMinuteMax)
    assert.equal(answers.filter(answer => answer === 'too_many').length, 400 - unknownPerMinuteMax)
  })

  it('do not count against the network that names them, nor do questions that fail', async () => {
    const { clock, failing, openJobs } = prepare()
    for (let time = 0; time < 2 * unknownPerMinuteMax; time++) {
      assert.deepEqual(await openJobs.find(job.publicId, 'a'), known)
      failing.is = true
      await assert.rejects(openJobs.find(7, 'a'), /away/)
      failing.is = false
      clock.advance(100)
    }
    await guess(openJobs, unknownPerMinuteMax, 'a')
  })
})
