import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createScanPace } from './scan-pace.ts'

describe('the pace of scans', () => {
  it('is one slice per turn of the event loop, however many scans are running', async () => {
    let nowMs = 100
    const next: (() => void)[] = []
    const pace = createScanPace({
      monotonicNowMs: () => nowMs,
      sliceMs: 10,
      inNextTurn: callback => next.push(callback),
    })
    const workedMs = [0, 0, 0]
    let turns = 0
    const scans = workedMs.map(async (_, index) => {
      while (workedMs[index]! < 50) {
        workedMs[index]! += 5
        nowMs += 5
        if (pace.isTimeUp()) await pace.turn()
      }
    })
    for (let callback = next.shift(); callback !== undefined; callback = next.shift()) {
      turns++
      const before = nowMs
      callback()
      await new Promise(setImmediate)
      assert.ok(nowMs - before <= 10, `${nowMs - before} ms in one turn`)
      assert.equal(next.length <= 1, true, 'no turn has two slices')
    }
    await Promise.all(scans)
    assert.deepEqual(workedMs, [50, 50, 50])
    assert.ok(turns >= 3 * (50 / 10 - 1), `${turns} turns`)
  })
})
