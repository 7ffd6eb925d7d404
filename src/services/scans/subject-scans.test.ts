import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSliceQueue } from '../shared/slice-queue.ts'
import { runScanStep } from './subject-scans.ts'

describe('scans', () => {
  it('share one slice per turn of the event loop, even if each of their steps is short', async () => {
    let nowMs = 100
    const next: (() => void)[] = []
    const inNextTurn = (callback: () => void) => void next.push(callback)
    const slices = createSliceQueue({ monotonicNowMs: () => nowMs, sliceMs: 10, inNextTurn })
    const workedMs = [0, 0, 0]
    const scans = workedMs.map(async (_, index) => {
      for (let piece = 0; piece < 10; piece++)
        await runScanStep(slices, () => {
          workedMs[index]! += 5
          nowMs += 5
          return true
        })
    })
    for (let callback = next.shift(); callback !== undefined; callback = next.shift()) {
      const before = nowMs
      callback()
      await new Promise(setImmediate)
      assert.ok(nowMs - before <= 15, `${nowMs - before} ms in one turn`)
    }
    await Promise.all(scans)
    assert.deepEqual(workedMs, [50, 50, 50])
  })
})
