import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  computeDayCloseMs,
  deriveStatelessSessionId,
  findDaysToKeep,
  findVisitorDay,
  isDayOpen,
} from './visitor-day.ts'

const at = (text: string) => Date.parse(text)

describe('the day of a cookieless visitor', () => {
  it('is a day in the visitor’s zone, or otherwise in the project’s zone, or otherwise in UTC', () => {
    const time = at('2025-01-01T03:00:00Z')
    assert.equal(findVisitorDay(time, 'America/Sao_Paulo', 'UTC').day, '2025-01-01')
    assert.equal(findVisitorDay(time, null, 'America/New_York').day, '2024-12-31')
    for (const zone of ['Not/A/Zone', '', '+05:00', 'x'.repeat(1_000)])
      assert.equal(findVisitorDay(time, zone, 'America/New_York').day, '2024-12-31', zone)
    assert.equal(findVisitorDay(time, 'Not/A/Zone', 'neither').day, '2025-01-01')
  })

  it('begins and ends at midnight in the visitor’s zone, even if it has 23 or 25 hours', () => {
    const berlin = (text: string) => findVisitorDay(at(text), 'Europe/Berlin')
    assert.equal(new Date(berlin('2025-03-30T12:00:00Z').startMs).toISOString(), '2025-03-29T23:00:00.000Z')
    assert.equal(berlin('2025-03-30T21:59:59Z').day, '2025-03-30')
    assert.equal(berlin('2025-03-30T22:00:00Z').day, '2025-03-31')
    assert.equal(berlin('2025-03-29T22:59:59Z').day, '2025-03-29')
  })

  it('accepts events from 12 hours before its UTC midnight until 86 hours after it', () => {
    const day = '2025-11-10'
    assert.ok(!isDayOpen(day, at('2025-11-09T11:59:59Z')))
    assert.ok(isDayOpen(day, at('2025-11-09T12:00:00Z')))
    assert.ok(isDayOpen(day, at('2025-11-13T13:59:59Z')))
    assert.ok(!isDayOpen(day, at('2025-11-13T14:00:00Z')))
    assert.equal(computeDayCloseMs(day), at('2025-11-13T14:00:00Z'))
  })

  it('has a salt from before it begins in any zone until it closes', () => {
    assert.deepEqual(findDaysToKeep(at('2025-11-13T13:59:59Z')), { first: '2025-11-10', last: '2025-11-14' })
    assert.deepEqual(findDaysToKeep(at('2025-11-13T14:00:00Z')), { first: '2025-11-11', last: '2025-11-14' })
    for (let hour = 0; hour < 48; hour++) {
      const nowMs = at('2025-11-13T00:00:00Z') + hour * 3_600_000
      const { first, last } = findDaysToKeep(nowMs)
      for (const zone of ['Pacific/Kiritimati', 'UTC', 'Pacific/Pago_Pago']) {
        const { day } = findVisitorDay(nowMs, zone)
        assert.ok(first <= day && day <= last, `${day} in ${zone}`)
      }
      assert.ok(computeDayCloseMs(first) > nowMs)
    }
  })

  it('determines a session id that lasts all day', () => {
    const hash = Buffer.from('jZfBjkLcdjlQTVmIKIhC3Q==', 'base64')
    const { startMs } = findVisitorDay(at('2024-12-31T10:00:00Z'), 'Europe/London')
    assert.equal(deriveStatelessSessionId(startMs, hash), '01941a03-2000-7d97-818e-42dc7639504d')
  })
})
