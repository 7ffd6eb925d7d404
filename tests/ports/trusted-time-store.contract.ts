import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { OpenManagement } from './management-harness.ts'

export function trustedTimeStoreContract(adapter: string, open: OpenManagement): void {
  describe(`TrustedTimeStore on ${adapter}`, () => {
    it('is empty at first, and then returns the last saved value', async t => {
      const { store } = await open(t)
      assert.equal(await store.findTrustedTime(), null)
      for (const time of [
        { atMs: 1_790_000_000_000, aheadMs: 0, stoodMs: 0 },
        { atMs: 1_790_000_000_001, aheadMs: -9_000_000_000, stoodMs: 3_600_000 },
      ]) {
        await store.saveTrustedTime(time)
        assert.deepEqual(await store.findTrustedTime(), time)
      }
    })
  })
}
