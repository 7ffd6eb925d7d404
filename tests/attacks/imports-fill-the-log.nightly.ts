// Any client with a public key can flag a flood as an import. Imports may fill their share of the log, but they must
// not cause any live event to be refused.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'

const logBytesMax = 64 * 1024 * 1024
const eventsPerRequest = 4_000
const senderCount = 3
const refusalsWanted = 6

test('live events are accepted while imports are refused, and imports are accepted again once some are processed', async t => {
  const pennon = await startPennonFor(t, { settings: { PENNON_LOG_MAX_BYTES: String(logBytesMax) } })
  const { api_token: liveKey } = await pennon.api<{ api_token: string }>('POST', '/api/projects/', { name: 'live' })
  // Random, so that compression does not make it smaller.
  const item = (n: number) =>
    `{"event":"h","timestamp":"2020-01-01T00:00:00Z","distinct_id":"u${n}","properties":{"p":"${randomBytes(1_350).toString('base64')}"}}`
  const list = Array.from({ length: eventsPerRequest }, (_, n) => item(n)).join()
  const body = gzipSync(`{"api_key":"${testProjectKey}","historical_migration":true,"batch":[${list}]}`)
  const sendImport = async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const answer = await fetch(`${pennon.url}/batch/`, { method: 'POST', headers, body })
    return { status: answer.status, text: await answer.text() }
  }

  const refusals: string[] = []
  const others: string[] = []
  let acceptedCount = 0
  const senders = Array.from({ length: senderCount }, async () => {
    while (refusals.length < refusalsWanted) {
      const { status, text } = await sendImport()
      if (status === 200) acceptedCount++
      else if (status === 503) refusals.push(text)
      else others.push(`${status} ${text}`)
      if (status !== 200) await new Promise(resolve => setTimeout(resolve, 100))
    }
  })
  let isOver = false
  const ended = Promise.all(senders).finally(() => {
    isOver = true
  })
  let liveCount = 0
  while (!isOver) {
    const live = await pennon.post('/e/', { api_key: liveKey, event: 'live', distinct_id: `d${liveCount}` })
    assert.equal(live.status, 200, 'no live event is refused')
    const readiness = await fetch(`${pennon.url}/_readiness?require=capture`)
    const { capture } = (await readiness.json()) as { capture: string }
    assert.deepEqual([readiness.status, capture], [200, 'ok'])
    liveCount++
  }
  await ended
  assert.deepEqual(others, [])
  for (const text of refusals) assert.match(text, /half of PENNON_LOG_MAX_BYTES/)
  await eventually(async () => (await sendImport()).status === 200, { timeoutMs: 120_000, what: 'an import' })
  t.diagnostic(
    `${acceptedCount} imports of ${body.length} bytes accepted and ${refusals.length} refused beside ${liveCount} live events`,
  )
})
