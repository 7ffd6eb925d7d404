import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { decompressItems } from '#core/capture/compressed-items.ts'
import { PortError } from '#ports/port-error.ts'
import type { RefusedInput } from '#services/capture/record-rejects.ts'
import { type CaptureServerOptions, startCaptureServer } from '../support/capture-server.ts'
import { fieldsOf } from '../support/fields-of.ts'

// The recording endpoint with a real server, real decode threads and a memory log.

const ok = '{"status":"Ok"}'

function anElement(properties: object = {}) {
  const given = { token: 'phc_test', distinct_id: 'ada', $session_id: 's-1', $snapshot_data: [{ type: 3 }] }
  return { event: '$snapshot', properties: { ...given, ...properties } }
}

async function startRecordingServer(t: TestContext, { project, ...options }: CaptureServerOptions = {}) {
  const refused: RefusedInput[] = []
  const server = await startCaptureServer(t, {
    settings: { PENNON_TRUSTED_PROXIES: 'none' },
    keepRefusedRecording: input => void refused.push(input),
    project: { id: 7, apiToken: 'phc_test', ...project },
    ...options,
  })
  return {
    metrics: server.metrics,
    refused,
    async call(path: string, body?: unknown, init: RequestInit = {}) {
      const sent = body instanceof Uint8Array || typeof body === 'string' ? body : JSON.stringify(body)
      const post = body === undefined ? {} : { method: 'POST', body: sent as string }
      const response = await fetch(server.url + path, { ...post, ...init })
      return { status: response.status, text: await response.text(), headers: response.headers }
    },
    async kept() {
      const { records } = await server.log.read('main', 0, { recordCountMax: 1e9, bytesMax: 1e9 })
      return records.map(({ record }) => {
        assert.ok(record.kind === 'recording')
        return record.recording
      })
    },
  }
}

