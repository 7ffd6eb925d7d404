import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { processCpuMs } from '../support/cpu-time.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, testProjectKey } from '../support/pennon.ts'
import { assertAllServed, attackedPennon, bystander, figures, metric, rawConnections } from './attack.ts'

const MiB = 1024 * 1024
/** The system itself holds megabytes for each connection, limited only for the whole machine. */
const attackers = { count: 100, requestsEach: 12, localAddress: '127.0.0.1' }
const bystanders = '127.0.0.2'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

function postFlags(): string {
  const body = JSON.stringify({ api_key: testProjectKey, distinct_id: 'silent' })
  return `POST /flags?v=2 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

async function addPayloads(pennon: Pennon, count: number, bytesEach: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const payloads = { true: JSON.stringify('p'.repeat(bytesEach)) }
    const filters = { groups: [{ rollout_percentage: 100 }], payloads }
    await pennon.api('POST', '/api/projects/@current/feature_flags/', { key: `large-${index}`, filters })
  }
}

function residentMiB(pennon: Pennon, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pennon.pid}/status`, 'utf8')
  return Math.round(Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)![1]) / 1024)
}

describe('clients that do not read their answers', () => {
  it('use no more than the memory budget, delay no other client, and are disconnected', async t => {
    const { pennon, attacks } = await attackedPennon(t, { settings: { PENNON_LOG_LEVEL: 'error' } })
    await addPayloads(pennon, 16, 250_000)
    await bystander(pennon, { rounds: 10, localAddress: bystanders })
    const before = residentMiB(pennon, 'VmRSS')

    const attempts = [
      ['the schema', get('/openapi.json'), before + 150],
      ['the map of a script', get('/static/array.full.js.map'), before + 150],
      ['flags with large payloads', postFlags(), before + 700],
      ['the map again', get('/static/array.full.js.map'), before + 700],
    ] as const
    const { count, requestsEach, localAddress } = attackers
    for (const [what, request, residentMax] of attempts) {
      for (const attack of attacks.splice(0)) attack.end()
      const cpuBeforeMs = processCpuMs(pennon.pid)
      const text = request.repeat(requestsEach)
      attacks.push(await rawConnections({ port: pennon.port, count, text, localAddress, reads: false }))
      const answered = await bystander(pennon, { rounds: 40, localAddress: bystanders })
      const waiting = await metric(pennon, 'pennon_answer_bytes')
      const ended = await metric(pennon, 'pennon_answers_ended_total')
      const resident = residentMiB(pennon, 'VmRSS')
      t.diagnostic(
        `${count} connections × ${requestsEach} of ${what}, ${Math.round((count * text.length) / 1024)} KiB: ${resident} MiB resident, at most ${residentMiB(pennon, 'VmHWM')}, ${before} before; ${processCpuMs(pennon.pid) - cpuBeforeMs} ms of CPU; ${Math.round(waiting / MiB)} MiB wait, ${ended} readers were ended; ${figures(answered)}`,
      )
      assertAllServed(answered)
      assert.ok(waiting <= 256 * MiB, `${waiting} bytes wait`)
      assert.ok(resident <= residentMax, `${resident} MiB`)
    }
    await eventually(async () => (await metric(pennon, 'pennon_answer_bytes')) === 0, {
      what: 'the readers to be cut off',
    })
  })
})
