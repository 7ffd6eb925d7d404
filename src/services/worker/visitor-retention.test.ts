import assert from 'node:assert/strict'
import { it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createVisitorDataCleanup } from './visitor-retention.ts'

it('cookieless visitors are forgotten when their day closes, but not before', async () => {
  const calls: string[] = []
  const left = [1_700, 3, 0, 0]
  const clock = fixedClock('2026-11-28T13:59:59Z')
  const retention = createVisitorDataCleanup({
    salts: {
      deleteSaltsExcept: async ({ first, last }) => {
        calls.push(`salts ${first} ${last}`)
        return first === '2026-11-26' ? ['2026-11-25'] : []
      },
    },
    visitors: {
      deleteVisitorsExcept: async ({ first, last }, days) => {
        calls.push(['visitors', first, last, ...days].join(' '))
        return left.shift()!
      },
    },
    clock,
  })
  const { signal } = new AbortController()
  await retention.round(signal)
  clock.set(Date.parse('2026-11-28T14:00:00Z'))
  await retention.round(signal)
  const before = ['salts 2026-11-25 2026-11-29', ...Array<string>(3).fill('visitors 2026-11-25 2026-11-29')]
  assert.deepEqual(calls, [...before, 'salts 2026-11-26 2026-11-29', 'visitors 2026-11-26 2026-11-29 2026-11-25'])
})

it('cookieless visitors are forgotten even if a salt cannot be deleted', async () => {
  let rounds = 0
  const retention = createVisitorDataCleanup({
    salts: { deleteSaltsExcept: () => Promise.reject(new PortError('state', 'unavailable')) },
    visitors: { deleteVisitorsExcept: async () => ++rounds && 0 },
    clock: fixedClock('2026-11-28T13:59:59Z'),
  })
  await assert.rejects(retention.round(new AbortController().signal), PortError)
  assert.equal(rounds, 1)
})
