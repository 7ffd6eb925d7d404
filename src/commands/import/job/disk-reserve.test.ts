import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JobStopped } from '#importer/job/job-paused.ts'
import { createSpaceWait, diskReserve, retryWhenDiskFull } from './disk-reserve.ts'

const mebibyte = 2 ** 20

/** @param sizes of a disk, in MiB. */
function findSpaceProblemOn(
  sizes: { free: number; total: number },
  freeBytesMin: number,
  nextBytes = 0,
): string | null {
  const look = () => ({ freeBytes: sizes.free * mebibyte, totalBytes: sizes.total * mebibyte })
  return diskReserve('/job', freeBytesMin, look)(nextBytes)
}

describe('the reserve on the disk of an import', () => {
  it('is a quarter more than the free disk below which capture stops', () => {
    assert.equal(findSpaceProblemOn({ free: 125, total: 1_000 }, 100 * mebibyte), null)
    assert.match(
      findSpaceProblemOn({ free: 124, total: 1_000 }, 100 * mebibyte)!,
      /^WARNING: the disk of \/job is full except for a reserve: 124\.0 MiB are free; 125\.0 MiB .* stay free .*free disk space, and the command continues.* lower PENNON_MIN_FREE_BYTES/,
    )
  })

  it('must also remain free beside a file of known size', () => {
    assert.equal(findSpaceProblemOn({ free: 200, total: 1_000 }, 100 * mebibyte, 75 * mebibyte), null)
    const message = /200\.0 MiB are free, and incoming files need 76\.0 MiB; 125\.0 MiB/
    assert.match(findSpaceProblemOn({ free: 200, total: 1_000 }, 100 * mebibyte, 76 * mebibyte)!, message)
  })

  it('stops an import on a disk that is smaller than the reserve, with a remedy', () => {
    assert.throws(
      () => findSpaceProblemOn({ free: 90, total: 124 }, 100 * mebibyte),
      (error: unknown) =>
        error instanceof JobStopped &&
        /has 124\.0 MiB in total.*125\.0 MiB.*lower PENNON_MIN_FREE_BYTES/.test(error.message),
    )
  })

  it('is nothing if PENNON_MIN_FREE_BYTES is 0', () => {
    assert.equal(findSpaceProblemOn({ free: 0, total: 1 }, 0), null)
  })
})

const diskFull = (code: string) => Object.assign(new Error('no space'), { code })

/** A stage that fails with these codes, then succeeds, on a disk with these free bytes at each look; the last one repeats. */
function aWait(failures: readonly string[], freeBytes: readonly number[]) {
  const said: string[] = []
  let [calls, looks, nowMs] = [0, 0, 0]
  let looksBeforeSaying = -1
  const interrupted = new AbortController()
  const ended = retryWhenDiskFull(
    async () => {
      const code = failures[calls++]
      if (code !== undefined) throw diskFull(code)
      return 'done'
    },
    '/job',
    {
      progress: {
        say: line => {
          looksBeforeSaying = looks
          said.push(line)
        },
        waiting: reason => said.push(`waiting: ${reason}`),
      },
      signal: interrupted.signal,
      clock: {
        nowMs: () => nowMs,
        sleep: async (ms, signal) => {
          nowMs += ms
          signal.throwIfAborted()
        },
        random: () => 0,
      },
    },
    () => ({ freeBytes: freeBytes[Math.min(looks++, freeBytes.length - 1)]!, totalBytes: 0 }),
  )
  return {
    said,
    ended,
    interrupted,
    calls: () => calls,
    nowMs: () => nowMs,
    looksBeforeSaying: () => looksBeforeSaying,
  }
}

describe('a stage on a disk that is full', () => {
  it('runs again once space is freed, and reports the wait', async () => {
    const wait = aWait(['ENOSPC', 'SQLITE_FULL'], [0, 10, mebibyte - 1, mebibyte, 5, mebibyte + 5])
    assert.equal(await wait.ended, 'done')
    assert.equal(wait.calls(), 3)
    const message = /WARNING: the disk of \/job is full/
    assert.match(wait.said[0]!, message)
    assert.deepEqual(wait.said.slice(1, 3), ['waiting: the disk is full', 'waiting: null'])
    assert.match(wait.said[3]!, message)
  })

  it('measures the free space before it reports the wait, since space may be freed at once', async () => {
    const wait = aWait(['ENOSPC'], [0, mebibyte])
    await wait.ended
    assert.equal(wait.looksBeforeSaying(), 1)
  })

  it('is retried after a while even if no byte is freed, as under a quota', async () => {
    const wait = aWait(['EDQUOT', 'EDQUOT', 'EDQUOT', 'EDQUOT', 'EDQUOT', 'EDQUOT'], [5 * mebibyte])
    assert.equal(await wait.ended, 'done')
    assert.equal(wait.nowMs(), (1 + 2 + 4 + 8 + 10 + 10) * 60_000)
  })

  it('stops waiting when interrupted, and fails at once for any other error', async () => {
    const wait = aWait(['ENOSPC'], [0])
    wait.interrupted.abort(new Error('paused'))
    await assert.rejects(wait.ended, /no space|paused/)
    await assert.rejects(aWait(['EACCES'], [0]).ended, /no space/)
  })
})

describe('a stage on a disk that has only the reserve left', () => {
  /** A wait on a disk with these MiB above the reserve at each look. */
  function aPause(aboveReserve: readonly number[], isInterrupted = false) {
    const said: string[] = []
    let [looks, sleeps] = [0, 0]
    const waitForSpace = createSpaceWait(
      bytes =>
        aboveReserve[Math.min(looks++, aboveReserve.length - 1)]! * mebibyte < bytes ? 'WARNING: no space' : null,
      {
        progress: { say: line => said.push(line), waiting: reason => said.push(`waiting: ${reason}`) },
        signal: isInterrupted ? AbortSignal.abort(new Error('paused')) : new AbortController().signal,
        clock: {
          nowMs: () => 0,
          sleep: async (_, signal) => {
            signal.throwIfAborted()
            sleeps++
          },
          random: () => 0,
        },
      },
    )
    return { said, ended: waitForSpace(), sleeps: () => sleeps }
  }

  it('waits, says so once, and continues when there is 1 MiB above the reserve', async () => {
    const pause = aPause([-1, -1, 0.5, 1])
    await pause.ended
    assert.deepEqual(pause.said, ['WARNING: no space', 'waiting: the disk is full', 'waiting: null'])
    assert.equal(pause.sleeps(), 2)
  })

  it('says nothing while there is space, and stops waiting when interrupted', async () => {
    const pause = aPause([0])
    await pause.ended
    assert.deepEqual(pause.said, [])
    await assert.rejects(aPause([-1], true).ended, /paused/)
  })
})
