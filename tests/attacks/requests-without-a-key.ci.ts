// A client without a key sends what is cheap to send: many requests in one write, or made-up keys. Neither may block
// the event loop, fill the log, or keep clients with a key from using the state.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { processCpuMs } from '../support/cpu-time.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, testPersonalKey } from '../support/pennon.ts'
import { assertAllServed, attackedPennon, bystander, figures, rawConnections } from './attack.ts'

const perConnection = 8_192
const connectionCount = 100

describe('very many requests in one write', () => {
  for (const [what, requestOf] of Object.entries({
    'GET /decide': () => 'GET /decide HTTP/1.1\r\nHost: x\r\n\r\n',
    'made-up personal keys': (n: number) =>
      `GET /api/users/@me/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer phx_madeup${n}\r\n\r\n`,
  })) {
    it(`end their connection, and cost no more than a few requests (${what})`, async t => {
      const { pennon, attacks } = await attackedPennon(t, { waitForProcessing: false })
      await bystander(pennon, { rounds: 5, localAddress: '127.0.0.2' })
      const [cpuBefore, linesBefore] = [processCpuMs(pennon.pid), pennon.output().split('\n').length]
      const text = Buffer.from(Array.from({ length: perConnection }, (_, n) => requestOf(n)).join(''))
      const attack = await rawConnections({ port: pennon.port, count: connectionCount, text })
      attacks.push(attack)
      await eventually(() => attack.openCount() === 0, { what: 'the end of the connections' })
      const cpuMs = processCpuMs(pennon.pid) - cpuBefore
      const lines = pennon.output().split('\n').length - linesBefore
      const answered = await bystander(pennon, { rounds: 10, localAddress: '127.0.0.2' })
      t.diagnostic(
        `${connectionCount} × ${perConnection} requests: ${cpuMs} ms of CPU, ${lines} lines; ${figures(answered)}`,
      )
      assert.equal(await endedCount(pennon), connectionCount)
      assert.ok(lines < 20, `${lines} lines were logged`)
      assertAllServed(answered)
    })
  }
})

async function endedCount({ url }: Pennon): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${testPersonalKey}` } })
  return Number(/^pennon_connections_ended_total\{.*why="pipelined".*\} (\d+)/m.exec(await response.text())![1])
}
