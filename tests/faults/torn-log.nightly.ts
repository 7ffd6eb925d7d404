import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'
import { tearLastCommit } from './torn-log.check.ts'

/**
 * The commit is a page of 32 KiB, and each position takes some ms, mostly for syncing; runs start at different
 * positions.
 */
const restStride = 12

describe('a log whose last commit was torn by a power cut, at every byte of its record', () => {
  for (const damage of ['truncated', 'garbled'] as const) {
    it(`keeps all acknowledged units intact, and appending continues without overlap (${damage})`, async t => {
      const places = { recordStride: 1, restStride, first: Math.floor(Math.random() * restStride) }
      const torn = await tearLastCommit(tempDir(t), damage, places)
      t.diagnostic(
        `${torn.placeCount} places, ${torn.recordPlaceCount} of them in the record, from byte ${places.first}`,
      )
      assert.ok(torn.recordBytes > 2_000, `a record of ${torn.recordBytes} bytes`)
      assert.equal(torn.recordPlaceCount, torn.recordBytes)
      assert.ok(torn.placeCount > torn.recordBytes + 2_000, `${torn.placeCount} places`)
      assert.equal(torn.survivedCount, 0)
    })
  }
})
