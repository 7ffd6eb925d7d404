import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSpaceWait, retryWhenDiskFull } from './wait-for-space.ts'

const mebibyte = 2 ** 20
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
    {
      folder: { path: '/job' },
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
      freeBytes: () => freeBytes[Math.min(looks++, freeBytes.length - 1)]!,
    },
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
