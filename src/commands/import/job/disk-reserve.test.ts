import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JobStopped } from '#importer/job/job-paused.ts'
import { quickClock } from '../../../../tests/support/fixed-clock.ts'
import { createDiskSpaceCheck, createSpaceWaiter, retryWhenDiskFull } from './disk-reserve.ts'

const mebibyte = 2 ** 20

describe('the disk reserve of an import', () => {
  /** @param sizes in MiB. */
  function findSpaceProblem(sizes: { free: number; total: number; min?: number; next?: number }): string | null {
    const { free, total, min = 100, next = 0 } = sizes
    const look = () => ({ freeBytes: free * mebibyte, totalBytes: total * mebibyte })
    return createDiskSpaceCheck('/job', min * mebibyte, look)(next * mebibyte)
  }

  it('is a quarter more than the free space below which capture stops', () => {
    assert.equal(findSpaceProblem({ free: 125, total: 1_000 }), null)
    assert.match(
      findSpaceProblem({ free: 124, total: 1_000 })!,
      /^WARNING: the disk of \/job is full except for a reserve: 124\.0 MiB are free; 125\.0 MiB .* stay free .*free disk space, and the command continues.* lower PENNON_MIN_FREE_BYTES/,
    )
    assert.equal(findSpaceProblem({ free: 0, total: 1, min: 0 }), null, 'PENNON_MIN_FREE_BYTES is 0')
  })

  it('must also remain free after a file of known size is written', () => {
    assert.equal(findSpaceProblem({ free: 200, total: 1_000, next: 75 }), null)
    const message = /200\.0 MiB are free, and incoming files need 76\.0 MiB; 125\.0 MiB/
    assert.match(findSpaceProblem({ free: 200, total: 1_000, next: 76 })!, message)
  })

  it('stops an import on a disk that is smaller than the reserve, and says what to do', () => {
    const message = /has 124\.0 MiB in total.*125\.0 MiB.*lower PENNON_MIN_FREE_BYTES/
    assert.throws(
      () => findSpaceProblem({ free: 90, total: 124 }),
      (error: unknown) => error instanceof JobStopped && message.test(error.message),
    )
  })
})

/** Records what a wait says, and after how many looks at the disk. */
function aWait(looks: () => number) {
  const said: string[] = []
  const interrupted = new AbortController()
  const clock = quickClock(0)
  const progress = {
    say: (line: string) => said.push(`${line} after ${looks()}`),
    waiting: (reason: string | null) => said.push(`waiting: ${reason}`),
  }
  return { said, interrupted, clock, options: { progress, signal: interrupted.signal, clock } }
}

describe('an import stage on a full disk', () => {
  /** A stage that fails with these codes, then succeeds; the last number of free bytes repeats. */
  function aStage(failures: readonly string[], freeBytes: readonly number[]) {
    let [calls, looks] = [0, 0]
    const wait = aWait(() => looks)
    const stage = async () => {
      const code = failures[calls++]
      if (code !== undefined) throw Object.assign(new Error('no space'), { code })
      return calls
    }
    const look = () => ({ freeBytes: freeBytes[Math.min(looks++, freeBytes.length - 1)]!, totalBytes: 0 })
    return { ...wait, calls: retryWhenDiskFull(stage, '/job', wait.options, look) }
  }

  it('runs again when enough space is free, and reports when it starts and stops waiting', async () => {
    const { said, calls } = aStage(['ENOSPC', 'SQLITE_FULL'], [0, 10, mebibyte - 1, mebibyte, 5, mebibyte + 5])
    assert.equal(await calls, 3)
    assert.match(said[0]!, /^WARNING: the disk of \/job is full.* after 1$/)
    assert.deepEqual(said.slice(1, 3), ['waiting: the disk is full', 'waiting: null'])
    assert.match(said[3]!, /^WARNING: the disk of \/job is full.* after 5$/)
  })

  it('is retried after a while even if no byte is freed, as under a quota', async () => {
    const { calls, clock } = aStage(Array(6).fill('EDQUOT'), [5 * mebibyte])
    assert.equal(await calls, 7)
    assert.equal(clock.sleptMs(), (1 + 2 + 4 + 8 + 10 + 10) * 60_000)
  })

  it('stops waiting when interrupted, and fails at once for an error other than a full disk', async () => {
    const { calls, interrupted } = aStage(['ENOSPC'], [0])
    interrupted.abort(new Error('paused'))
    await assert.rejects(calls, /no space|paused/)
    await assert.rejects(aStage(['EACCES'], [0]).calls, /no space/)
  })
})

describe('an import stage on a disk that has only the reserve left', () => {
  /** A wait on a disk with these MiB above the reserve at each look. */
  function aPause(aboveReserve: readonly number[]) {
    let looks = 0
    const wait = aWait(() => looks)
    const find = (bytes: number) =>
      aboveReserve[Math.min(looks++, aboveReserve.length - 1)]! * mebibyte < bytes ? 'WARNING: no space' : null
    return { ...wait, waitForSpace: createSpaceWaiter(find, wait.options) }
  }

  it('waits, says so once, and continues when there is 1 MiB above the reserve', async () => {
    const { said, clock, waitForSpace } = aPause([-1, -1, 0.5, 1])
    await waitForSpace()
    assert.deepEqual(said, ['WARNING: no space after 1', 'waiting: the disk is full', 'waiting: null'])
    assert.equal(clock.waits.length, 2)
  })

  it('says nothing while there is space, and stops waiting when interrupted', async () => {
    const pause = aPause([0])
    await pause.waitForSpace()
    assert.deepEqual(pause.said, [])
    const { interrupted, waitForSpace } = aPause([-1])
    interrupted.abort(new Error('paused'))
    await assert.rejects(waitForSpace(), /paused/)
  })
})
