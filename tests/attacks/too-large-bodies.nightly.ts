import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { startPennon, startPennonFor } from '../support/pennon.ts'
import { bystander, figures, rawConnections } from './attack.ts'

const MiB = 1024 * 1024

/**
 * Sends like old SDKs: the whole body before reading the answer.
 * @returns the status, or the code of a broken connection.
 */
function send(url: string, bytes: number): Promise<string> {
  return new Promise(resolve => {
    const headers = { 'content-type': 'application/json', 'content-length': bytes }
    const sent = request(url, { method: 'POST', agent: false, headers }, answer => {
      answer.resume().on('close', () => resolve(String(answer.statusCode)))
    })
    sent.on('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? cause.message))
    sent.end(Buffer.alloc(bytes, 'x'))
  })
}

/** Sends requests one after another. @returns the number of answers by status. */
async function answersTo(url: string, bytes: number, count: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (let index = 0; index < count; index++) {
    const answer = await send(url, bytes)
    counts[answer] = (counts[answer] ?? 0) + 1
  }
  return counts
}

describe('bodies above the size limit', () => {
  it('are answered with 413, and clients always receive that answer', async t => {
    const pennon = await startPennonFor(t, { settings: { PENNON_LOG_LEVEL: 'error' }, waitForProcessing: false })
    const batch = await answersTo(`${pennon.url}/batch/`, 21 * MiB, 20)
    const recording = await answersTo(`${pennon.url}/s/`, 27 * MiB, 10)
    const flags = await answersTo(`${pennon.url}/flags?v=2`, 3 * MiB, 20)
    t.diagnostic(`21 MiB to /batch/: ${JSON.stringify(batch)}; 27 MiB to /s/: ${JSON.stringify(recording)}`)
    t.diagnostic(`3 MiB to /flags: ${JSON.stringify(flags)}`)
    assert.deepEqual([batch, recording, flags], [{ 413: 20 }, { 413: 10 }, { 413: 20 }])
  })

  it('do not block other clients, however many are sent without end', async t => {
    const pennon = await startPennon({ settings: { PENNON_LOG_LEVEL: 'error' } })
    const headers = 'POST /batch/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n'
    const attack = await rawConnections({ port: pennon.port, count: 300, text: headers })
    t.after(() => {
      attack.end()
      return pennon.stop()
    })
    const flood = setInterval(() => {
      for (const socket of attack.sockets)
        if (socket.writable && !socket.writableNeedDrain) socket.write(Buffer.alloc(256 * 1024))
    }, 50)
    t.after(() => clearInterval(flood))
    const before = process.cpuUsage()
    const answered = await bystander(pennon, { rounds: 60 })
    const cpu = process.cpuUsage(before)
    t.diagnostic(
      `300 senders without end: ${figures(answered)}; the senders took ${Math.round((cpu.user + cpu.system) / 1000)} ms of CPU`,
    )
    assert.deepEqual([answered.flags.counts, answered.capture.counts], [{ 200: 60 }, { 200: 60 }])
  })
})
