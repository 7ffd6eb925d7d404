import assert from 'node:assert/strict'
import { it } from 'node:test'
import { noQuotas } from '#core/project.ts'
import { anIncomingEvent, aTable, outcomesOf } from '../../../tests/support/incoming-requests.ts'
import { aProject } from '../../../tests/support/values.ts'
import { excludeEventsOverQuota, findUsedUpQuotas } from './exclude-over-quota.ts'

const items = ['e', '$exception', '$ai_span', ''].map(name => anIncomingEvent({ name }))

it('a quota drops the events that it counts, and for v1 requests the events quota drops all events', () => {
  const left = (protocol: 'v0' | 'v1', ...usedUp: ('events' | 'exceptions')[]) => {
    const table = aTable(items)
    excludeEventsOverQuota(table, new Set(usedUp), protocol)
    return outcomesOf(table)
  }
  const bad = 'reject: missing_event_name'
  assert.deepEqual(left('v0', 'exceptions'), ['ok', 'drop: exceptions_over_quota', 'ok', bad])
  assert.deepEqual(left('v0', 'events'), ['drop: events_over_quota', 'ok', 'ok', 'drop: events_over_quota'])
  assert.deepEqual(left('v1', 'events', 'exceptions'), [
    'drop: events_over_quota',
    'drop: exceptions_over_quota',
    'drop: events_over_quota',
    'drop: events_over_quota',
  ])
})

it('quotas do not apply to imports, whichever lane they take', () => {
  const day = 86_400_000
  const old = ['e', '$exception'].map(name => anIncomingEvent({ name, timestamp: '2020-01-01T00:00:00Z' }))
  const rerouted = aTable(old, {}, { rerouteOlderThanMs: day })
  const imported = aTable(old, { historicalMigration: true })
  for (const table of [rerouted, imported]) excludeEventsOverQuota(table, new Set(['events', 'exceptions']), 'v1')
  assert.deepEqual(outcomesOf(rerouted), ['ok', 'drop: exceptions_over_quota'], 'age reroutes the main lane alone')
  assert.deepEqual(outcomesOf(imported), ['ok', 'ok'])
})

it('usage is not looked up for a project without a quota for events', () => {
  const asked: string[] = []
  const isOverQuota = (_project: unknown, resource: string) => {
    asked.push(resource)
    return resource === 'llm_events'
  }
  const without = aProject({ quotas: { ...noQuotas, recordings: 0, featureFlagRequests: 0 } })
  assert.equal(findUsedUpQuotas(without, isOverQuota), null)
  assert.deepEqual(asked, [])
  assert.deepEqual(
    findUsedUpQuotas(aProject({ quotas: { ...noQuotas, llmEvents: 5 } }), isOverQuota),
    new Set(['llm_events']),
  )
  assert.equal(
    findUsedUpQuotas(aProject({ quotas: { ...noQuotas, llmEvents: 5 } }), () => false),
    null,
  )
})
