import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'
import { createDailySaltCache } from '#services/shared/daily-salts.ts'
import { createVisitorDataCleanup } from '#services/worker/visitor-retention.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { movedTime } from '../support/moved-time.ts'

/** @param open two stores of one installation. */
export function cookielessSaltsContract(
  name: string,
  open: (t: TestContext) => Promise<readonly [CookielessSalts, CookielessSalts]>,
): void {
  describe(`the daily salts on ${name}`, () => {
    const salt = (byte: number) => new Uint8Array(16).fill(byte)

    it('exist once per day, and are set by the first caller', async t => {
      const [one, other] = await open(t)
      assert.deepEqual(await one.findOrCreateSalt('2026-11-28', salt(1)), salt(1))
      assert.deepEqual(await other.findOrCreateSalt('2026-11-28', salt(2)), salt(1))
      assert.deepEqual(await other.findOrCreateSalt('2026-11-29', salt(3)), salt(3))
      assert.deepEqual(await one.findOrCreateSalt('2026-11-29', salt(4)), salt(3))
    })

    it('are the same for all concurrent callers on a new day', async t => {
      const stores = await open(t)
      const asked = Array.from({ length: 20 }, (_, n) => stores[n % 2]!.findOrCreateSalt('2026-11-28', salt(n)))
      const [first, ...others] = await Promise.all(asked)
      for (const other of others) assert.deepEqual(other, first)
    })

    it('are deleted except for retained days, and a deleted day gets a new salt if requested again', async t => {
      const [one, other] = await open(t)
      const kept = { first: '2026-11-29', last: '2026-11-30' }
      assert.deepEqual(await one.deleteSaltsExcept(kept), [])
      for (const day of ['2026-11-27', '2026-11-28', '2026-11-29', '2026-12-01'])
        await one.findOrCreateSalt(day, salt(1))
      assert.deepEqual((await other.deleteSaltsExcept(kept)).toSorted(), ['2026-11-27', '2026-11-28', '2026-12-01'])
      assert.deepEqual(await one.findOrCreateSalt('2026-11-29', salt(2)), salt(1))
      assert.deepEqual(await one.findOrCreateSalt('2026-11-28', salt(2)), salt(2))
      assert.deepEqual(await other.findOrCreateSalt('2026-11-27', salt(3)), salt(3))
      assert.deepEqual(await other.findOrCreateSalt('2026-12-01', salt(4)), salt(4))
    })

    it('are cached by several processes until their day ends, and by no process afterwards', async t => {
      const stores = await open(t)
      const time = movedTime()
      const clock = fixedClock('2026-11-28T12:00:00Z')
      const { monotonicNowMs } = time
      const calls: Promise<unknown>[] = []
      const processes = stores.map(store => {
        const keepSalt: CookielessSalts['findOrCreateSalt'] = (...salt) => {
          const call = store.findOrCreateSalt(...salt)
          calls.push(call)
          return call
        }
        return createDailySaltCache({
          store: { findOrCreateSalt: keepSalt },
          clock,
          timers: time,
          monotonicNowMs,
          randomBytes,
        })
      })
      t.after(() => processes.map(each => each.close()))
      const noVisitors = { deleteVisitorsExcept: async () => 0 }
      const retention = createVisitorDataCleanup({
        salts: stores[0],
        visitors: noVisitors,
        clock,
      })
      const saltAt = async (now: string) => {
        clock.set(Date.parse(now))
        await retention.round(new AbortController().signal)
        await time.move(60_000)
        await Promise.all(calls)
        const salts = await Promise.all(processes.map(each => each.saltOf('2026-11-28')))
        assert.deepEqual(salts[0], salts[1])
        return salts[0]
      }
      const first = await saltAt('2026-11-28T12:00:00Z')
      assert.deepEqual(await saltAt('2026-12-01T13:59:59Z'), first)
      assert.notDeepEqual(await saltAt('2026-12-01T14:00:00Z'), first)
    })
  })
}
