// One address fills the decode queue with bodies that keep a thread busy as long as their size allows. Large batches of
// other senders must wait for only one or two of the attacker's jobs each, and none of them may be refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type CaptureServer, startCaptureServer, testToken } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { lz64Bomb } from '../support/lz64-bomb.ts'

const goodCount = 5

describe('a decode queue filled by one sender', () => {
  for (const [name, attackerCount, path, body] of [
    ['lz64 that stands for 200 MB', 100, '/e/?compression=lz64', Buffer.from(lz64Bomb(200_000_000))],
    ['gzip of 99 MiB', 20, '/e/', gzipSync(Buffer.alloc(99 * 1024 * 1024, 0x20))],
    ['a form of 2 MiB of plus signs', 80, '/e/', Buffer.from(`data=${'+'.repeat(2 * 1024 * 1024)}`)],
  ] as const) {
    it(`does not keep the batches of other senders from being decoded in turn: ${name}`, async t => {
      const server = await startCaptureServer(t)
      const from = () => ({ 'x-forwarded-for': '192.0.2.1' })
      const attack = attackers(attackerCount, { url: server.url + path, body, from })
      await assertRoundRobin(server, attack, `${name}, ${body.length} bytes × ${attackerCount}`)
    })
  }
})

/** A body that takes a thread about a second: 20 MiB of escapes, sent as 40 KB. */
const escapes: Uint8Array<ArrayBuffer> = gzipSync(
  `{"api_key":"made up","batch":[{"event":"e","distinct_id":"u","properties":{"x":"${'\\ud83d\\ude00'.repeat(20 * 87_381)}"}}]}`,
  { level: 9 },
)

describe('a decode queue filled by one customer of an internet provider', () => {
  const from = (n: number) => ({
    'content-type': 'application/json',
    'x-forwarded-for': `2001:db8:0:${n.toString(16)}::1`,
  })

  it('does not keep other batches from being decoded in turn, even if each body comes from a different network', async t => {
    const server = await startCaptureServer(t)
    const attack = attackers(70, { url: `${server.url}/batch/`, body: escapes, from })
    await assertRoundRobin(server, attack, `70 networks of one /48, ${escapes.length} bytes each`)
  })

  it('does not contain bodies of clients that have disconnected', async t => {
    const server = await startCaptureServer(t)
    const attack = attackers(60, { url: `${server.url}/batch/`, body: escapes, from: () => from(0) })
    await eventually(() => attack.statuses.length > 0)
    await attack.hangUp()
    // From the same sender, whose other bodies would all be read before it.
    await server.post('/batch/', goodBatch(), from(0))
    const ahead = server.jobsAhead.get(from(0)['x-forwarded-for'])!
    console.log(`60 bodies whose clients hung up: ${ahead} of them were read before the next one`)
    // Some are still read before their clients are known to be gone.
    assert.ok(ahead <= 5, `${ahead} were read`)
  })
})

interface Attack {
  readonly statuses: readonly number[]
  /** Aborts the unanswered requests. */
  hangUp(): Promise<void>
}

function attackers(
  count: number,
  sent: { url: string; body: Uint8Array<ArrayBuffer>; from: (n: number) => Record<string, string> },
): Attack {
  const statuses: number[] = []
  const gone = new AbortController()
  const all = Array.from({ length: count }, async (_, n) => {
    const headers = { 'content-type': 'application/json', ...sent.from(n) }
    const answer = await fetch(sent.url, { method: 'POST', headers, body: sent.body, signal: gone.signal })
    statuses.push(answer.status)
  })
  const ended = Promise.allSettled(all)
  return {
    statuses,
    hangUp: async () => {
      gone.abort()
      await ended
    },
  }
}

/** Sends good batches, each from a different address, once the attack has been answered for the first time. */
async function assertRoundRobin(server: CaptureServer, attack: Attack, what: string): Promise<void> {
  await eventually(() => attack.statuses.length > 0)
  const ahead: number[] = []
  for (let n = 0; n < goodCount; n++) {
    const ip = `198.51.100.${n}`
    assert.equal((await server.post('/batch/', goodBatch(), { 'x-forwarded-for': ip })).status, 200)
    ahead.push(server.jobsAhead.get(ip)!)
  }
  await attack.hangUp()
  console.log(
    `${what}: ${attack.statuses.length} answers ${[...new Set(attack.statuses)]}; ahead were ${ahead.join(' ')}`,
  )
  // The running job and one with an earlier turn, but not the 64 that wait.
  for (const count of ahead) assert.ok(count <= 2, `${count} jobs of the attacker came first`)
}

function goodBatch(): Uint8Array<ArrayBuffer> {
  const item = { event: 'e', distinct_id: 'u', properties: { text: 'x'.repeat(200) } }
  return gzipSync(JSON.stringify({ api_key: testToken, batch: Array(3_000).fill(item) }))
}
