import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSliceQueue, type SlicedWork, unfinished } from './slice-queue.ts'

const sliceMs = 10

describe('a slice queue', () => {
  it('spends one slice of each turn on all waiting work, including work that has just arrived', async () => {
    const { queue, pieces, turn, booked } = world()
    const runs: unknown[] = []
    let turnCount = 0
    for (; runs.length < 12 || booked() > 0; turnCount++) {
      // Three runs arrive in each of four turns, the second time between two slices.
      if (runs.length < 12) for (let count = 0; count < 3; count++) runs.push(queue.run(pieces(`${runs.length}`, 25)))
      const tookMs = turn()
      assert.ok(tookMs <= sliceMs + 4, `${tookMs} ms in turn ${turnCount}`)
    }
    assert.deepEqual(
      await Promise.all(runs),
      runs.map((_run, index) => `${index}`),
    )
    assert.ok(turnCount <= (2 * 12 * 25) / sliceMs, `${turnCount} turns`)
  })

  it('serves work in the order of arrival, each item to its end', async () => {
    const { queue, pieces, steps, turn, turnsUntilIdle } = world()
    const order: unknown[] = []
    const run = (name: string, lengthMs: number) =>
      Promise.resolve(queue.run(pieces(name, lengthMs))).then(made => order.push(made))
    const runs = [run('a', 25), run('b', 25)]
    turn()
    // It arrives in a turn between two slices, where it would fit in.
    runs.push(run('c', 8))
    turnsUntilIdle()
    await Promise.all(runs)
    assert.deepEqual(order, ['a', 'b', 'c'])
    // On arrival, the others do one piece each, until they first check the time.
    assert.equal(steps.join(''), `${'a'.repeat(11)}bc${'a'.repeat(14)}${'b'.repeat(24)}${'c'.repeat(7)}`)
  })

  it('returns a result at once for work that ends before its first time check, even while other work waits', async () => {
    const { queue, pieces, turnsUntilIdle } = world()
    const long = queue.run(pieces('long', 100))
    assert.equal(
      queue.run(() => 'short'),
      'short',
    )
    assert.ok(long instanceof Promise)
    turnsUntilIdle()
    assert.equal(await long, 'long')
  })

  it('returns a result at once for work that fits into the rest of the turn’s slice', async () => {
    const { queue, pieces, turn, booked } = world()
    assert.equal(booked(), 0)
    assert.equal(queue.run(pieces('a', 5)), 'a')
    assert.equal(queue.run(pieces('b', 4)), 'b')
    const late = queue.run(pieces('c', 6))
    assert.ok(late instanceof Promise)
    turn()
    turn()
    assert.equal(await late, 'c')
    turn()
    assert.equal(booked(), 0, 'no callback is scheduled when no work waits')
    assert.equal(queue.run(pieces('d', 9)), 'd')
  })

  it('passes an error only to the caller whose work failed', async () => {
    const { queue, pieces, turnsUntilIdle } = world()
    const failing = (failsAtMs: number): SlicedWork<string> => {
      const work = pieces('failing', 40)
      let calls = 0
      return isTimeUp => {
        if (++calls > failsAtMs) throw new Error('broken')
        return work(isTimeUp)
      }
    }
    const before = queue.run(pieces('before', 30))
    const broken = queue.run(failing(1))
    const after = queue.run(pieces('after', 30))
    assert.throws(() => queue.run(failing(0)), /broken/)
    const rejected = assert.rejects(broken as Promise<string>, /broken/)
    turnsUntilIdle()
    assert.deepEqual(await Promise.all([before, after]), ['before', 'after'])
    await rejected
  })

  it('refuses work above the limit on waiting work, unless it can run at once', async () => {
    const { queue, pieces, turnsUntilIdle } = world({ waitingMax: 2 })
    const waiting = [queue.run(pieces('a', 30)), queue.run(pieces('b', 30))]
    assert.equal(queue.run(pieces('c', 30)), 'full')
    assert.equal(
      queue.run(() => 'short'),
      'short',
    )
    turnsUntilIdle()
    assert.deepEqual(await Promise.all(waiting), ['a', 'b'])
    const again = queue.run(pieces('d', 30))
    turnsUntilIdle()
    assert.equal(await again, 'd')
  })

  it('continues by itself in later turns of the event loop', async () => {
    let nowMs = 0
    const queue = createSliceQueue({ sliceMs: 1, waitingMax: 10, monotonicNowMs: () => nowMs })
    const work = (): SlicedWork<number> => {
      let left = 5
      return isTimeUp => {
        while (left-- > 0) {
          nowMs++
          if (isTimeUp()) return unfinished
        }
        return 1
      }
    }
    assert.deepEqual(await Promise.all([queue.run(work()), queue.run(work())]), [1, 1])
  })
})

/** A clock that only work moves, and turns of the event loop that the test runs itself. */
function world({ waitingMax = 100 } = {}) {
  let nowMs = 1_000
  let turnBeganMs = nowMs
  let callbacks: (() => void)[] = []
  const steps: string[] = []
  const queue = createSliceQueue({
    sliceMs,
    waitingMax,
    monotonicNowMs: () => nowMs,
    inNextTurn: callback => void callbacks.push(callback),
  })
  /**
   * Ends a turn as the event loop does: after requests arrived, runs due callbacks.
   * @returns how long both took, ms.
   */
  const turn = () => {
    const due = callbacks
    callbacks = []
    for (const callback of due) callback()
    const tookMs = nowMs - turnBeganMs
    turnBeganMs = nowMs
    return tookMs
  }
  return {
    queue,
    steps,
    turn,
    turnsUntilIdle: () => {
      while (callbacks.length > 0) turn()
    },
    booked: () => callbacks.length,
    /** Work that checks the time after each ms. */
    pieces: (name: string, lengthMs: number): SlicedWork<string> => {
      let leftMs = lengthMs
      return isTimeUp => {
        while (leftMs > 0) {
          nowMs++
          leftMs--
          steps.push(name)
          if (leftMs > 0 && isTimeUp()) return unfinished
        }
        return name
      }
    },
  }
}
