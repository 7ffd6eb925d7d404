import assert from 'node:assert/strict'
import { it } from 'node:test'
import { silentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createVisitorRetention } from './visitor-retention.ts'

it('visitors without cookies are forgotten when their day closes, and not before', async () => {
  const calls: string[] = []
  const left = [1_700, 3, 0, 0]
  const clock = fixedClock('2026-11-28T13:59:59Z')
  const retention = createVisitorRetention({
    salts: { deleteSaltsBefore: async day => void calls.push(`salts ${day}`) },
    visitors: {
      deleteVisitorsBefore: async day => {
        calls.push(`visitors ${day}`)
        return left.shift()!
      },
    },
    clock,
    logger: silentLogger(),
  })
  const { signal } = new AbortController()
  await retention.forgetNow(signal)
  clock.set(Date.parse('2026-11-28T14:00:00Z'))
  await retention.forgetNow(signal)
  const before = ['salts 2026-11-25', ...Array<string>(3).fill('visitors 2026-11-25')]
  assert.deepEqual(calls, [...before, 'salts 2026-11-26', 'visitors 2026-11-26'])
})
