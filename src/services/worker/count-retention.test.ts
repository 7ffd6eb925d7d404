import assert from 'node:assert/strict'
import { it } from 'node:test'
import { silentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createCountRetention } from './count-retention.ts'

it('warnings and counts of refused events are kept for 30 whole days before today', async () => {
  const deleted: string[] = []
  const retention = createCountRetention({
    store: {
      deleteWarningsBefore: async day => void deleted.push(`warnings ${day}`),
      deleteRefusedBefore: async day => void deleted.push(`refused ${day}`),
    },
    clock: fixedClock('2026-03-31T23:59:59Z'),
    logger: silentLogger(),
  })
  await retention.deleteNow()
  assert.deepEqual(deleted, ['warnings 2026-03-01', 'refused 2026-03-01'])
})
