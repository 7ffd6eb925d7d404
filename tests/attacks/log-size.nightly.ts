// Any client with the public key can fill the log: on the wire, a batch of similar events is a hundredth of its size.
// Processed records must free space for new ones, however long they would otherwise be kept.

import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'

const MiB = 1024 * 1024
const logBytesMax = 64 * MiB
const batchSize = 2_000
const timesTheLimit = 3

test('events are accepted again as soon as none are waiting, whatever the log was filled with', async t => {
  const pennon = await startPennonFor(t, { settings: { PENNON_LOG_MAX_BYTES: String(logBytesMax) } })
  let [wireBytes, plainBytes, eventCount, refusedCount, largestLog] = [0, 0, 0, 0, 0]
  for (let n = 0; plainBytes < timesTheLimit * logBytesMax; n++) {
    const body = batch(n)
    const packed = gzipSync(body)
    const response = await eventually(
      async () => {
        const answer = await fetch(`${pennon.url}/batch/`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
          body: packed,
        })
        await answer.arrayBuffer()
        if (answer.status !== 503) return answer
        refusedCount++
        // Only events beyond those that still wait may be refused.
        await pennon.caughtUp()
        return null
      },
      { timeoutMs: 130_000, what: `batch ${n}, of which nothing stands in the way` },
    )
    assert.equal(response.status, 200)
    wireBytes += packed.length
    plainBytes += body.length
    eventCount += batchSize
    largestLog = Math.max(largestLog, folderBytes(join(pennon.dataFolder, 'log')))
  }
  await pennon.caughtUp()
  assert.equal((await fetch(`${pennon.url}/_readiness?require=capture`)).status, 200)
  const { lanes } = await pennon.api<{ lanes: { main: { processed: number } } }>(
    'GET',
    '/api/projects/@current/ingestion_status/',
  )
  assert.equal(lanes.main.processed, eventCount, 'each accepted event is there once')

  const packedBytes = await eventually(() => bytesOf(join(pennon.dataFolder, 'log', 'main'), /\.packed\.db$/))
  t.diagnostic(
    `${eventCount} events: ${perEvent(wireBytes)} on the wire, ${perEvent(plainBytes)} as JSON; ` +
      `refused ${refusedCount} times; the log took at most ${Math.round(largestLog / MiB)} of ${logBytesMax / MiB} MiB, ` +
      `${Math.round(packedBytes / MiB)} MiB of it packed at the end`,
  )

  function perEvent(bytes: number): string {
    return `${Math.round(bytes / eventCount)} bytes an event`
  }
})

function batch(n: number): Buffer {
  const events = Array.from({ length: batchSize }, (_, index) => ({
    event: '$pageview',
    distinct_id: `visitor-${index % 50}`,
    properties: {
      n: n * batchSize + index,
      $current_url: 'https://shop.example/',
      pad: 'lorem ipsum dolor '.repeat(60),
    },
  }))
  return Buffer.from(JSON.stringify({ api_key: testProjectKey, batch: events }))
}

function folderBytes(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).reduce(
    (sum, entry) => (entry.isDirectory() ? sum + bytesOf(join(folder, entry.name), /./) : sum),
    0,
  )
}

function bytesOf(folder: string, names: RegExp): number {
  return readdirSync(folder)
    .filter(name => names.test(name))
    .reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
}
