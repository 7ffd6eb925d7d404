import assert from 'node:assert/strict'
import { it } from 'node:test'
import { noQuotas } from '#core/project.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/captured-events.ts'
import { aProject } from '../../../tests/support/state-builders.ts'
import { QuotaGate, usedUpQuotas } from './leave-out-over-quota.ts'

it('a quota passes by imports, whichever lane they take', async () => {
  const import_ = { historicalMigration: true, importJobId: 1, lane: 'error_tracking', name: '$exception' } as const
  const main = encodedEvents([
    aCapturedEvent(1, import_),
    aCapturedEvent(2, { ...import_, historicalMigration: false }),
  ])
  const prepared = { main, historical: null, acceptedByLane: { error_tracking: 2 }, rejects: [], rejectedCount: 0 }
  const { kept, leftOut } = await new QuotaGate(new Set(['exceptions']), 'v0').filter(prepared)
  assert.deepEqual([kept.main?.recordCount, kept.acceptedByLane], [1, { error_tracking: 1 }])
  assert.deepEqual(leftOut.events, [{ uuid: aCapturedEvent(2).uuid, name: '$exception', resource: 'exceptions' }])
  assert.deepEqual([...leftOut.marks], [0, 1])
})

it('nobody is asked about a project that has no quota of events', () => {
  const asked: string[] = []
  const isOverQuota = (_project: unknown, resource: string) => {
    asked.push(resource)
    return resource === 'llm_events'
  }
  const without = aProject({ quotas: { ...noQuotas, recordings: 0, featureFlagRequests: 0 } })
  assert.equal(usedUpQuotas(without, isOverQuota), null)
  assert.deepEqual(asked, [])
  assert.deepEqual(
    usedUpQuotas(aProject({ quotas: { ...noQuotas, llmEvents: 5 } }), isOverQuota),
    new Set(['llm_events']),
  )
  assert.equal(
    usedUpQuotas(aProject({ quotas: { ...noQuotas, llmEvents: 5 } }), () => false),
    null,
  )
})
