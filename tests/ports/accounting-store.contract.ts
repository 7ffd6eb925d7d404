// The contract of every store of daily counts: usage, what fronts refuse, and the warnings that this raises.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type EventUsage, noEventUsage } from '#core/usage.ts'
import type { OpenManagement } from './management-harness.ts'

export function accountingStoreContract(adapter: string, open: OpenManagement): void {
  describe(`AccountingStore on ${adapter}: usage`, () => {
    it('adds up flag requests, and overwrites event counts without changing flag requests', async t => {
      const { store } = await open(t)
      const day = '2026-03-01'
      await store.addFlagRequests([
        { projectId: 1, day, count: 2 },
        { projectId: 2, day, count: 9 },
      ])
      const counts = {
        eventsCharged: 16,
        exceptions: 2,
        llmEvents: 3,
        surveyResponses: 4,
        recordings: 5,
        eventsImported: 1,
      }
      await store.saveEventCounts(1, [{ ...noEventUsage, day, eventsCharged: 5, exceptions: 1 }], '2026-02-01')
      await store.saveEventCounts(1, [{ ...counts, day }], '2026-02-01')
      await store.addFlagRequests([{ projectId: 1, day, count: 3 }])
      await store.addFlagRequests([])
      const row = { day, ...counts, flagRequests: 5 }
      assert.deepEqual(await store.listUsage(1, day, day), [row])
      assert.deepEqual(await store.listUsage(1, '2026-03-02', '2026-03-09'), [])
    })

    it('overwrites a day one last time when the day is frozen, and then never again', async t => {
      const { store } = await open(t)
      const save = (eventsCharged: number, frozenBeforeDay: string) =>
        store.saveEventCounts(1, [{ ...noEventUsage, day: '2026-03-01', eventsCharged }], frozenBeforeDay)
      const charged = async () => (await store.listUsage(1, '2026-03-01', '2026-03-01'))[0]?.eventsCharged
      await save(10, '2026-02-28')
      await save(20, '2026-03-02')
      assert.equal(await charged(), 20)
      await save(30, '2026-03-03')
      assert.equal(await charged(), 20)
    })

    it('keeps the larger of each count for a day that lost events, until it is frozen', async t => {
      const { store } = await open(t)
      const day = '2026-03-01'
      const save = (eventsCharged: number, recordings: number, frozenBeforeDay: string, lostDays: string[]) =>
        store.saveEventCounts(1, [{ ...noEventUsage, day, eventsCharged, recordings }], frozenBeforeDay, lostDays)
      const found = async () => {
        const [row] = await store.listUsage(1, day, day)
        return [row?.eventsCharged, row?.recordings]
      }
      await save(10, 3, '2026-02-28', [day])
      await save(4, 5, '2026-02-28', ['2026-02-28', day])
      assert.deepEqual(await found(), [10, 5])
      await save(4, 5, '2026-02-28', ['2026-02-28'])
      assert.deepEqual(await found(), [4, 5], 'nothing of it is lost any more')
      await save(3, 6, '2026-03-02', [day])
      assert.deepEqual(await found(), [4, 6])
      await save(9, 9, '2026-03-03', [day])
      assert.deepEqual(await found(), [4, 6], 'frozen')
    })

    it('sums the charged usage of a span of days by project', async t => {
      const { store } = await open(t)
      const usage = (day: string, counts: Partial<EventUsage>) => ({ ...noEventUsage, day, ...counts })
      await store.saveEventCounts(
        1,
        [
          usage('2026-02-28', { eventsCharged: 100, exceptions: 100 }),
          usage('2026-03-01', { eventsCharged: 7, exceptions: 1, llmEvents: 2, recordings: 4, eventsImported: 50 }),
          usage('2026-03-31', { eventsCharged: 8, exceptions: 1, surveyResponses: 3 }),
          usage('2026-04-01', { eventsCharged: 100, llmEvents: 100 }),
        ],
        '2026-01-01',
      )
      await store.saveEventCounts(2, [usage('2026-03-15', { recordings: 9 })], '2026-01-01')
      await store.saveEventCounts(3, [usage('2026-03-15', { recordings: 9 })], '2026-01-01')
      const sums = await store.sumUsage([1, 2, 9], '2026-03-01', '2026-03-31')
      const { eventsImported: _, ...none } = noEventUsage
      assert.deepEqual(
        sums.toSorted((a, b) => a.projectId - b.projectId),
        [
          { projectId: 1, eventsCharged: 15, exceptions: 2, llmEvents: 2, surveyResponses: 3, recordings: 4 },
          { projectId: 2, ...none, recordings: 9 },
        ],
      )
      assert.deepEqual(await store.sumUsage([], '2026-03-01', '2026-03-31'), [])
    })
  })

  describe(`AccountingStore on ${adapter}: rejections by fronts`, () => {
    const at = (text: string) => Date.parse(text)
    const row = { projectId: 1, day: '2026-03-02', reason: 'invalid_json', warning: null }

    it('adds up rejections by day and reason, and stores the latest time', async t => {
      const { store } = await open(t)
      const noon = at('2026-03-02T12:00:00Z')
      await store.addRefused([
        { ...row, count: 2, lastSeenMs: noon },
        { ...row, reason: 'empty_batch', count: 1, lastSeenMs: noon },
        { ...row, projectId: 2, count: 50, lastSeenMs: noon },
      ])
      await store.addRefused([{ ...row, count: 3, lastSeenMs: noon - 1_000 }])
      await store.addRefused([{ ...row, day: '2026-03-03', count: 4, lastSeenMs: at('2026-03-03T01:00:00Z') }])
      await store.addRefused([])
      assert.deepEqual(await store.listRefused(1, '2026-03-02'), [
        { reason: 'empty_batch', count: 1, lastSeenMs: noon },
        { reason: 'invalid_json', count: 9, lastSeenMs: at('2026-03-03T01:00:00Z') },
      ])
      assert.equal((await store.listRefused(1, '2026-03-03'))[0]?.count, 4)
      await store.addRefused([{ ...row, day: '2046-03-03', count: 9, lastSeenMs: noon }])
      await store.deleteRefusedOutside('2026-03-03', null)
      assert.equal((await store.listRefused(1, '2046-03-03'))[0]?.count, 9)
      await store.deleteRefusedOutside('2026-03-03', '2026-04-03')
      assert.deepEqual(
        (await store.listRefused(1, '2026-03-01')).map(({ count }) => count),
        [4],
      )
      assert.deepEqual(await store.listRefused(2, '2026-03-01'), [])
    })

    it('adds the number of rejections to a warning, with a few samples', async t => {
      const { store } = await open(t)
      const lastSeenMs = at('2026-03-02T12:00:00Z')
      const reason = 'events_over_quota'
      const over = (count: number, sample: number) =>
        store.addRefused([
          { ...row, count: 1, lastSeenMs },
          { ...row, reason, count, lastSeenMs: lastSeenMs + sample, warning: { quota: 10, sample } },
        ])
      await over(15, 1)
      await over(4, 2)
      await over(1, 3)
      await over(100, 4)
      const [warning, ...others] = await store.listWarnings(1, { sinceMs: 0, sampleCountMax: 50 })
      assert.deepEqual(others, [])
      assert.deepEqual([warning!.type, warning!.count, warning!.lastSeenMs], [reason, 120, lastSeenMs + 4])
      assert.deepEqual(
        warning!.warnings.map(({ timestampMs, details }) => [timestampMs, details.sample, details.quota]),
        [3, 2, 1].map(sample => [lastSeenMs + sample, sample, 10]),
      )
      assert.equal((await store.listRefused(1, '2026-03-02')).find(row => row.reason === reason)?.count, 120)
    })
  })
}
