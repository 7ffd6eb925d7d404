// Small requests that cause much work: a few hundred bytes that become thousands of events, a decompression window
// chosen by the sender, tens of thousands of fields. The event loop must leave them to decode threads or refuse them
// unread.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { assertAllServed, bystander, figures } from './attack.ts'

const bodyCount = 40
const eventCount = 8_001

describe('small bodies that cause much work', () => {
  const pennon = startedForTests(() => startPennon({ waitForProcessing: false }))

  const event = { event: 'e', distinct_id: 'u' }
  const manyEvents = gzipSync(JSON.stringify({ api_key: 'phc_madeup', batch: Array(eventCount).fill(event) }))
  const wideWindow = brotli(`{"api_key":"phc_madeup","distinct_id":"u"}`)
  const decoded: [string, string, Buffer, string, number][] = [
    [`${eventCount} events`, '/batch/', manyEvents, 'gzip', 401],
    ['a window of 16 MiB', '/batch/', brotli(JSON.stringify([{ ...event, api_key: 'phc_madeup' }])), 'br', 401],
    ['a window of 16 MiB for flags', '/flags?v=2', wideWindow, 'br', 413],
  ]
  for (const [what, path, body, encoding, status] of decoded)
    it(`are decoded outside the event loop: ${what}`, async t => {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding }
      const seen = await attacked(async () => post(path, body, headers))
      t.diagnostic(`${bodyCount} × ${body.length} bytes of ${encoding}, ${what}: ${seen.text}`)
      assert.deepEqual(seen.statuses, new Set([status]))
      // Threads do most of the work, and would do none if the event loop decoded.
      assert.ok(4 * seen.threadsMs > seen.loopMs, seen.text)
    })

  const fields = `{${Array.from({ length: 70_000 }, (_, n) => `"k${n}":1`)}}`
  const ofrep = '/ofrep/v1/evaluate/flags'
  const refused: [string, string, string | Buffer, Record<string, string>, number][] = [
    [
      '70,000 fields on the private API',
      '/api/projects/@current/feature_flags/',
      fields,
      { authorization: `Bearer ${testPersonalKey}` },
      413,
    ],
    [
      'a window of 16 MiB over OFREP',
      ofrep,
      wideWindow,
      { authorization: `Bearer ${testProjectKey}`, 'content-encoding': 'br' },
      413,
    ],
  ]
  for (const [what, path, body, headers, status] of refused)
    it(`are refused without being parsed: ${what}`, async t => {
      const seen = await attacked(() => post(path, body, { 'content-type': 'application/json', ...headers }))
      t.diagnostic(`${bodyCount} × ${body.length} bytes, ${what}: ${seen.text}`)
      assert.deepEqual(seen.statuses, new Set([status]))
    })

  async function post(path: string, body: string | Buffer, headers: Record<string, string>): Promise<number> {
    const response = await fetch(`${pennon.url}${path}`, {
      method: 'POST',
      headers,
      body: body as Uint8Array<ArrayBuffer>,
    })
    await response.arrayBuffer()
    return response.status
  }

  async function attacked(send: () => Promise<number>) {
    const before = cpuMs(pennon.pid)
    const [answers, others] = await Promise.all([
      Promise.all(Array.from({ length: bodyCount }, send)),
      bystander(pennon, { rounds: 5, localAddress: '127.0.0.2' }),
    ])
    const spent = cpuMs(pennon.pid)
    const [loopMs, threadsMs] = [spent.loop - before.loop, spent.threads - before.threads]
    const each = (ms: number) => `${(ms / bodyCount).toFixed(1)} ms`
    const text = `for each the event loop works ${each(loopMs)}, decode threads ${each(threadsMs)}; ${figures(others)}`
    assertAllServed(others)
    return { statuses: new Set(answers), loopMs, threadsMs, text }
  }
})

/** 16 MiB of blanks, which the decoder has in its window before it outputs the first byte, whatever the limit. */
function brotli(text: string): Buffer {
  return brotliCompressSync(text.padEnd(16 * 1024 * 1024), {
    params: { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
  })
}

/** CPU time so far of a process's event loop and of its decode threads, which live for a minute without work. */
function cpuMs(pid: number): { loop: number; threads: number } {
  const spent = { loop: 0, threads: 0 }
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string) => readFileSync(`/proc/${pid}/task/${thread}/${file}`, 'utf8')
    const ms = Number(read('schedstat').split(' ')[0]) / 1e6
    if (Number(thread) === pid) spent.loop += ms
    else if (read('comm').startsWith('pennon decode')) spent.threads += ms
  }
  return spent
}
