import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PortError } from '#ports/port-error.ts'
import { otlpPaths } from '#wire/otlp/otlp-paths.ts'
import { otlpKey as key, startOtlpServer } from './otlp-server.ts'

// The endpoints of OpenTelemetry with a real server and real decode threads.

const json = { 'content-type': 'application/json' }
const protobuf = { 'content-type': 'application/x-protobuf' }
const bearer = { authorization: `Bearer ${key}` }
const sentences = {
  logs: 'Pennon does not store logs; events and flags are not affected.',
  ai: 'Pennon does not store OpenTelemetry data yet; send AI events to /i/v0/ai/batch/.',
}

const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
const logs = (...logRecords: object[]) => ({ resourceLogs: [{ resource, scopeLogs: [{ logRecords }] }] })
const points = (count: number) => ({ dataPoints: Array(count).fill({ asDouble: 1.5 }) })
const bodies = {
  logs: logs({ body: { stringValue: 'a' } }, {}),
  metrics: { resourceMetrics: [{ resource, scopeMetrics: [{ metrics: [{ gauge: points(1) }, { sum: points(1) }] }] }] },
  traces: { resourceSpans: [{ resource, scopeSpans: [{ spans: [{ name: 'a' }, { name: 'b' }] }] }] },
}
/** Two log records, or two spans, in protobuf. */
const twoItems = Buffer.from([0x0a, 6, 0x12, 4, 0x12, 0, 0x12, 0])
const countNames = { logs: 'rejectedLogRecords', metrics: 'rejectedDataPoints', traces: 'rejectedSpans' }

/** The text at the end of an answer in protobuf. */
function lastText(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  return text.slice(text.indexOf('Pennon'))
}

