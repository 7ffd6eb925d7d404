import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { wireError } from '#wire/wire-error.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { createHttpServer } from '../server.ts'
import { type Route, sendJson } from '../shared/route.ts'
import { BodyBudget } from './request-bodies.ts'
import { paceLimits, SlowBodies } from './slow-bodies.ts'

const KiB = 1024
const limits = {
  bytesMax: 512 * KiB,
  partsBytesMax: 448 * KiB,
  largeBytesMax: 384 * KiB,
  smallBytesMax: 16 * KiB,
}
let tick: () => void = () => assert.fail('no tick was asked for')
const slow = new SlowBodies(onTick => {
  tick = onTick
  return () => undefined
})
const ended: string[] = []
const budget = new BodyBudget({ limits, slow, onEnded: reason => void ended.push(reason) })
const agent = new Agent({ keepAlive: true })
/** Requests whose handlers have been called but have not answered. */
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
  const logger = createSilentLogger()
  server = createHttpServer({
    ...{ routes, logger, metrics: createMetrics(), authorize: async () => false, bodyBudget: budget },
    random: () => 0.999,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
})
after(async () => {
  agent.destroy()
  server.server.closeAllConnections()
  await server.close()
})
beforeEach(() => {
  waiting = []
  assert.equal(budget.heldBytes, 0, 'nothing is left of the test before')
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
const heldIs = (count: number) => eventually(() => budget.heldBytes === count, { what: `${count} bytes held` })

async function answerAll(): Promise<void> {
  for (const { reply, end } of waiting) {
    sendJson(reply, 200, 'true')
    end()
  }
  await heldIs(0)
}

describe('the budget for request bodies', () => {
  it('charges exactly the length of a body, from its arrival until its answer', async () => {
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

  it('causes a 503 with Retry-After when a body does not fit, and the connection stays open', async () => {
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

  it('reserves a share for small bodies, so that flags are answered while large bodies use up the rest', async () => {
    const held = [send('/wait', bytes(192 * KiB)), send('/wait', bytes(192 * KiB))]
    await eventually(() => waiting.length === 2)
    assert.equal((await send('/at-once', bytes(limits.smallBytesMax))).status, 200)
    assert.equal((await send('/at-once', bytes(limits.smallBytesMax + 1))).status, 503)
    assert.equal(
      (await send('/at-once', bytes(1), { chunked: true })).status,
      503,
      'its length is unknown, so it counts as large',
    )
    await answerAll()
    await Promise.all(held)
  })

  it('charges bytes that have arrived, not the announced length', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write(`POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: ${256 * KiB}\r\n\r\nx`)
    await heldIs(1)
    client.destroy()
    await heldIs(0)
  })

  it('charges a body of one-byte chunks for the memory it takes', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write('POST /wait HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    client.write('1\r\nx\r\n'.repeat(4_000))
    await heldIs(4 * KiB)
    client.end('0\r\n\r\n')
    await eventually(() => waiting.length === 1)
    await heldIs(4_000)
    await answerAll()
  })

  it('accepts a body of many small pieces, and refuses a body of countless tiny pieces on any path', async () => {
    const head = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`
    const small = connect(Number(new URL(url).port), '127.0.0.1')
    small.write(`${head('/wait')}${`20\r\n${'x'.repeat(32)}\r\n`.repeat(8_000)}0\r\n\r\n`)
    await eventually(() => waiting.length === 1)
    assert.equal(waiting[0]!.body.length, 8_000 * 32)
    await answerAll()
    small.destroy()
    for (const path of ['/wait', '/nowhere']) {
      const tiny = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => undefined)
      tiny.resume().write(`${head(path)}${'1\r\nx\r\n'.repeat(70_000)}`)
      await eventually(() => tiny.closed, { what: `${path} closed` })
      await heldIs(0)
    }
    assert.equal(waiting.length, 1, 'no handler saw them')
    assert.deepEqual(ended.splice(0), ['tiny_pieces', 'tiny_pieces'])
  })

  it('frees the bytes of a request however it ends', async () => {
    assert.equal((await send('/throws', bytes(KiB))).status, 500)
    await heldIs(0)
    assert.equal((await send('/nowhere', bytes(KiB))).status, 404)
    await heldIs(0)
    assert.equal((await send('/wait', bytes(KiB), { method: 'PUT' })).status, 405)
    await heldIs(0)
    assert.equal((await send('/wait', bytes(257 * KiB), { chunked: true })).status, 413)
    await heldIs(0)
    assert.equal((await send('/wait', bytes(257 * KiB), { method: 'GET' })).status, 413)
    await heldIs(0)
  })

  it('frees a large body only after its handler finishes, even if its client has disconnected', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1')
    client.write(`POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: ${100 * KiB}\r\n\r\n`)
    client.write(bytes(100 * KiB))
    await eventually(() => waiting.length === 1)
    const closed = once(waiting[0]!.reply.raw, 'close')
    client.destroy()
    await closed
    await turn()
    assert.equal(budget.heldBytes, 100 * KiB)
    waiting[0]!.end()
    await heldIs(0)
  })

  it('reserves a share for small bodies that arrive at once, so that slow senders cannot use it up', async () => {
    const attack: Socket[] = []
    for (let held = 0; held + limits.smallBytesMax - 1 <= limits.partsBytesMax; held += limits.smallBytesMax - 1) {
      attack.push(sendPart('/wait', limits.smallBytesMax, limits.smallBytesMax - 1))
      await heldIs(held + limits.smallBytesMax - 1)
    }
    const late = sendPart('/wait', limits.smallBytesMax, limits.smallBytesMax - 1)
    assert.match(await readAnswer(late), /^HTTP\/1\.1 503 /)
    assert.equal((await send('/at-once', bytes(limits.smallBytesMax))).status, 200)
    for (const client of [...attack, late]) client.destroy()
    await heldIs(0)
  })

  it('when full, ends stalled bodies to admit others, but no body that arrives steadily', async () => {
    const still = [1, 2].map(() => sendPart('/own-words', 190 * KiB, 130 * KiB))
    const steady = sendPart('/wait', 16 * KiB, 4 * KiB)
    await eventually(() => budget.arrivedBytes === 264 * KiB)
    assert.equal((await send('/at-once', bytes(100 * KiB))).status, 503, 'no body has yet been measured as slow')
    for (let round = 1; round <= 5; round++) {
      steady.write(bytes(2 * KiB))
      await eventually(() => budget.arrivedBytes === (264 + 2 * round) * KiB)
      tick()
    }
    const firstAnswer = Promise.race(still.map(readAnswer))
    assert.equal((await send('/at-once', bytes(100 * KiB))).status, 200)
    assert.match(await firstAnswer, /^HTTP\/1\.1 503 [\s\S]*own_code/)
    assert.equal(budget.readingCount, 2, 'no more are ended than are needed')
    assert.deepEqual(ended.splice(0), ['no_room'])
    steady.write(bytes(2 * KiB))
    await eventually(() => waiting.length === 1)
    for (const client of still) client.destroy()
    await eventually(() => budget.readingCount === 0)
    await answerAll()
    steady.destroy()
  })

  it('stops reading a body below the minimum rate, and closes its connection', async () => {
    const still = sendPart('/wait', 100 * KiB, 1)
    const silent = sendPart('/wait', 100, 0)
    const slow = sendPart('/wait', 100 * KiB, 1)
    await eventually(() => budget.readingCount === 3)
    for (let count = 1; count < paceLimits.windowTicks; count++) tick()
    slow.write(bytes(paceLimits.windowBytesMin))
    await eventually(() => budget.arrivedBytes === 2 + paceLimits.windowBytesMin)
    assert.deepEqual(ended, [])
    const answers = Promise.all([readAnswer(still), readAnswer(silent)])
    tick()
    for (const answer of await answers) assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*connection: close/i)
    assert.deepEqual(ended.splice(0), ['stalled', 'stalled'])
    await heldIs(budget.heldBytes)
    assert.equal(budget.readingCount, 1)
    slow.destroy()
    await heldIs(0)
  })

  it('frees a body once its answer is ready, even if the client never reads the answer', async () => {
    const client = connect(Number(new URL(url).port), '127.0.0.1').pause()
    client.write(`POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: ${100 * KiB}\r\n\r\n`)
    client.write(bytes(100 * KiB))
    await eventually(() => waiting.length === 1)
    sendJson(waiting[0]!.reply, 200, JSON.stringify('x'.repeat(16 * 1024 * KiB)))
    waiting[0]!.end()
    await heldIs(0)
    assert.equal(waiting[0]!.reply.raw.closed, false)
    client.destroy()
  })
})

/** Sends only a part of a request. */
function sendPart(path: string, announced: number, sent: number): Socket {
  const client = connect(Number(new URL(url).port), '127.0.0.1')
  client.on('error', () => undefined)
  client.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${announced}\r\n\r\n`)
  client.write(bytes(sent))
  return client
}

/** Resolves to the first data that a client receives. */
async function readAnswer(client: Socket): Promise<string> {
  const [text] = await once(client, 'data')
  return String(text)
}
