// Live traffic beside a soak: captures and flag evaluations at a steady pace, each timed from the moment it was due, so
// that a stall counts for every request it delayed.

import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Pennon, testProjectKey } from '../support/pennon.ts'
import { summary } from './found-lags.ts'

export interface LiveTraffic {
  /** @returns a line for each kind of request: the count, and the median, 95th percentile and maximum latency. */
  end(): Promise<readonly string[]>
}

/** @param requestsPerSecond for each kind. */
export function startLiveTraffic(pennon: Pennon, requestsPerSecond = 50): LiveTraffic {
  const kinds = {
    capture: () => ['/capture/', { event: 'live', distinct_id: `live-${Math.floor(Math.random() * 1_000)}` }] as const,
    flags: () => ['/flags/?v=2', { distinct_id: `live-${Math.floor(Math.random() * 1_000)}` }] as const,
  }
  let isOver = false
  const running = Object.entries(kinds).map(async ([kind, next]) => {
    const latencies: number[] = []
    const open = new Set<Promise<void>>()
    for (let dueMs = performance.now(); !isOver; dueMs += 1_000 / requestsPerSecond) {
      await sleep(Math.max(0, dueMs - performance.now()))
      const [path, body] = next()
      const from = dueMs
      const sent = post(`${pennon.url}${path}`, { api_key: testProjectKey, ...body }).then(() => {
        latencies.push(performance.now() - from)
        open.delete(sent)
      })
      open.add(sent)
    }
    await Promise.all(open)
    return `${kind}: ${summary(latencies.toSorted((a, b) => a - b))}`
  })
  return {
    end: () => {
      isOver = true
      return Promise.all(running)
    },
  }
}

/** @throws Error for any status but 200. */
function post(url: string, body: unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', headers: { 'content-type': 'application/json' } }, answer => {
      answer.resume().once('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`${url} answered ${answer.statusCode}`))
      })
    })
    sent.once('error', reject)
    sent.end(JSON.stringify(body))
  })
}
