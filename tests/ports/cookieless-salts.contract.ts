import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CookielessSalts } from '#ports/state/cookieless-salts.ts'

/** @param open two stores of one installation. */
export function cookielessSaltsContract(
  name: string,
  open: (t: TestContext) => Promise<readonly [CookielessSalts, CookielessSalts]>,
): void {
  describe(`the salts on ${name}`, () => {
    const salt = (byte: number) => new Uint8Array(16).fill(byte)

    it('are one for each day, that of the first who asks', async t => {
      const [one, other] = await open(t)
      assert.deepEqual(await one.keepSalt('2026-11-28', salt(1)), salt(1))
      assert.deepEqual(await other.keepSalt('2026-11-28', salt(2)), salt(1))
      assert.deepEqual(await other.keepSalt('2026-11-29', salt(3)), salt(3))
      assert.deepEqual(await one.keepSalt('2026-11-29', salt(4)), salt(3))
    })

    it('are the same for all who ask for a new day at once', async t => {
      const stores = await open(t)
      const asked = Array.from({ length: 20 }, (_, n) => stores[n % 2]!.keepSalt('2026-11-28', salt(n)))
      const [first, ...others] = await Promise.all(asked)
      for (const other of others) assert.deepEqual(other, first)
    })

    it('are deleted but for the days that are kept, and made anew when one of the others is asked for again', async t => {
      const [one, other] = await open(t)
      const kept = { first: '2026-11-29', last: '2026-11-30' }
      await one.deleteSaltsExcept(kept)
      for (const day of ['2026-11-27', '2026-11-28', '2026-11-29', '2026-12-01']) await one.keepSalt(day, salt(1))
      await other.deleteSaltsExcept(kept)
      assert.deepEqual(await one.keepSalt('2026-11-29', salt(2)), salt(1))
      assert.deepEqual(await one.keepSalt('2026-11-28', salt(2)), salt(2))
      assert.deepEqual(await other.keepSalt('2026-11-27', salt(3)), salt(3))
      assert.deepEqual(await other.keepSalt('2026-12-01', salt(4)), salt(4))
    })
  })
}
