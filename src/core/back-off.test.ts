import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeBackOffMs } from './back-off.ts'

describe('the wait between retries', () => {
  const waits = { firstMs: 50, longestMs: 5_000 }

  it('doubles up to the longest wait, and then stays the same however often retries fail', () => {
    const full = [0, 1, 2, 6, 7, 50, 5_000].map(attempt => computeBackOffMs(waits, attempt))
    assert.deepEqual(full, [50, 100, 200, 3_200, 5_000, 5_000, 5_000])
  })

  it('is at least half as long with jitter, or even shorter if the given jitter allows that', () => {
    assert.deepEqual(
      [0, 0.5].map(random => computeBackOffMs(waits, 1, random)),
      [50, 75],
    )
    assert.deepEqual(
      [0, 0.5].map(random => computeBackOffMs({ ...waits, jitter: 1 }, 1, random)),
      [0, 50],
    )
  })
})
