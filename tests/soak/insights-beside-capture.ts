// How long it takes until an event can be found while trends over millions of events are queried, compared with an idle
// event store.

import { setTimeout as sleep } from 'node:timers/promises'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { startPennon } from '../support/pennon.ts'
import { foundLags, summary } from './found-lags.ts'
import { numberOf } from './settings.ts'
import { clientsOf, fillEvents } from './soak-store.ts'

const trend = {
  kind: 'TrendsQuery',
  series: [{ kind: 'EventsNode', event: null }],
  dateRange: { date_from: '2026-04-01', date_to: '2026-04-30' },
  breakdownFilter: { breakdown: '$feature/checkout', breakdown_type: 'event' },
}

const askerCount = 10

/** @returns whether every event was found. */
export async function runInsightsBesideCapture(): Promise<boolean> {
  const [eventCount, seconds] = [numberOf('EVENTS', 10_000_000), numberOf('SECONDS', 30)]
  const pennon = await startPennon()
  try {
    const clients = clientsOf(() => readEngineEndpoint(pennon.dataFolder)!)
    await fillEvents({ clients }, { projectId: 1, eventCount, dayCount: 30, batchesPerDay: 2 })
    await clients.close()
    console.log(`${eventCount} events are stored`)
    const alone = await foundLags(pennon, over(seconds))
    console.log(`without queries: ${summary(alone)}`)
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
    const beside = await foundLags(pennon, over(seconds))
    stopped.abort()
    await Promise.all(askers)
    console.log(
      `with ${askerCount} queries at once: ${summary(beside)}; ${answered} answered, ${refused} refused as too many`,
    )
    return true
  } finally {
    await pennon.stop()
  }
}

function over(seconds: number): () => boolean {
  const endMs = performance.now() + seconds * 1_000
  return () => performance.now() >= endMs
}
