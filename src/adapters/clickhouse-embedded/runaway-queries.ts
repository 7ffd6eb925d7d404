// Finds queries of people that go on far beyond their time limit. The engine compares a query with its limits between two
// blocks of rows; one call of a function may take hours for one block, such as a distance of long texts, and nothing in
// the engine ends it. What it holds, cores, memory and one of the places for SQL, all projects have to do without.

import { request } from 'node:http'
import { ProvingAgent } from '../clickhouse/connection/proving-agent.ts'
import type { EngineEndpoint } from './engine-endpoint.ts'

/** Longer than the port for dashboards lets a download take, which a slow reader may draw out. */
export const runawayDefaultMs = 130_000

/**
 * Calls `onRunaway` once, with the seconds that a query of the analyst has run, when it is `runawayMs` over its limit. A
 * question that fails or is not answered is asked again: whether the engine answers at all is for others to notice.
 */
export function watchRunawayQueries(options: {
  readonly endpoint: EngineEndpoint
  readonly runawayMs: number
  readonly onRunaway: (seconds: number) => void
}): void {
  const { runawayMs, onRunaway } = options
  const { url, secret, writer, analyst } = options.endpoint
  const sql = `SELECT toUInt32(maxIf(elapsed, elapsed > toFloat64OrZero(Settings['max_execution_time']) + ${runawayMs / 1000}))
    FROM system.processes WHERE user = '${analyst.username}'`
  const everyMs = Math.min(10_000, runawayMs)
  const agent = new ProvingAgent(secret, 1)
  const askLater = () => void setTimeout(ask, everyMs)
  const ask = () => {
    const auth = `${writer.username}:${writer.password}`
    const asked = request(url, { method: 'POST', agent, auth, timeout: everyMs })
    asked.once('timeout', () => asked.destroy())
    let text = ''
    let isAnswered = false
    asked.once('response', response => {
      isAnswered = response.statusCode === 200
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('error', () => undefined) // the request closes with it
    })
    asked.on('error', () => {
      isAnswered = false
    })
    asked.once('close', () => {
      if (isAnswered && Number(text) > 0) onRunaway(Number(text))
      else askLater()
    })
    asked.end(sql)
  }
  askLater()
}
