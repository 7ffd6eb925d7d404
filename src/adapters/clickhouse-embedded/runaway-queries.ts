// Finds user queries that run far beyond their time limit. The engine checks a query's limits between two blocks of
// rows; one function call may take hours for one block, such as a distance of long texts, and nothing in the engine
// stops it. Until it ends, no project can use the cores, the memory and the query slot that it holds.

import { request } from 'node:http'
import { analystOf, sqlScopes } from '../clickhouse/connection/analyst.ts'
import { ProvingAgent } from '../clickhouse/connection/proving-agent.ts'
import type { EngineEndpoint } from './engine-endpoint.ts'

/** Longer than the dashboard port's limit for downloads, since a slow reader may keep a query open for that long. */
export const runawayDefaultMs = 130_000

/**
 * Calls `onRunaway` once, with the seconds that a query of the analyst has run, when it is `runawayMs` over its limit.
 * A failed or unanswered request is repeated; an engine that does not answer at all is detected elsewhere.
 */
export function watchRunawayQueries(options: {
  readonly endpoint: EngineEndpoint
  readonly runawayMs: number
  readonly onRunaway: (seconds: number) => void
}): void {
  const { runawayMs, onRunaway } = options
  const { url, secret, writer, analyst } = options.endpoint
  const users = sqlScopes.map(scope => `'${analystOf(analyst, scope).username}'`)
  const sql = `SELECT toUInt32(maxIf(elapsed, elapsed > toFloat64OrZero(Settings['max_execution_time']) + ${runawayMs / 1000}))
    FROM system.processes WHERE user IN (${users.join(', ')})`
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
