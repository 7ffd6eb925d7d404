import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'
import { leaveLastCommitWhole, tearLastCommit } from './torn-log.check.ts'

/** No divisor of the page or frame size, so that samples fall on every part of both. */
const stride = 241

describe('a log whose last commit was torn by a power cut', () => {
  it('has the last unit as well when nothing was torn', async t => {
    assert.deepEqual(await leaveLastCommitWhole(tempDir(t)), { survived: true })
  })

  for (const damage of ['truncated', 'garbled'] as const) {
    it(`has all acknowledged units and goes on without overlap (${damage})`, async t => {
      const first = Math.floor(Math.random() * stride)
      t.diagnostic(`from byte ${first}, every ${stride}`)
      const { placeCount, survivedCount } = await tearLastCommit(tempDir(t), damage, { first, stride })
      assert.ok(placeCount > 100, `${placeCount} places`)
      assert.equal(survivedCount, 0)
    })
  }
})