describe('the OpenTelemetry endpoints', () => {
  it('report on every path and in both formats that nothing was stored, warn the project and count by signal', async t => {
    const server = await startOtlpServer(t)
    for (const { path, signal, sentence } of otlpPaths) {
      for (const spelling of [path, `${path}/`]) {
        const inJson = await server.call(`${spelling}?token=${key}`, bodies[signal], { headers: json })
        assert.deepEqual([inJson.status, inJson.type], [200, 'application/json'])
        assert.deepEqual(inJson.json(), { partialSuccess: { [countNames[signal]]: '2', errorMessage: sentence } })
      }
      if (signal === 'metrics') continue
      const inProtobuf = await server.call(path, twoItems, { headers: { ...protobuf, ...bearer } })
      assert.deepEqual([inProtobuf.status, inProtobuf.type], [200, 'application/x-protobuf'])
      const inner = Buffer.concat([Buffer.from([8, 2, 0x12, sentence.length]), Buffer.from(sentence)])
      assert.deepEqual(inProtobuf.bytes, Buffer.concat([Buffer.from([0x0a, inner.length]), inner]))
    }
    const warning = { projectId: 7, type: 'otlp_not_stored', count: 2 }
    assert.deepEqual(server.warnings[0], { ...warning, signal: 'logs', service: 'shop' })
    assert.equal(server.warnings.length, 2 * otlpPaths.length + 7)
    const { values } = await server.metrics.otlpItems.get()
    assert.deepEqual(Object.fromEntries(values.map(({ labels, value }) => [labels.signal, value])), {
      logs: 18,
      metrics: 8,
      traces: 24,
    })
    assert.equal(await server.logged(), 0)
  })

  it('detect the format even if the content type is wrong, and gzip however it is declared', async t => {
    const server = await startOtlpServer(t)
    const address = `/i/v1/logs?token=${key}`
    const zipped = gzipSync(JSON.stringify(bodies.logs))
    const expected = { partialSuccess: { rejectedLogRecords: '2', errorMessage: sentences.logs } }
    const cases: readonly (readonly [string, Parameters<typeof server.call>[1], Record<string, string>])[] = [
      [address, bodies.logs, protobuf],
      [address, bodies.logs, { 'content-type': 'text/plain' }],
      [address, bodies.logs, { 'content-type': 'no/such; thing' }],
      [address, `${JSON.stringify(logs({}))}\n${JSON.stringify(logs({}))}\n`, json],
      [address, zipped, { ...json, 'content-encoding': 'gzip' }],
      [`${address}&compression=gzip-js`, zipped, { 'content-type': 'text/plain' }],
      [`${address}&compression=gzip`, zipped, json],
      [address, zipped, json],
    ]
    for (const [path, body, headers] of cases) {
      const answer = await server.call(path, body, { headers })
      assert.deepEqual([answer.status, answer.type, answer.json()], [200, 'application/json', expected])
    }
    const asProtobuf = await server.call(address, twoItems, { headers: json })
    assert.deepEqual([asProtobuf.status, asProtobuf.type], [200, 'application/x-protobuf'])
    assert.equal(lastText(asProtobuf.bytes), sentences.logs)
  })

  it('report nothing for a request without items', async t => {
    const server = await startOtlpServer(t)
    for (const body of [{}, { resourceLogs: [] }, logs(), '', gzipSync('')]) {
      const answer = await server.call('/v1/logs', body, { headers: { ...json, ...bearer } })
      assert.deepEqual([answer.status, answer.bytes.toString()], [200, '{}'])
    }
    const empty = await server.call('/i/v1/traces', '', { headers: { ...protobuf, ...bearer } })
    assert.deepEqual([empty.status, empty.type, empty.bytes.length], [200, 'application/x-protobuf', 0])
    assert.deepEqual(server.warnings, [])
  })

  it('reject requests in the format of the content type', async t => {
    const server = await startOtlpServer(t)
    const limit = 2 * 1024 * 1024
    const padded = (bytes: number) => JSON.stringify({ resourceLogs: [] }).padEnd(bytes, ' ')
    const keyless = 'No project key: send it as a Bearer token or as ?token=.'
    const badKey = 'The project key is not valid.'
    const unreadable = 'The body is neither OTLP protobuf nor OTLP JSON.'
    const cases: readonly (readonly [string, string | Uint8Array, Record<string, string>, number, number, string])[] = [
      ['/i/v1/logs', '{}', {}, 401, 16, keyless],
      ['/i/v1/logs?token=', padded(limit + 1), { authorization: 'Basic eDp5' }, 401, 16, keyless],
      ['/i/v1/logs?token=phc_other', '{}', {}, 401, 16, badKey],
      ['/i/v1/logs', '{}', { authorization: 'Bearer phx_personal' }, 401, 16, badKey],
      ['/i/v1/logs', 'hello, world', bearer, 400, 3, unreadable],
      ['/i/v1/metrics', new Uint8Array([255, 255, 255, 255]), bearer, 400, 3, unreadable],
      ['/i/v1/logs', '[1,2]', bearer, 400, 3, unreadable],
      ['/i/v1/logs', '{}', { ...bearer, 'content-encoding': 'zstd' }, 400, 3, unreadable],
      ['/i/v1/logs', '{}', { ...bearer, 'content-encoding': 'gzip' }, 400, 3, unreadable],
      ['/i/v1/logs', '{'.padEnd(limit, '?'), bearer, 400, 3, unreadable],
      ['/i/v1/logs', padded(limit + 1), bearer, 413, 8, 'The body exceeds 2097152 bytes.'],
      ['/v1/traces/', gzipSync(padded(limit + 1)), bearer, 413, 8, 'The body exceeds 2097152 bytes.'],
      ['/i/v0/ai/otel', padded(2 * limit + 1), bearer, 413, 8, 'The body exceeds 4194304 bytes.'],
      ['/i/v0/ai/otel', gzipSync(Buffer.alloc(2 * limit + 1)), bearer, 413, 8, 'The body exceeds 4194304 bytes.'],
    ]
    for (const [path, body, headers, status, code, message] of cases) {
      const inJson = await server.call(path, body, { headers: { ...json, ...headers } })
      assert.deepEqual(
        [inJson.status, inJson.type, inJson.json()],
        [status, 'application/json', { code, message }],
        path,
      )
      const inProtobuf = await server.call(path, body, { headers: { ...protobuf, ...headers } })
      assert.deepEqual([inProtobuf.status, inProtobuf.type], [status, 'application/x-protobuf'], path)
      const encoded = Buffer.concat([Buffer.from([8, code, 0x12, message.length]), Buffer.from(message)])
      assert.deepEqual(inProtobuf.bytes, encoded)
    }
    for (const body of [padded(limit), gzipSync(padded(limit))])
      assert.equal((await server.call('/i/v1/logs', body, { headers: { ...json, ...bearer } })).status, 200)
    assert.deepEqual(server.warnings, [])
  })

  it('decode large bodies in a thread with the same result', async t => {
    const server = await startOtlpServer(t)
    const records = Array(1_000_000).fill([0x12, 0]).flat()
    const scope = Buffer.concat([Buffer.from([0x12, 0x80, 0x89, 0x7a]), Buffer.from(records)])
    const body = Buffer.concat([Buffer.from([0x0a, ...varint(scope.length)]), scope])
    for (const sent of [body, gzipSync(body)]) {
      const answer = await server.call('/i/v0/ai/otel', sent, { headers: { ...protobuf, ...bearer } })
      assert.equal(lastText(answer.bytes), sentences.ai)
    }
    assert.deepEqual(
      server.warnings.map(warning => (warning as { count: number }).count),
      [1_000_000, 1_000_000],
    )
  })

  it('ask the client to retry a large body while decode threads are busy, but still accept small bodies', async t => {
    const run = () => Promise.reject(new PortError('decode-threads', 'unavailable'))
    const server = await startOtlpServer(t, { decodeThreads: { run } })
    for (const large of [JSON.stringify(bodies.logs).padEnd(70_000, ' '), gzipSync(Buffer.alloc(70_000, ' '))]) {
      const busy = await server.call('/v1/logs', large, { headers: { ...json, ...bearer } })
      assert.deepEqual([busy.status, busy.json()], [503, { code: 14, message: 'transient error, please retry' }])
      const seconds = Number(busy.headers.get('retry-after'))
      assert.ok(seconds >= 1 && seconds <= 30)
    }
    assert.equal((await server.call('/v1/logs', bodies.logs, { headers: { ...json, ...bearer } })).status, 200)
  })

  it('answer pages of any origin, also with errors, and accept only POST', async t => {
    const server = await startOtlpServer(t)
    const headers = { origin: 'https://shop.example' }
    const preflight = await server.call('/i/v1/logs/', undefined, { method: 'OPTIONS', headers })
    assert.deepEqual(
      [preflight.status, preflight.headers.get('access-control-allow-methods')],
      [200, 'GET, POST, OPTIONS'],
    )
    for (const path of ['/i/v1/logs', `/i/v1/logs?token=${key}`]) {
      const answer = await server.call(path, {}, { headers })
      assert.equal(answer.headers.get('access-control-allow-origin'), headers.origin)
    }
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const refused = await server.call('/v1/metrics', undefined, { method })
      assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'POST'], method)
    }
  })

  it('answer unknown keys like known keys if the instance accepts unknown keys, but without a warning', async t => {
    const server = await startOtlpServer(t, { unknownKeys: 'accept' })
    const answer = await server.call('/i/v1/logs?token=phc_other', bodies.logs, { headers: json })
    assert.equal(answer.json().partialSuccess.rejectedLogRecords, '2')
    assert.equal((await server.call('/i/v1/logs?token=phx_x', bodies.logs, { headers: json })).status, 401)
    assert.deepEqual(server.warnings, [])
  })
})

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
