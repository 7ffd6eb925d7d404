import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { movedTime } from '../../../tests/support/moved-time.ts'
import { createDailySaltCache } from './daily-salts.ts'

function saltsOver(keepSalt: (day: string, fresh: Uint8Array) => Promise<Uint8Array>) {
  const time = movedTime()
  let nowMs = Date.parse('2026-11-28T12:00:00Z')
  let drawn = 0
  const salts = createDailySaltCache({
    store: { findOrCreateSalt: keepSalt },
    clock: { nowMs: () => nowMs },
    timers: time,
    monotonicNowMs: time.monotonicNowMs,
    randomBytes: count => new Uint8Array(count).fill(++drawn),
  })
  const setClock = (text: string) => {
    nowMs = Date.parse(text)
  }
  return { salts, time, setClock }
}

describe('the cached salts of cookieless visitors', () => {
  it('are read once for all callers, and returned at once from then on', async () => {
    let reads = 0
    const { salts } = saltsOver(async (_day, fresh) => {
      reads++
      return fresh
    })
    const [one, other] = await Promise.all([salts.saltOf('2026-11-28'), salts.saltOf('2026-11-28')])
    assert.equal(one, other)
    assert.equal(salts.saltOf('2026-11-28'), one)
    assert.notDeepEqual(await salts.saltOf('2026-11-29'), one)
    assert.equal(reads, 2)
  })

  it('are dropped when their day closes', async () => {
    const { salts, time, setClock } = saltsOver(async (_day, fresh) => fresh)
    const first = await salts.saltOf('2026-11-28')
    setClock('2026-12-01T13:59:59Z')
    await time.move(60_000)
    assert.equal(salts.saltOf('2026-11-28'), first)
    setClock('2026-12-01T14:00:00Z')
    await time.move(60_000)
    assert.notDeepEqual(await salts.saltOf('2026-11-28'), first)
    salts.close()
    assert.equal(time.timerCount(), 0)
  })

  it('are dropped when a clock that was ahead is set back to before their day', async () => {
    const { salts, time, setClock } = saltsOver(async (_day, fresh) => fresh)
    setClock('2027-11-28T12:00:00Z')
    const first = await salts.saltOf('2027-11-28')
    setClock('2026-11-28T12:00:00Z')
    await time.move(60_000)
    assert.notDeepEqual(await salts.saltOf('2027-11-28'), first)
  })

  it('are written to the store again if it lost them, and replaced by what another process stored', async () => {
    const stored = new Map<string, Uint8Array>()
    const { salts, time } = saltsOver(async (day, fresh) => {
      if (!stored.has(day)) stored.set(day, fresh)
      return stored.get(day)!
    })
    const first = await salts.saltOf('2026-11-28')
    stored.clear()
    await time.move(60_000)
    assert.equal(stored.get('2026-11-28'), first)
    const other = new Uint8Array(16).fill(99)
    stored.set('2026-11-28', other)
    await time.move(60_000)
    assert.equal(salts.saltOf('2026-11-28'), other)
  })

  it('remain known while the store is unavailable, in a new array, so that cached visitors are released', async () => {
    let isUnavailable = false
    const { salts, time } = saltsOver(async (_day, fresh) => {
      if (isUnavailable) throw new PortError('state', 'unavailable')
      return fresh
    })
    const first = await salts.saltOf('2026-11-28')
    assert.equal(salts.knownSalt('2026-11-28'), first)
    isUnavailable = true
    await time.move(60_000)
    assert.deepEqual(salts.knownSalt('2026-11-28'), first)
    assert.notEqual(salts.knownSalt('2026-11-28'), first)
  })

  it('are requested from a failed store once a second per day; other requests fail with the store’s last error', async () => {
    let asked = 0
    let isUnavailable = true
    const { salts, time } = saltsOver(async (_day, fresh) => {
      asked++
      if (isUnavailable) throw new PortError('state', 'unavailable')
      return fresh
    })
    for (let time = 0; time < 3; time++)
      for (const day of ['2026-11-28', '2026-11-29']) await assert.rejects(async () => salts.saltOf(day), PortError)
    assert.equal(asked, 2)
    isUnavailable = false
    await time.move(1_000)
    assert.equal((await salts.saltOf('2026-11-29')).length, 16)
  })
})
