import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { movedTime } from '../../../tests/support/moved-time.ts'
import { createDailySalts } from './daily-salts.ts'

function saltsOver(keepSalt: (day: string, fresh: Uint8Array) => Promise<Uint8Array>) {
  const time = movedTime()
  let nowMs = Date.parse('2026-11-28T12:00:00Z')
  let drawn = 0
  const salts = createDailySalts({
    store: { keepSalt },
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

describe('the remembered salts', () => {
  it('are read once for all who ask, and answered at once from then on', async () => {
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

  it('are forgotten when their day closes', async () => {
    const read: string[] = []
    const { salts, time, setClock } = saltsOver(async (day, fresh) => {
      read.push(day)
      return fresh
    })
    await salts.saltOf('2026-11-28')
    setClock('2026-12-01T13:59:59Z')
    await time.move(60_000)
    await salts.saltOf('2026-11-28')
    setClock('2026-12-01T14:00:00Z')
    await time.move(60_000)
    await salts.saltOf('2026-11-28')
    assert.deepEqual(read, ['2026-11-28', '2026-11-28'])
    salts.close()
    assert.equal(time.timerCount(), 0)
  })

  it('ask a store that failed once a second, and fail meanwhile as it did', async () => {
    let asked = 0
    let isAway = true
    const { salts, time } = saltsOver(async (_day, fresh) => {
      asked++
      if (isAway) throw new PortError('state', 'unavailable')
      return fresh
    })
    await assert.rejects(async () => salts.saltOf('2026-11-28'), PortError)
    await assert.rejects(async () => salts.saltOf('2026-11-29'), PortError)
    assert.equal(asked, 1)
    isAway = false
    await time.move(1_000)
    assert.equal((await salts.saltOf('2026-11-29')).length, 16)
  })
})
