import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { retryOnConflict, writeOptimistically } from './write-optimistically.ts'

/** A write that loses to this many other writers first. */
function writeBehind(otherCount: number, lose = async (): Promise<string> => 'late') {
  let tries = 0
  return { tries: () => tries, write: async () => (tries++ < otherCount ? lose() : 'written') }
}

describe('an optimistic write', () => {
  const isLate = (written: string) => written === 'late'

  it('runs again as long as another writer comes first', async () => {
    for (const otherCount of [0, 1, 29]) {
      const { write, tries } = writeBehind(otherCount)
      assert.deepEqual([await writeOptimistically(write, isLate), tries()], ['written', otherCount + 1])
    }
  })

  it('returns the result of the thirtieth try, even if another writer came first again', async () => {
    const { write, tries } = writeBehind(30)
    assert.deepEqual([await writeOptimistically(write, isLate), tries()], ['late', 30])
  })
})

describe('a write that the store may report as a conflict', () => {
  const loseBy = (code: 'conflict' | 'timeout') => () => Promise.reject(new PortError('state', code))

  it('runs again after a conflict, up to five times', async () => {
    const { write, tries } = writeBehind(4, loseBy('conflict'))
    assert.deepEqual([await retryOnConflict(write), tries()], ['written', 5])
    await assert.rejects(retryOnConflict(writeBehind(5, loseBy('conflict')).write), { code: 'conflict' })
  })

  it('does not run again after a failure other than a conflict', async () => {
    const { write, tries } = writeBehind(1, loseBy('timeout'))
    await assert.rejects(retryOnConflict(write), { code: 'timeout' })
    assert.equal(tries(), 1)
  })
})
