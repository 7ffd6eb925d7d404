import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { childProcessesOf } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import type { Pennon } from '../support/pennon.ts'
import type { Scope } from '../support/temp-dir.ts'
import { assertAllServed, attackedPennon, bystander, figures, metric, rawConnections } from './attack.ts'

/** A hard limit, which a process cannot raise, as set by systemd's `LimitNOFILE=` and Docker's `--ulimit nofile`. */
const openFilesMax = 700

function pennonOfFewFiles(t: Scope, settings: Record<string, string> = {}) {
  return attackedPennon(t, {
    launcher: ['bash', '-c', `ulimit -n ${openFilesMax}; exec "$@"`, 'bash'],
    settings: { PENNON_LOG_LEVEL: 'error', ...settings },
  })
}

const openFiles = (pid: number) => readdirSync(`/proc/${pid}/fd`).length

/** Fronts that have started; before that, a process has another title. */
const startedFronts = (pennon: Pennon) =>
  childProcessesOf(pennon.pid).filter(pid => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('pennon front'))

const silent = ''
const partOfHeaders = 'POST /batch/ HTTP/1.1\r\nHost: x\r\n'
const partOfBody = `${partOfHeaders}Content-Length: 100000\r\n\r\n{`

describe('more connections than a process may open files', () => {
  for (const [what, text] of Object.entries({ silent, partOfHeaders, partOfBody })) {
    it(`do not use up the files of the log or the connections of other clients (${what})`, async t => {
      const { pennon, attacks } = await pennonOfFewFiles(t)
      const before = await bystander(pennon, { rounds: 5, localAddress: '127.0.0.2' })
      assertAllServed(before)
      attacks.push(await rawConnections({ port: pennon.port, count: 2 * openFilesMax, text }))
      const answered = await bystander(pennon, { rounds: 40, localAddress: '127.0.0.2' })
      const files = openFiles(pennon.pid)
      t.diagnostic(`${2 * openFilesMax} connections, ${files} of ${openFilesMax} files; ${figures(answered)}`)
      assertAllServed(answered)
      assert.ok(files < openFilesMax - 64, `${files} files are open`)
      assert.equal(await metric(pennon, 'pennon_child_restarts_total'), 0)
      assert.doesNotMatch(pennon.output(), /EMFILE|"level":"error"/)
      for (const attack of attacks) attack.end()
      // The next requests come from the attackers' address. While the server still counts the attackers' connections,
      // that address has the most, and the server would end some of its connections.
      await eventually(() => openFiles(pennon.pid) < openFilesMax / 2, { what: 'the end of the attack' })
      const afterwards = await bystander(pennon, { rounds: 5, localAddress: '127.0.0.1' })
      assertAllServed(afterwards)
    })
  }

  it('do not close idle connections of other clients, even with several fronts', async t => {
    const { pennon, attacks } = await pennonOfFewFiles(t, { PENNON_FRONT_PROCESSES: '2' })
    const fronts = await eventually(() => (startedFronts(pennon).length === 2 ? startedFronts(pennon) : undefined))
    const others = await rawConnections({
      port: pennon.port,
      count: 20,
      text: 'GET /_liveness HTTP/1.1\r\nHost: x\r\n\r\n',
      localAddress: '127.0.0.3',
    })
    attacks.push(others)
    await eventually(() => others.sockets.every(socket => socket.bytesRead > 0))
    attacks.push(await rawConnections({ port: pennon.port, count: 4 * openFilesMax, text: partOfBody }))
    // The supervisor accepts connections for both fronts and passes them on one by one.
    await eventually(() => openFiles(pennon.pid) < 200, { what: 'the connections at the fronts' })
    const answered = await bystander(pennon, { rounds: 40, localAddress: '127.0.0.2' })
    const files = fronts.map(openFiles)
    t.diagnostic(`${4 * openFilesMax} connections to 2 fronts, ${files} files; ${figures(answered)}`)
    assertAllServed(answered)
    for (const count of files) assert.ok(count < openFilesMax - 64, `${count} files are open`)
    assert.equal(others.openCount(), 20)
    assert.deepEqual(startedFronts(pennon), fronts)
  })
})
