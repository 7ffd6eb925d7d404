import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { wireError } from '#wire/wire-error.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { BodyRoom } from './request-bodies.ts'
import { type Route, sendJson } from './route.ts'
import { createHttpServer } from './server.ts'

const KiB = 1024
const limits = { bytesMax: 512 * KiB, largeBytesMax: 384 * KiB, smallBytesMax: 16 * KiB }
const room = new BodyRoom(limits)
const agent = new Agent({ keepAlive: true })
/** Requests whose handlers were called and have not answered. */
let waiting: { reply: FastifyReply; body: Buffer; end: () => void }[] = []
let server: FastifyInstance
let url: string

const wait: Route = {
  method: 'POST',
  path: '/wait',
  access: 'open',
  group: 'capture',
  bodyLimitBytes: 256 * KiB,
  takesBodyOfGet: true,
  handler: (request, reply) =>
    new Promise<void>(end => void waiting.push({ reply, body: request.body as Buffer, end })),
}
const atOnce: Route = {
  ...wait,
  path: '/at-once',
  group: 'flags',
  handler: (request, reply) => sendJson(reply, 200, String((request.body as Buffer).length)),
}
const routes: Route[] = [
  wait,
  { ...wait, method: 'GET' },
  atOnce,
  {
    ...atOnce,
    path: '/own-words',
    busy: wireError(503, 'own_code', 'own text'),
    encodeError: ({ code }) => JSON.stringify({ error: code }),
    retryAfterSeconds: 7,
  },
  {
    ...atOnce,
    path: '/throws',
    handler: () => {
      throw new Error('on purpose')
    },
  },
]

before(async () => {
  const logger = silentLogger()
  server = createHttpServer({
    ...{ routes, logger, metrics: createMetrics(), authorize: async () => false, bodyRoom: room },
    random: () => 0.999,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
})
after(async () => {
  agent.destroy()
  await server.close()
})
beforeEach(() => {
  waiting = []
  assert.equal(room.heldBytes, 0, 'nothing is left of the test before')
})

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

function send(path: string, body: Buffer, options: { method?: string; chunked?: boolean } = {}): Promise<Answer> {
  const headers = options.chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url + path, { agent, method: options.method ?? 'POST', headers }, async answer => {
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve({ status: answer.statusCode!, headers: answer.headers, body: text })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const bytes = (count: number) => Buffer.alloc(count, 'x')
const heldIs = (count: number) => eventually(() => room.heldBytes === count, { what: `${count} bytes held` })

async function answerAll(): Promise<void> {
  for (const { reply, end } of waiting) {
    sendJson(reply, 200, 'true')
    end()
  }
  await heldIs(0)
}

describe('the room for bodies', () => {
  it('is held from the arrival of a body until its answer, in its very length', async () => {
    const answers = [
      send('/wait', bytes(1)),
      send('/wait', bytes(100 * KiB)),
      send('/wait', bytes(70_001), { chunked: true }),
    ]
    await eventually(() => waiting.length === 3)
    await heldIs(1 + 100 * KiB + 70_001)
    assert.deepEqual(waiting.map(({ body }) => body.length).sort(), [1, 100 * KiB, 70_001].sort())
    assert.ok(waiting.every(({ body }) => body.equals(bytes(body.length))))
    await answerAll()
    assert.deepEqual(
      (await Promise.all(answers)).map(({ status }) => status),
      [200, 200, 200],
    )
  })

  it('has what it lacks answered 503 with Retry-After, on a connection that stays', async () => {
    const held = [send('/wait', bytes(192 * KiB)), send('/wait', bytes(192 * KiB))]
    await eventually(() => waiting.length === 2)
    const refused = await send('/wait', bytes(100 * KiB))
    assert.equal(refused.status, 503)
    assert.equal(JSON.parse(refused.body).code, 'transient_error')
    assert.equal(refused.headers['retry-after'], '30')
    assert.equal(refused.headers.connection, 'keep-alive')
    assert.equal((await send('/wait', bytes(100 * KiB), { method: 'GET' })).status, 503, 'a GET with a body too')
    assert.equal((await send('/at-once', bytes(100 * KiB))).headers['retry-after'], '1')
    const own = await send('/own-words', bytes(100 * KiB))
    assert.deepEqual([own.body, own.headers['retry-after']], ['{"error":"own_code"}', '7'])
    assert.equal(waiting.length, 2, 'no handler saw them')
    await answerAll()
    await Promise.all(held)
  })

  it('keeps a part for small bodies, so that flags are answered while large ones take what they may', async () => {
    const held = [send('/wait', bytes(192 * KiB)), send('/wait', bytes(192 * KiB))]
    await eventually(() => waiting.length === 2)
    assert.equal((await send('/at-once', bytes(limits.smallBytesMax))).status, 200)
    assert.equal((await send('/at-once', bytes(limits.smallBytesMax + 1))).status, 503)
    assert.equal((await send('/at-once', bytes(1), { chunked: true })).status, 503, 'nobody knows that it is small')
    await answerAll()
    await Promise.all(held)
  })

  it('is not held by an announced length, only by what has come', async () => {
    const slow = connect(Number(new URL(url).port), '127.0.0.1')
    slow.write(`POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: ${256 * KiB}\r\n\r\nx`)
    await heldIs(64 * KiB)
    slow.destroy()
    await heldIs(0)
  })

  it('counts a body of chunks of one byte each by what it takes', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write('POST /wait HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.write('1\r\nx\r\n'.repeat(70_000))
    await heldIs(128 * KiB)
    client.end('0\r\n\r\n')
    await eventually(() => waiting.length === 1)
    await heldIs(70_000)
    await answerAll()
  })

  it('is given back for whatever ends a request', async () => {
    assert.equal((await send('/throws', bytes(KiB))).status, 500)
    await heldIs(0)
    assert.equal((await send('/nowhere', bytes(KiB))).status, 404)
    await heldIs(0)
    assert.equal((await send('/wait', bytes(KiB), { method: 'PUT' })).status, 405)
    await heldIs(0)
    const tooLarge = await send('/wait', bytes(257 * KiB), { chunked: true }).catch(() => null)
    assert.ok(tooLarge === null || tooLarge.status === 413)
    await heldIs(0)
    const tooLargeGet = await send('/wait', bytes(257 * KiB), { method: 'GET' }).catch(() => null)
    assert.ok(tooLargeGet === null || tooLargeGet.status === 413)
    await heldIs(0)
  })

  it('is given back for a large body only when nobody works on it any more, though its client is gone', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write(`POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: ${100 * KiB}\r\n\r\n`)
    client.write(bytes(100 * KiB))
    await eventually(() => waiting.length === 1)
    const closed = once(waiting[0]!.reply.raw, 'close')
    client.destroy()
    await closed
    await turn()
    assert.equal(room.heldBytes, 100 * KiB)
    waiting[0]!.end()
    await heldIs(0)
  })
})
