import assert from 'node:assert/strict'
import { it } from 'node:test'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createOldCountsCleanup } from './count-retention.ts'

it('warnings and counts of refused events are kept for today and the 30 whole days before it', async () => {
  const deleted: string[] = []
  let isTrusted = false
  const retention = createOldCountsCleanup({
    store: {
      deleteWarningsOutside: async (...days) => void deleted.push(`warnings ${days.join(' ')}`),
      deleteRefusedOutside: async (...days) => void deleted.push(`refused ${days.join(' ')}`),
    },
    clock: { ...fixedClock('2026-03-31T23:59:59Z'), isTrusted: () => isTrusted },
  })
  await retention.round()
  isTrusted = true
  await retention.round()
  const [doubted, believed] = ['2026-03-01 ', '2026-03-01 2026-05-01']
  assert.deepEqual(
    deleted,
    [doubted, doubted, believed, believed].map((days, n) => `${n % 2 ? 'refused' : 'warnings'} ${days}`),
  )
})
