import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'
import { tearLastCommit } from './torn-log.check.ts'

describe('a log whose last commit was torn by a power cut, at every byte', () => {
  for (const damage of ['truncated', 'garbled'] as const) {
    it(`has all acknowledged units and goes on without overlap (${damage})`, async t => {
      const { placeCount, survivedCount } = await tearLastCommit(tempDir(t), damage, { first: 0, stride: 1 })
      t.diagnostic(`${placeCount} places`)
      assert.ok(placeCount > 2_000)
      assert.equal(survivedCount, 0)
    })
  }
})
