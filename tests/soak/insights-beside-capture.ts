// How long an event takes to be found while trends over millions of events are asked for, beside how long it takes without.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { clientsOf, fillEvents } from './soak-store.ts'

const trend = {
  kind: 'TrendsQuery',
  series: [{ kind: 'EventsNode', event: null }],
  dateRange: { date_from: '2026-04-01', date_to: '2026-04-30' },
  breakdownFilter: { breakdown: '$feature/checkout', breakdown_type: 'event' },
}

export interface BesideOptions {
  readonly eventCount: number
  readonly askerCount: number
  readonly seconds: number
  readonly log: (line: string) => void
}

/** @returns whether every event was found. */
export async function runInsightsBesideCapture(options: BesideOptions): Promise<boolean> {
  const { eventCount, askerCount, seconds, log } = options
  const pennon = await startPennon()
  try {
    const clients = clientsOf(() => readEngineEndpoint(pennon.dataFolder)!)
    await fillEvents({ clients }, { projectId: 1, eventCount, dayCount: 30, batchesPerDay: 2 })
    await clients.close()
    log(`${eventCount} events are stored`)
    const alone = await lagsFor(pennon, seconds)
    log(`without queries: ${summary(alone)}`)
    const stopped = new AbortController()
    let answered = 0
    let refused = 0
    const ask = async () => {
      while (!stopped.signal.aborted) {
        const ok = await pennon.api('POST', '/api/projects/@current/query/', { query: trend }).then(
          () => true,
          () => false,
        )
        if (ok) answered++
        else {
          refused++
          await sleep(100)
        }
      }
    }
    const askers = Array.from({ length: askerCount }, ask)
    const beside = await lagsFor(pennon, seconds)
    stopped.abort()
    await Promise.all(askers)
    log(`with ${askerCount} queries at once: ${summary(beside)}; ${answered} answered, ${refused} refused as too many`)
    return true
  } finally {
    await pennon.stop()
  }
}

/** ms from sending until the list of events has it, of one event after the other. */
async function lagsFor(pennon: Pennon, seconds: number): Promise<number[]> {
  const lags: number[] = []
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; ) {
    const uuid = randomUUID()
    const startMs = performance.now()
    await pennon.post('/capture/', { api_key: testProjectKey, event: 'soak', distinct_id: 'soak', uuid })
    for (;;) {
      const { results } = await pennon
        .api<{ results: unknown[] }>('GET', `/api/projects/@current/events/?uuid=${uuid}&after=-1h`)
        .catch(() => ({ results: [] }))
      if (results.length > 0) break
      await sleep(10)
    }
    lags.push(performance.now() - startMs)
  }
  return lags.toSorted((a, b) => a - b)
}

function summary(lags: readonly number[]): string {
  const at = (share: number) => `${Math.round(lags[Math.floor((lags.length - 1) * share)]!)} ms`
  return `${lags.length} events, found after ${at(0.5)} in the median, ${at(0.95)} for 95 %, ${at(1)} at most`
}
