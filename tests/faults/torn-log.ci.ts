import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'
import { tearLastCommit } from './torn-log.check.ts'

/** A commit has some 32,000 bytes, and each place takes a file of its own; runs start at different ones. */
const stride = 3

describe('a log whose last commit was torn by a power cut, at every third byte', () => {
  for (const damage of ['truncated', 'garbled'] as const) {
    it(`has all acknowledged units and goes on without overlap (${damage})`, async t => {
      const first = Math.floor(Math.random() * stride)
      const { placeCount, survivedCount } = await tearLastCommit(tempDir(t), damage, { first, stride })
      t.diagnostic(`${placeCount} places, from byte ${first}`)
      assert.ok(placeCount > 2_000)
      assert.equal(survivedCount, 0)
    })
  }
})
