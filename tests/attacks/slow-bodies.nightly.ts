import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import type { Scope } from '../support/temp-dir.ts'
import { assertAllServed, attackedPennon, bystander, figures, metric, rawConnections } from './attack.ts'

const KiB = 1024

/** With a second port for the private API. */
async function pennonWithAdminPort(t: Scope) {
  const { pennon, attacks } = await attackedPennon(t, {
    settings: { PENNON_ADMIN_PORT: '0', PENNON_LOG_LEVEL: 'error' },
    waitForProcessing: false,
  })
  return { pennon, attacks, adminUrl: /Private API +(http:\S+)/.exec(pennon.output())![1]! }
}

const heldBytes = (adminUrl: string) => metric({ url: adminUrl }, 'pennon_request_body_bytes')

const partOf = (path: string, announced: number, sent: number) =>
  Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${announced}\r\n\r\n`,
    ),
    Buffer.alloc(sent, '{'),
  ])

describe('bodies that never end', () => {
  it('take up the memory budget only with bytes that have arrived, however many bodies there are', async t => {
    const { pennon, adminUrl, attacks } = await pennonWithAdminPort(t)
    const attack = await rawConnections({ port: pennon.port, count: 4_200, text: partOf('/batch/', 64 * KiB, 1) })
    attacks.push(attack)
    const held = await eventually(async () => (await heldBytes(adminUrl)) || undefined, { what: 'their bytes' })
    const answered = await bystander(pennon, { adminUrl })
    t.diagnostic(`4,200 connections with 1 byte of 64 KiB: ${held} bytes held; meanwhile ${figures(answered)}`)
    assertAllServed(answered)
    // Each connection has sent a byte.
    assert.ok(held <= 4_200 * KiB, `${held} bytes`)
  })

  it('are aborted when almost no bytes arrive', async t => {
    const { pennon, attacks } = await pennonWithAdminPort(t)
    for (const text of [partOf('/batch/', 64 * KiB, 1), partOf('/flags', 64 * KiB, 60 * KiB), partOf('/e/', 9, 0)])
      attacks.push(await rawConnections({ port: pennon.port, count: 20, text }))
    const startedMs = performance.now()
    // One byte a second is no progress.
    const dribble = setInterval(() => attacks[0]!.write('x'), 1_000)
    t.after(() => clearInterval(dribble))
    const answers = collectText(attacks[0]!.sockets[0]!)
    const isOver = () => attacks.every(attack => attack.openCount() === 0)
    await eventually(isOver, { what: 'the end of the connections' })
    t.diagnostic(`60 connections that bring nothing were ended after ${Math.round(performance.now() - startedMs)} ms`)
    assert.match(answers(), /^HTTP\/1\.1 408 /)
    assert.match(answers(), /"body_read_timeout"/)
  })

  it('are aborted in favour of other clients when they use up the memory budget', async t => {
    const { pennon, adminUrl, attacks } = await pennonWithAdminPort(t)
    // 280 MiB in total, each body nearly complete: far more than the budget for bodies.
    const attack = await rawConnections({
      port: pennon.port,
      count: 4_480,
      text: partOf('/batch/', 64 * KiB, 64 * KiB - 1),
    })
    attacks.push(attack)
    const held = await heldBytes(adminUrl)
    const answered = await bystander(pennon, { adminUrl, rounds: 60 })
    t.diagnostic(`280 MiB of bodies that lack a byte: ${held} bytes held; meanwhile ${figures(answered)}`)
    assertAllServed(answered)
    // A body sent in parts, at first indistinguishable from the attackers', gets its bytes as soon as theirs are known
    // to have stalled.
    const inParts = await eventually(
      async () => {
        const body = JSON.stringify({ api_key: 'nobody', batch: [], padding: 'x'.repeat(300 * KiB) })
        const response = await fetch(`${pennon.url}/batch/`, { method: 'POST', body })
        await response.arrayBuffer()
        return response.status !== 503 && response.status
      },
      { what: 'an answer to a large body' },
    )
    assert.equal(inParts, 400)
  })
})