describe('the recording endpoint', () => {
  it('stores a request for its project, with and without the trailing slash, by POST and by GET', async t => {
    const server = await startRecordingServer(t)
    for (const path of ['/s/', '/s', '/s/?compression=gzip-js&_=1751367600000&ver=1.2', '/s/?verbose=1'])
      assert.deepEqual(await server.call(path, gzipSync(JSON.stringify([anElement()]))).then(textAndStatus), [200, ok])
    const inQuery = `/s/?data=${encodeURIComponent(JSON.stringify(anElement()))}`
    assert.deepEqual(textAndStatus(await server.call(inQuery)), [200, ok])
    const kept = await server.kept()
    assert.deepEqual(fieldsOf(kept, 'projectId', 'sessionId', 'itemCount'), Array(5).fill([7, 's-1', 1]))
    const { values } = await server.metrics.eventsAccepted.get()
    assert.equal(values.find(({ labels }) => labels.lane === 'replay')?.value, 5)
  })

  it('answers browsers of any origin, and a beacon with 204', async t => {
    const server = await startRecordingServer(t)
    const headers = { origin: 'https://shop.example' }
    const preflight = await server.call('/s/', undefined, { method: 'OPTIONS', headers })
    assert.equal(preflight.status, 200)
    const answer = await server.call('/s/?beacon=1', [anElement()], { headers })
    assert.deepEqual(textAndStatus(answer), [204, ''])
    assert.equal(answer.headers.get('access-control-allow-origin'), 'https://shop.example')
    assert.equal((await server.call('/s/?beacon=x', [anElement()])).status, 400)
  })

  it('decodes large bodies in a thread, and stores them unchanged', async t => {
    const server = await startRecordingServer(t)
    const noise = randomBytes(700_000).toString('base64')
    const items = [{ type: 2, data: noise }, { n: 1 }]
    const text = JSON.stringify([anElement({ $snapshot_data: items }), anElement({ $snapshot_data: { last: true } })])
    assert.equal((await server.call('/s/', text)).status, 200)
    assert.equal((await server.call('/s/', gzipSync(text))).status, 200)
    for (const recording of await server.kept()) {
      assert.deepEqual([recording.projectId, recording.itemCount], [7, 3])
      const json = await decompressItems(recording.items, recording.itemsBytes)
      assert.deepEqual(JSON.parse(json.toString()), [...items, { last: true }])
    }
    const refusal = await server.call('/s/', JSON.stringify([anElement({ $session_id: 'a_b', $snapshot_data: items })]))
    assert.deepEqual([refusal.status, JSON.parse(refusal.text).code], [400, 'invalid_session_id'])
  })

  it('accepts 25 MiB and not a byte more', async t => {
    const server = await startRecordingServer(t)
    const limit = 25 * 1024 * 1024
    const codeOf = async (body: string) => JSON.parse((await server.call('/s/', body)).text).code
    assert.equal(await codeOf('['.padEnd(limit, '?')), 'invalid_json', 'it was read')
    const tooLarge = await server.call('/s/', '['.padEnd(limit + 1, '?'))
    const { code, detail } = JSON.parse(tooLarge.text)
    assert.deepEqual([tooLarge.status, code], [413, 'payload_too_large'])
    assert.equal(detail, 'maximum event size exceeded: Request body exceeds limit of 26214400 bytes')
    await server.call('/s/?_=x&token=phc_test', [anElement()])
    assert.deepEqual(fieldsOf(server.refused.slice(1), 'token', 'reason', 'field'), [
      [null, 'payload_too_large', ''],
      ['phc_test', 'invalid_query', '_'],
    ])
  })

  it('reports a used-up quota before it validates the snapshots, and stores nothing', async t => {
    const server = await startRecordingServer(t, { quotas: { recordings: 0 } })
    const limited = [200, '{"status":"Ok","quota_limited":["recordings"]}']
    assert.deepEqual(textAndStatus(await server.call('/s/', [anElement()])), limited)
    assert.deepEqual(textAndStatus(await server.call('/s/?beacon=1', [anElement({ $session_id: 1 })])), limited)
    assert.deepEqual(await server.kept(), [])
    assert.deepEqual(server.refused, [])
  })

  it('rejects an unknown key, unless the instance accepts unknown keys', async t => {
    const server = await startRecordingServer(t)
    const answer = await server.call('/s/', [anElement({ token: 'phc_other', $session_id: 1 })])
    assert.deepEqual([answer.status, JSON.parse(answer.text).code], [401, 'unknown_api_key'])
    const open = await startRecordingServer(t, { unknownKeys: 'accept' })
    assert.deepEqual(textAndStatus(await open.call('/s/', [anElement({ token: 'phc_other' })])), [200, ok])
    assert.deepEqual(await open.kept(), [])
  })

  it('stores rejected requests with their key and reason', async t => {
    const server = await startRecordingServer(t)
    const codeOf = async (body: unknown) => JSON.parse((await server.call('/s/', body)).text).code
    assert.equal(await codeOf([anElement({ $session_id: undefined })]), 'missing_session_id')
    assert.equal(await codeOf([anElement({ $snapshot_data: 5 })]), 'missing_snapshot_data')
    assert.equal(await codeOf([anElement(), 5]), 'invalid_shape')
    assert.equal(await codeOf('{'), 'invalid_json')
    assert.deepEqual(
      server.refused.map(({ token, reason, field, lane, body }) => [token, reason, field, lane, body !== '']),
      [
        ['phc_test', 'missing_session_id', 'properties.$session_id', 'replay', true],
        ['phc_test', 'missing_snapshot_data', 'properties.$snapshot_data', 'replay', true],
        ['phc_test', 'invalid_shape', '1', 'replay', true],
        [null, 'invalid_json', '', 'replay', false],
      ],
    )
    assert.deepEqual(server.refused[0]!.item, { uuid: '', name: '$snapshot', distinctId: 'ada' })
  })

  it('answers only after the log has stored the record, and 503 with Retry-After when the log rejects it', async t => {
    const order: string[] = []
    const slow = {
      append: async () => {
        await new Promise(resolve => setImmediate(resolve))
        order.push('durable')
      },
    }
    const server = await startRecordingServer(t, { wrapLog: () => slow })
    assert.equal((await server.call('/s/', [anElement()])).status, 200)
    order.push('answered')
    assert.deepEqual(order, ['durable', 'answered'])
    const append = () => Promise.reject(new PortError('event-log', 'full'))
    const full = await startRecordingServer(t, { wrapLog: () => ({ append }) })
    const answer = await full.call('/s/', [anElement()])
    assert.deepEqual([answer.status, JSON.parse(answer.text).code], [503, 'transient_error'])
    assert.ok(Number(answer.headers.get('retry-after')) >= 1)
  })
})

function textAndStatus({ status, text }: { status: number; text: string }): [number, string] {
  return [status, text]
}
