// Capture protocol v1 over HTTP: the order in which request headers are checked, and the headers of every answer.

import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import {
  assertV1Error,
  requestId,
  sendV1,
  uuidOf,
  type V1Headers,
  v1Batch,
  v1Event,
  v1Headers,
  v1Path,
} from './v1-requests.ts'

const good = v1Batch([v1Event(1)])
const ok = { result: 'ok' }

describe('the headers of v1 capture', () => {
  it('are validated in the order that the protocol prescribes, whatever the body', async t => {
    const server = await startCaptureServer(t)
    // From the last header checked to the first: each fault hides those before it in this list.
    const faults: [over: V1Headers, status: number, tag: string, text?: string][] = [
      [{ 'user-agent': 'caf\u00e9' }, 400, 'invalid_header_value'],
      [{ 'posthog-request-timestamp': '2025-07-01T11:00:00' }, 400, 'invalid_header_value'],
      [
        { 'posthog-attempt': '0' },
        400,
        'invalid_header_value',
        'invalid header value: PostHog-Attempt must be a positive integer: 0',
      ],
      [
        { 'posthog-request-id': 'x' },
        400,
        'invalid_header_value',
        'invalid header value: PostHog-Request-Id is not a valid UUID: x',
      ],
      [{ 'content-encoding': 'lz4' }, 415, 'unsupported_encoding', 'unsupported content encoding: lz4'],
      [{ 'content-type': 'text/plain' }, 415, 'unsupported_content_type', 'unsupported content type: text/plain'],
      [{ authorization: 'Bearer phx_x' }, 401, 'invalid_api_token', 'The provided API token is not valid.'],
      [
        { authorization: 'Basic abc' },
        400,
        'invalid_header_value',
        'invalid header value: Authorization must use Bearer scheme',
      ],
      [{ 'posthog-sdk-info': undefined }, 400, 'missing_required_headers'],
      [{ authorization: undefined }, 401, 'missing_authorization'],
    ]
    let all: V1Headers = {}
    for (const [over, status, tag, text] of faults) {
      await assertV1Error(sendV1(server, good, over), status, tag, text)
      all = { ...all, ...over }
      await assertV1Error(sendV1(server, '{', all), status, tag, text)
    }
    assert.deepEqual((await server.records()).events, [])
  })

  it('are all listed in one error when missing', async t => {
    const server = await startCaptureServer(t)
    const without = { 'posthog-attempt': undefined, 'user-agent': undefined, 'posthog-request-id': undefined }
    const text = 'request is missing required headers: ["PostHog-Attempt", "PostHog-Request-Id", "user-agent"]'
    await assertV1Error(sendV1(server, good, without), 400, 'missing_required_headers', text)
    const nothing = Object.fromEntries(Object.keys(v1Headers).map(name => [name, undefined]))
    const { json } = await sendV1(server, good, { ...nothing, authorization: 'x' })
    for (const name of Object.keys(v1Headers).slice(1))
      assert.ok(json.error_description.toLowerCase().includes(`"${name}"`), name)
  })

  it('are accepted in every form that the protocol allows', async t => {
    const server = await startCaptureServer(t)
    const ways: V1Headers[] = [
      { authorization: `bEARER   ${testToken}` },
      { 'content-type': 'Application/JSON; charset=utf-8' },
      { 'content-encoding': 'GZIP' },
      { 'posthog-attempt': '4294967295' },
      { 'posthog-request-id': requestId.toUpperCase() },
      { 'posthog-request-timestamp': '2025-07-01T13:00:00.123456789+02:00' },
      { 'posthog-sdk-info': 'no version' },
    ]
    for (const [index, over] of ways.entries()) {
      const body = v1Batch([v1Event(index)])
      const { status, json } = await sendV1(server, over['content-encoding'] ? gzipSync(body) : body, over)
      assert.deepEqual([status, json], [200, { results: { [uuidOf(index)]: ok } }], JSON.stringify(over))
    }
    for (const attempt of ['', '1.5', '-1', 'abc', '4294967296', '0x1'])
      await assertV1Error(sendV1(server, good, { 'posthog-attempt': attempt }), 400, 'invalid_header_value')
    for (const authorization of ['Bearer', 'Bearerx', `Token ${testToken}`])
      await assertV1Error(sendV1(server, good, { authorization }), 400, 'invalid_header_value')
    for (const token of ['x'.repeat(65), 'phx_1'])
      await assertV1Error(sendV1(server, good, { authorization: `Bearer ${token}` }), 401, 'invalid_api_token')
    for (const encoding of ['', 'identity', 'gzip, br'])
      await assertV1Error(sendV1(server, good, { 'content-encoding': encoding }), 415, 'unsupported_encoding')
    await assertV1Error(sendV1(server, good, { 'content-encoding': 'gz\u00efp' }), 400, 'invalid_header_value')
  })

  it('are validated before the body arrives', async t => {
    const server = await startCaptureServer(t)
    const answer = await new Promise<number>((resolve, reject) => {
      const headers = { ...v1Headers, 'posthog-attempt': '0', 'content-length': String(99 * 1024 * 1024) }
      const request = httpRequest(server.url + v1Path, { method: 'POST', headers }, response => {
        resolve(response.statusCode!)
        request.destroy()
      })
      request.on('error', reject)
      request.flushHeaders()
    })
    assert.equal(answer, 400)
  })

  it('for the request id and CORS are in every answer', async t => {
    const server = await startCaptureServer(t)
    const origin = 'https://app.example'
    const big = Buffer.alloc(10 * 1024 * 1024 + 1, 0x20)
    const answers = [
      [await sendV1(server, good, { origin }), 200],
      [await sendV1(server, '', { origin }), 400],
      [await sendV1(server, good, { origin, authorization: undefined }), 401],
      [await sendV1(server, big, { origin }), 413],
      [await sendV1(server, '', { origin }, { method: 'GET' }), 405],
      [
        await sendV1(
          server,
          '',
          { origin, 'access-control-request-headers': 'posthog-attempt' },
          { method: 'OPTIONS' },
        ),
        200,
      ],
    ] as const
    for (const [{ status, headers }, expected] of answers) {
      assert.equal(status, expected)
      assert.equal(headers['posthog-request-id'], requestId, String(status))
      assert.equal(headers['access-control-allow-origin'], origin, String(status))
      assert.ok(!Number.isNaN(Date.parse(String(headers.date))))
    }
    const { headers } = answers.at(-1)![0]
    assert.equal(headers['access-control-allow-methods'], 'POST, OPTIONS')
    assert.equal(headers['access-control-allow-headers'], 'posthog-attempt')
  })
})
