import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { noQuotas, type Quotas } from '#core/project.ts'
import { type LiveUsage, noEventUsage } from '#core/usage.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { aProject } from '../../../tests/support/values.ts'
import { startEventQuotaTracker } from './event-quotas.ts'

function world(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const clock = fixedClock('2026-03-30T12:00:00Z')
  /** Usage by month. */
  const used = new Map<string, Partial<LiveUsage>>()
  const asked: string[] = []
  let fails = false
  const quotas = startEventQuotaTracker({
    usage: {
      sumUsage: async (ids, fromDay, toDay) => {
        asked.push(`${ids} ${fromDay} ${toDay}`)
        if (fails) throw new Error('down')
        const sums = used.get(fromDay.slice(0, 7))
        return sums === undefined ? [] : ids.map(projectId => ({ ...noEventUsage, ...sums, projectId }))
      },
    },
    clock,
    logger: createSilentLogger(),
    readMs: 5_000,
  })
  t.after(() => quotas.close())
  return {
    quotas,
    clock,
    used,
    asked,
    setFailing: (value: boolean) => {
      fails = value
    },
    read: async () => {
      t.mock.timers.tick(5_000)
      await new Promise(setImmediate)
    },
  }
}

const withQuotas = (quotas: Partial<Quotas>) => aProject({ id: 7, quotas: { ...noQuotas, ...quotas } })

describe('event quotas', () => {
  it('are exceeded if they are 0, and never if unlimited, without reading the usage', t => {
    const { quotas, asked } = world(t)
    const project = withQuotas({ events: 0, recordings: 0 })
    quotas.follow(project)
    assert.equal(quotas.isOverQuota(project, 'events'), true)
    assert.equal(quotas.isOverQuota(project, 'recordings'), true)
    assert.equal(quotas.isOverQuota(project, 'exceptions'), false)
    assert.deepEqual(asked, [])
  })

  it('depend on the usage of the month for each resource', async t => {
    const { quotas, used, asked } = world(t)
    const project = withQuotas({ events: 10, exceptions: 3, llmEvents: 3, surveyResponses: 3, recordings: 3 })
    used.set('2026-03', { eventsCharged: 10, exceptions: 2, llmEvents: 3, surveyResponses: 2, recordings: 4 })
    quotas.follow(project)
    assert.equal(quotas.isOverQuota(project, 'events'), false, 'nothing is read yet')
    await quotas.caughtUp()
    assert.deepEqual(asked, ['7 2026-03-01 2026-03-31'])
    const resources = ['events', 'exceptions', 'llm_events', 'survey_responses', 'recordings'] as const
    assert.deepEqual(
      resources.filter(resource => quotas.isOverQuota(project, resource)),
      ['events', 'llm_events', 'recordings'],
    )
  })

  it('take effect at once when they are raised or lowered, without another read of the usage', async t => {
    const { quotas, used } = world(t)
    used.set('2026-03', { eventsCharged: 10 })
    quotas.follow(withQuotas({ events: 10 }))
    await quotas.caughtUp()
    const larger = withQuotas({ events: 11 })
    quotas.follow(larger)
    assert.equal(quotas.isOverQuota(larger, 'events'), false)
    assert.equal(quotas.isOverQuota(withQuotas({ events: 9 }), 'events'), true)
    const none = withQuotas({})
    quotas.follow(none)
    assert.equal(quotas.isOverQuota(none, 'events'), false)
  })

  it('start again with a new month, even before its usage is read', async t => {
    const { quotas, clock, used, asked } = world(t)
    const project = withQuotas({ events: 10 })
    used.set('2026-03', { eventsCharged: 10 })
    quotas.follow(project)
    await quotas.caughtUp()
    assert.equal(quotas.isOverQuota(project, 'events'), true)
    clock.set(Date.parse('2026-03-31T23:59:59.999Z'))
    assert.equal(quotas.isOverQuota(project, 'events'), true)
    clock.advance(1)
    assert.equal(quotas.isOverQuota(project, 'events'), false)
    used.set('2026-04', { eventsCharged: 12 })
    await quotas.caughtUp()
    assert.equal(asked.at(-1), '7 2026-04-01 2026-04-31')
    assert.equal(quotas.isOverQuota(project, 'events'), true)
  })

  it('use the last known usage while the state store is unavailable, and read it again afterwards', async t => {
    const { quotas, used, setFailing } = world(t)
    const project = withQuotas({ events: 10 })
    used.set('2026-03', { eventsCharged: 10 })
    quotas.follow(project)
    setFailing(true)
    await quotas.caughtUp()
    assert.equal(quotas.isOverQuota(project, 'events'), false)
    setFailing(false)
    await quotas.caughtUp()
    assert.equal(quotas.isOverQuota(project, 'events'), true)
    setFailing(true)
    await quotas.caughtUp()
    assert.equal(quotas.isOverQuota(project, 'events'), true)
  })

  it('are read every few seconds for projects that have a quota', async t => {
    const { quotas, used, asked, read } = world(t)
    await read()
    assert.deepEqual(asked, [])
    const project = withQuotas({ events: 10 })
    quotas.follow(project)
    quotas.follow(aProject({ id: 8 }))
    assert.equal(asked.length, 0)
    used.set('2026-03', { eventsCharged: 9 })
    await quotas.caughtUp()
    used.set('2026-03', { eventsCharged: 10 })
    await read()
    assert.equal(quotas.isOverQuota(project, 'events'), true)
    assert.equal(asked.length, 2)
  })
})
