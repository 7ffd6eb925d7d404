// How long a trend of 30 days takes over millions of events, which are generated inside the engine. Prints the time and
// the engine's CPU time for each query: with the parts as inserted, after the engine's own merges, and merged into one
// part.

import { always } from '#core/insights/conditions.ts'
import type { TrendCountQuery } from '#ports/events/insight-queries.ts'
import { numberOf } from './settings.ts'
import { endMs, fillEvents, lastDays, type SoakStore, startSoakStore } from './soak-store.ts'

const dayCount = 30
const batchesPerDay = 2

/** @returns whether each query counted all the expected events. */
export async function runTrendsSpeed(): Promise<boolean> {
  const eventCount = numberOf('EVENTS', 10_000_000)
  const soak = await startSoakStore()
  try {
    const filled = await fillEvents(soak, { projectId: 1, eventCount, dayCount, batchesPerDay })
    const buckets = lastDays(dayCount, 'day')
    const count: TrendCountQuery = {
      ...{ projectId: 1, buckets, event: null, math: { kind: 'events' }, condition: always, breakdown: null },
      settings: { timezone: 'UTC', nowMs: endMs },
    }
    const byFlag = { by: [{ source: { kind: 'flag' }, key: '$feature/checkout' }], limit: 25 } as const
    const queries: Record<string, TrendCountQuery> = {
      total: count,
      'by $feature/checkout': { ...count, breakdown: byFlag },
      'persons of one event by $feature/checkout': {
        ...count,
        event: 'paid',
        math: { kind: 'persons' },
        breakdown: byFlag,
      },
      'all persons': { ...count, math: { kind: 'persons' } },
      'by a property': {
        ...count,
        event: 'paid',
        breakdown: { by: [{ source: { kind: 'event' }, key: '$browser' }], limit: 25 },
      },
    }
    let isRight = true
    const measure = async (parts: string) => {
      for (const [name, query] of Object.entries(queries))
        for (const _ of [1, 2]) {
          const { result: lines, ms, cpuMs } = await soak.timed(() => soak.store.countTrend(query))
          const counted = lines.flatMap(({ data }) => data).reduce((sum, figure) => sum + figure, 0)
          console.log(`${parts}, ${name}: ${ms} ms, ${cpuMs} ms CPU, ${counted}`)
          if (query.event === null && query.math.kind === 'events' && counted !== filled) isRight = false
        }
    }
    await measure(`${await partCount(soak)} parts as inserted`)
    await soak.mergesEnd()
    await measure(`${await partCount(soak)} parts that the engine merged`)
    await soak.command(database => `OPTIMIZE TABLE ${database}.events FINAL`)
    await measure('one part')
    return isRight
  } finally {
    await soak.stop()
  }
}

function partCount(soak: SoakStore): Promise<number> {
  return soak.count(
    `SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active`,
  )
}
