// How long it takes to read the usage of a flag that was called millions of times, from the calls and from cached
// counts.

import { isDeepStrictEqual } from 'node:util'
import { pino } from 'pino'
import type { Project } from '#core/project.ts'
import { createFlagUsageRefresher } from '#services/worker/cache-flag-usage.ts'
import { numberOf } from './settings.ts'
import { endMs, fillEvents, lastDays, startSoakStore } from './soak-store.ts'

const dayCount = 30
/** Time limit for an answer from cached counts. */
const msMax = 100

/** @returns whether every call is counted, and cached counts give the same answer within 100 ms. */
export async function runUsageSpeed(): Promise<boolean> {
  const eventCount = numberOf('EVENTS', 10_000_000)
  const soak = await startSoakStore()
  try {
    const filled = await fillEvents(soak, { projectId: 1, eventCount, dayCount, batchesPerDay: 2, calls: 'checkout' })
    let isRight = true
    const fromCalls = new Map<string, unknown>()
    const measure = async (counts: string) => {
      for (const interval of ['day', 'hour'] as const)
        for (const _ of [1, 2]) {
          const query = { projectId: 1, flagKey: 'checkout', buckets: lastDays(dayCount, interval) }
          const { result, ms, cpuMs } = await soak.timed(() => soak.store.countFlagUsage(query))
          const counted = result.values.flatMap(({ calls }) => calls).reduce((sum, calls) => sum + calls, 0)
          console.log(`${counts}, by ${interval}: ${ms} ms, ${cpuMs} ms CPU, ${counted}`)
          if (counted !== filled || (counts === 'kept' && ms > msMax)) isRight = false
          if (counts !== 'kept') fromCalls.set(interval, result)
          else if (!isDeepStrictEqual(result, fromCalls.get(interval))) isRight = false
        }
    }
    await measure('from the calls')
    // Just after midnight, so that all of its days have ended.
    const clock = { nowMs: () => endMs + 1_000 }
    const projects = {
      listProjectIds: async () => [1],
      findProject: async () => ({ id: 1, timezone: 'UTC' }) as Project,
    }
    const keeper = createFlagUsageRefresher({ events: soak.store, projects, clock, logger: pino({ level: 'silent' }) })
    let rounds = 0
    const { ms, cpuMs } = await soak.timed(async () => {
      for (let isComplete = false; !isComplete; rounds++) isComplete = await keeper.refreshNow()
    })
    console.log(`cached in ${rounds} rounds: ${ms} ms, ${cpuMs} ms CPU`)
    await measure('kept')
    return isRight
  } finally {
    await soak.stop()
  }
}
