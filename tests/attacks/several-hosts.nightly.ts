// Requests that name several hosts. If a proxy uses one of them and a server another, a client can reach what the proxy
// protects. Every port must therefore refuse them, however they are written, before doing anything else.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { processCpuMs } from '../support/cpu-time.ts'
import { freePort } from '../support/free-port.ts'
import { startPennonFor, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { bystander, figures } from './attack.ts'

const perPort = 500
const password = 'of-the-dashboards'
const event = JSON.stringify({ api_key: testProjectKey, event: 'smuggled', distinct_id: 'ada' })

const pairs = [
  ['Host: x', 'Host: y'],
  ['host: x', 'HOST: x'],
  ['Host: x', 'X-Between: 1', 'hOST: y'],
  ['Host: x', 'Host:'],
  ['Host:', 'Host: admin.internal'],
]

describe('requests that name several hosts', () => {
  it('are refused on every port', async t => {
    const ports = { admin: await freePort(), events: await freePort() }
    const pennon = await startPennonFor(t, {
      settings: {
        PENNON_ADMIN_PORT: String(ports.admin),
        PENNON_EVENTS_PORT: String(ports.events),
        PENNON_EVENTS_PASSWORD: password,
      },
    })
    const personal = `Authorization: Bearer ${testPersonalKey}`
    const asked: [what: string, port: number, line: string, header: string, body: string][] = [
      ['capture', pennon.port, 'POST /capture/', 'Content-Type: application/json', event],
      ['flags', pennon.port, 'POST /flags?v=2', 'Content-Type: application/json', event],
      ['the private API', ports.admin, 'GET /api/users/@me/', personal, ''],
      ['health', ports.admin, 'GET /_liveness', 'Accept: */*', ''],
      ['dashboards', ports.events, `POST /?user=project_1&password=${password}`, 'Accept: */*', 'SELECT 1'],
      ['ping of dashboards', ports.events, 'GET /ping', 'Accept: */*', ''],
    ]
    for (const [what, port, line, header, body] of asked) {
      const requestOf = (hosts: readonly string[]) =>
        [`${line} HTTP/1.1`, ...hosts, header, `Content-Length: ${body.length}`, 'Connection: close', '', body].join(
          '\r\n',
        )
      assert.match(await answerTo(port, requestOf(['Host: x'])), /^HTTP\/1\.1 200 /, what)
      const before = processCpuMs(pennon.pid)
      for (let sent = 0; sent < perPort; sent++)
        assert.match(await answerTo(port, requestOf(pairs[sent % pairs.length]!)), /^HTTP\/1\.1 400 /, what)
      t.diagnostic(`${perPort} × ${what}: ${((processCpuMs(pennon.pid) - before) / perPort).toFixed(2)} ms of CPU each`)
    }
    const answered = await bystander(pennon, { rounds: 5, adminUrl: `http://127.0.0.1:${ports.admin}` })
    t.diagnostic(figures(answered))
  })
})

function answerTo(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const client = connect(port, '127.0.0.1', () => client.write(request))
    client.setEncoding('utf8').on('data', text => {
      answer += text
    })
    client.once('error', reject).once('close', () => resolve(answer))
  })
}
