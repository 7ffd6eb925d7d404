// How long it takes until a live event can be found, measured for one event after another.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Pennon, testProjectKey } from '../support/pennon.ts'

/**
 * @param askEveryMs interval between checks, each of which costs the event store some milliseconds.
 * @returns ms from sending until the list of events contains it, ascending.
 */
export async function foundLags(pennon: Pennon, isOver: () => boolean, askEveryMs = 10): Promise<number[]> {
  const lags: number[] = []
  while (!isOver()) {
    const uuid = randomUUID()
    const startMs = performance.now()
    await pennon.post('/capture/', { api_key: testProjectKey, event: 'soak', distinct_id: 'soak', uuid })
    for (;;) {
      const { results } = await pennon
        .api<{ results: unknown[] }>('GET', `/api/projects/@current/events/?uuid=${uuid}&after=-1h`)
        .catch(() => ({ results: [] }))
      if (results.length > 0) break
      await sleep(askEveryMs)
    }
    lags.push(performance.now() - startMs)
  }
  return lags.toSorted((a, b) => a - b)
}

export function summary(lags: readonly number[]): string {
  const at = (share: number) => `${Math.round(lags[Math.floor((lags.length - 1) * share)]!)} ms`
  return `${lags.length} events, found after ${at(0.5)} in the median, ${at(0.95)} for 95 %, ${at(1)} at most`
}
