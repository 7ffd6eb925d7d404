import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { wireError } from '#wire/wire-error.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { Connections } from '../connections.ts'
import { createHttpServer } from '../server.ts'
import { type Route, sendJson } from '../shared/route.ts'

const plain: Route = {
  method: 'POST',
  path: '/plain',
  access: 'open',
  group: 'health',
  bodyLimitBytes: 100,
  handler: (_request, reply) => sendJson(reply, 200, '{}'),
}
const special: Route = {
  ...plain,
  path: '/special',
  stalled: wireError(408, 'body_read_timeout', 'stalled'),
  encodeError: ({ code }) => JSON.stringify({ error: code }),
  retryAfterSeconds: 7,
  echoes: ['x-id'],
}
const unended: Route = {
  ...plain,
  method: 'GET',
  path: '/unended',
  handler: (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/plain' })
    reply.raw.write('begun')
  },
}
const forPages: Route = { ...plain, path: '/pages', group: 'capture' }

interface Connection {
  readonly client: Socket
  /** Resolves when the server has read the headers. */
  send(path: string, bodyBytes: number, over?: { readonly method?: string; readonly origin?: string }): Promise<unknown>
  /** Times the request out. Resolves to its answer. */
  timeOut(): Promise<string>
}

/** A connection to a server, with the server's end of it. */
async function connection(t: TestContext): Promise<Connection> {
  const server = createHttpServer({
    routes: [plain, special, unended, forPages],
    connections: new Connections(10),
    logger: createSilentLogger(),
    metrics: createMetrics(),
    authorize: async () => false,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => server.close())
  const accepted = once(server.server, 'connection')
  const client = connect((server.server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await accepted) as [Socket]
  // Node emits this when a request times out, which would take a minute.
  const timeOut = async () => {
    const error = Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
    let answer = ''
    client.setEncoding('utf8').on('data', text => {
      answer += text
    })
    server.server.emit('clientError', error, socket)
    await once(client, 'end')
    return answer
  }
  const send: Connection['send'] = async (path, bodyBytes, { method = 'POST', origin } = {}) => {
    const requested = once(server.server, 'request')
    const headers = ['Host: x', 'X-Id: 1-2', ...(origin === undefined ? [] : [`Origin: ${origin}`])]
    client.write(`${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: ${bodyBytes}\r\n\r\nabc`)
    await requested
  }
  return { client, send, timeOut }
}

describe('a request whose body never ends', () => {
  it('is answered in the error format of its route if that route has one', async t => {
    const { send, timeOut } = await connection(t)
    await send('/special', 10)
    const answer = await timeOut()
    assert.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n/)
    for (const header of ['x-id: 1-2', 'Retry-After: 7', 'Connection: close'])
      assert.ok(answer.includes(`\r\n${header}\r\n`), header)
    assert.match(answer, /\r\nDate: \w+, /)
    assert.ok(answer.endsWith('\r\n\r\n{"error":"body_read_timeout"}'))
  })

  it('gets the server’s error if its route has no format, even after an answered request on the same connection', async t => {
    const other = await connection(t)
    await other.send('/plain', 10)
    assert.match(await other.timeOut(), /"code":"invalid_request"/)

    const { client, send, timeOut } = await connection(t)
    const answered = once(client, 'data')
    await send('/special', 3)
    await answered
    assert.match(await timeOut(), /"code":"invalid_request"/)
  })

  it('is answered with CORS headers only on routes that allow other origins', async t => {
    const origin = 'https://shop.example'
    const allowed = /^access-control-allow-origin: https:\/\/shop\.example\r$/m
    for (const [path, method, isAllowed] of [
      ['/pages', 'POST', true],
      ['/pages', 'PUT', true],
      ['/plain', 'POST', false],
    ] as const) {
      const { send, timeOut } = await connection(t)
      await send(path, 10, { method, origin })
      const answer = await timeOut()
      assert.match(answer, /^HTTP\/1\.1 408 /)
      assert.equal(allowed.test(answer), isAllowed, `${method} ${path}`)
      assert.equal(/^vary: origin/m.test(answer), isAllowed)
    }
    // The server knows nothing about a next request that never arrived.
    const { client, send, timeOut } = await connection(t)
    const answered = once(client, 'data')
    await send('/pages', 3, { origin })
    await answered
    assert.doesNotMatch(await timeOut(), allowed)
  })
})

describe('a request that cannot be parsed', () => {
  it('is not answered in the middle of another answer', async t => {
    const { client } = await connection(t)
    let received = ''
    client.setEncoding('utf8').on('data', text => {
      received += text
    })
    client.write('GET /unended HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(client, 'data')
    client.write('no request\r\n\r\n')
    await once(client, 'close')
    assert.equal(received.split('HTTP/1.1').length, 2, received)
    assert.match(received, /begun/)
  })

  it('with several Host headers is refused whatever its path and body, and the next request is served', async t => {
    const { client } = await connection(t)
    let received = ''
    client.setEncoding('utf8').on('data', text => {
      received += text
    })
    const heads = ['GET /pages', 'POST /pages', 'GET /nowhere'].map(
      line => `${line} HTTP/1.1\r\nHost: x\r\nHOST: x\r\nContent-Length: 2\r\n\r\n{}`,
    )
    for (const [index, head] of [...heads, 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'].entries()) {
      client.write(head)
      await eventually(() => received.split('HTTP/1.1').length === index + 2)
    }
    assert.deepEqual(
      received.match(/HTTP\/1\.1 \d+/g),
      [400, 400, 400, 404].map(status => `HTTP/1.1 ${status}`),
    )
    assert.match(received, /several Host headers/)
  })
})
