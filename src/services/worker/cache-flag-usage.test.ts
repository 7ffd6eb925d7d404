import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { dayMs } from '#core/time.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createFlagUsageRefresher, refreshFlagUsageEveryMs } from './cache-flag-usage.ts'

/** A monotonic clock that only the test advances. */
function heldTime(t: TestContext): { pass(ms: number): void } {
  let nowMs = 1_000
  t.mock.method(performance, 'now', () => nowMs)
  return {
    pass: ms => {
      nowMs += ms
    },
  }
}

describe('caching the usage of flags', () => {
  it('covers every project even if late calls keep invalidating the counts of one project', async t => {
    const time = heldTime(t)
    const clock = fixedClock('2026-11-10T12:00:00Z')
    const counted: number[] = []
    const keeper = createFlagUsageRefresher({
      clock,
      logger: createSilentLogger(),
      roundMs: 300,
      projects: {
        listProjectIds: async () => [1, 2, 3],
        findProject: async id => ({ id, timezone: 'UTC' }) as never,
      },
      events: {
        listBusyFlags: async () => [{ flagKey: 'f', callsOfDay: new Map([[clock.nowMs() - dayMs, 1_000_000]]) }],
        listDaysOfMovedIds: async () => new Map(),
        // Every count is always invalid.
        listCachedUsage: async () => [],
        cacheUsage: async ({ projectId }) => {
          counted.push(projectId)
          time.pass(301)
        },
      },
    })
    for (let round = 0; round < 3; round++) assert.equal(await keeper.refreshNow(), false)
    assert.deepEqual(counted, [1, 2, 3])
  })

  it('begins soon after the calls arrive, unless finding the called flags takes long', async t => {
    const time = heldTime(t)
    for (const { lookMs, looksAfterRound } of [
      { lookMs: 0, looksAfterRound: 2 },
      { lookMs: 700, looksAfterRound: 1 },
    ]) {
      const clock = fixedClock('2026-11-10T12:00:00Z')
      let lookCount = 0
      const counted: number[] = []
      const keeper = createFlagUsageRefresher({
        clock,
        logger: createSilentLogger(),
        projects: {
          listProjectIds: async () => [1],
          findProject: async id => ({ id, timezone: 'UTC' }) as never,
        },
        events: {
          listBusyFlags: async () => {
            time.pass(lookMs)
            return lookCount++ === 0
              ? []
              : [{ flagKey: 'f', callsOfDay: new Map([[clock.nowMs() - (clock.nowMs() % dayMs) - dayMs, 1_000_000]]) }]
          },
          listDaysOfMovedIds: async () => new Map(),
          listCachedUsage: async () => [],
          cacheUsage: async ({ projectId }) => void counted.push(projectId),
        },
      })
      await keeper.refreshNow()
      clock.advance(2 * refreshFlagUsageEveryMs)
      await keeper.refreshNow()
      assert.deepEqual([lookCount, counted.length > 0], [looksAfterRound, looksAfterRound > 1])
      clock.advance(3_600_000)
      await keeper.refreshNow()
      assert.ok(counted.length > 0)
    }
  })
})
