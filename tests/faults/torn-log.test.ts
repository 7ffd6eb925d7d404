import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'
import { leaveLastCommitWhole, tearLastCommit } from './torn-log.check.ts'

/** These do not divide the page or frame size, so that samples fall on every part of both. */
const strides = { recordStride: 61, restStride: 241 }

describe('a log whose last commit was torn by a power cut', () => {
  it('has a readable last unit if the power cut damaged nothing', async t => {
    assert.deepEqual(await leaveLastCommitWhole(tempDir(t)), { survived: true })
  })

  for (const damage of ['truncated', 'garbled'] as const) {
    it(`keeps all acknowledged units intact, and appending continues without overlap (${damage})`, async t => {
      const first = Math.floor(Math.random() * strides.restStride)
      t.diagnostic(`from byte ${first}`)
      const torn = await tearLastCommit(tempDir(t), damage, { ...strides, first })
      assert.ok(torn.recordPlaceCount > 30, `${torn.recordPlaceCount} places in the record`)
      assert.ok(torn.placeCount > 150, `${torn.placeCount} places`)
      assert.equal(torn.survivedCount, 0)
    })
  }
})
