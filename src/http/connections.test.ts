import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../../tests/support/eventually.ts'
import { Connections, computeConnectionsMax, unansweredMax } from './connections.ts'

/** More than the system buffers for a connection whose client reads nothing. */
const largeAnswer = Buffer.alloc(32 * 1024 * 1024)

/**
 * A server that answers `/now` and `/large` at once, `/last` as the connection's last, and everything else when the test
 * ends the response.
 */
async function boundedServer(t: TestContext, max: number) {
  const ended: string[] = []
  const connections = new Connections(max, reason => void ended.push(reason))
  const waiting: ServerResponse[] = []
  let requestCount = 0
  const answer = connections.noting((request, response) => {
    requestCount++
    if (request.url === '/now') response.end('now')
    else if (request.url === '/large') response.end(largeAnswer)
    else if (request.url === '/last') response.setHeader('connection', 'close').end('last')
    else waiting.push(response)
  })
  const server = createServer(answer)
  connections.watch(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const clients: Socket[] = []
  t.after(() => {
    for (const client of clients) client.destroy()
    server.closeAllConnections()
    server.close()
  })
  /** Resolves when the server has admitted or refused the connection. */
  const open = async (localAddress: string): Promise<Socket> => {
    const accepted = once(server, 'connection')
    const client = connect({ port, host: '127.0.0.1', localAddress })
    client.on('error', () => undefined).resume()
    clients.push(client)
    await accepted
    return client
  }
  const ask = async (client: Socket, path: string): Promise<void> => {
    const before = waiting.length
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    if (path === '/now') await once(client, 'data')
    else await eventually(() => waiting.length === before + 1)
  }
  const isGone = (client: Socket) => eventually(() => client.closed, { what: 'its end' })
  return { connections, ended, waiting, open, ask, isGone, requestCount: () => requestCount }
}

const [crowd, other, third] = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const

describe('the connection limit', () => {
  it('refuses new connections of the address with the most, and closes connections of that address to admit others', async t => {
    const { connections, ended, open, isGone } = await boundedServer(t, 4)
    const many = [await open(crowd), await open(crowd), await open(crowd), await open(crowd)]
    await isGone(await open(crowd))
    assert.deepEqual(ended, ['refused'])
    const first = await open(other)
    await isGone(many[0]!)
    const second = await open(third)
    await isGone(many[1]!)
    assert.deepEqual(ended, ['refused', 'crowded', 'crowded'])
    assert.equal(connections.count, 4)
    for (const client of [many[2]!, many[3]!, first, second]) assert.equal(client.closed, false)
  })

  it('closes idle connections first, even those of the address that asks for a new one', async t => {
    const { ended, open, ask, isGone } = await boundedServer(t, 3)
    const [asking, idle, silent] = [await open(crowd), await open(crowd), await open(crowd)]
    await ask(asking, '/later')
    await ask(idle, '/now')
    const next = await open(crowd)
    await isGone(idle)
    await open(other)
    await isGone(silent)
    assert.deepEqual(ended, ['idle', 'crowded'])
    assert.equal(asking.closed || next.closed, false)
  })

  it('aborts an answer only at an address with clearly more connections', async t => {
    const { ended, waiting, open, ask, isGone } = await boundedServer(t, 3)
    const busy = [await open(crowd), await open(crowd), await open(other)]
    for (const client of busy) await ask(client, '/later')
    const last = await open(third)
    await isGone(busy[0]!)
    assert.deepEqual(ended, ['crowded'])
    // Each address has one connection now, so none gives way to another.
    const late = await open('127.0.0.4')
    await isGone(last)
    await ask(late, '/later')
    await isGone(await open('127.0.0.5'))
    assert.deepEqual(ended, ['crowded', 'crowded', 'refused'])
    assert.equal(busy[1]!.closed || busy[2]!.closed || late.closed, false)
    for (const response of waiting) response.end()
  })

  it('admits a new connection after another one closes', async t => {
    const { connections, ended, open } = await boundedServer(t, 2)
    const [first] = [await open(crowd), await open(crowd)]
    first!.destroy()
    await eventually(() => connections.count === 1)
    const next = await open(crowd)
    assert.deepEqual([ended.length, next.closed, connections.count], [0, false, 2])
  })

  it('examines only some of very many connections, and continues with the next ones later', async t => {
    const { open, ask, isGone, ended } = await boundedServer(t, 100)
    const many: Socket[] = []
    for (let index = 0; index < 100; index++) many.push(await open(crowd))
    await ask(many[80]!, '/now')
    await isGone(await open(crowd))
    await open(crowd)
    await isGone(many[80]!)
    assert.deepEqual(ended, ['refused', 'idle'])
  })

  it('leaves enough open files for everything else', () => {
    assert.deepEqual(
      [null, 1_000_000, 1_024, 700, 256, 64].map(computeConnectionsMax),
      [16_384, 16_384, 768, 444, 128, 32],
    )
  })
})

describe('pipelined HTTP requests', () => {
  const requests = (path: string, count: number) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(count)
  const countAnswers = (client: Socket) => {
    let text = ''
    client.on('data', part => {
      text += part
    })
    return () => text.split('HTTP/1.1 200').length - 1
  }

  for (const path of ['/now', '/later'])
    it(`end their connection if there are too many, and the rest is not parsed (${path})`, async t => {
      const { ended, open, isGone, requestCount } = await boundedServer(t, 4)
      const client = await open(crowd)
      client.write(requests(path, 8_000))
      await isGone(client)
      assert.deepEqual(ended, ['pipelined'])
      assert.equal(requestCount(), 1)
    })

  it('are answered while few are pending, however many arrive in total', async t => {
    const { ended, open } = await boundedServer(t, 4)
    const client = await open(crowd)
    const answers = countAnswers(client)
    for (let round = 1; round <= 10; round++) {
      client.write(requests('/now', unansweredMax))
      await eventually(() => answers() === round * unansweredMax)
    }
    assert.deepEqual([ended, client.closed], [[], false])
  })

  it('are started one at a time, in order', async t => {
    const { ended, waiting, open } = await boundedServer(t, 4)
    const client = await open(crowd)
    const answers = countAnswers(client)
    client.write(requests('/later', 3))
    for (let answered = 0; answered < 2 * unansweredMax; answered++) {
      await eventually(() => waiting.length === answered + 1)
      client.write(requests('/later', 1))
      waiting[answered]!.end('later')
      await eventually(() => answers() === answered + 1)
    }
    assert.deepEqual([ended, client.closed], [[], false])
  })

  it('are started only after the system has accepted the previous answer', async t => {
    const { open, ask, waiting, requestCount } = await boundedServer(t, 4)
    const client = await open(crowd)
    client.pause().write(requests('/large', 1) + requests('/later', 1))
    // The requests of another connection are not delayed.
    await ask(await open(other), '/now')
    await eventually(() => requestCount() === 2)
    assert.equal(waiting.length, 0)
    client.resume()
    await eventually(() => waiting.length === 1)
    waiting[0]!.end()
  })

  it('are dropped if the previous answer closes the connection', async t => {
    const { open, isGone, requestCount } = await boundedServer(t, 4)
    const client = await open(crowd)
    const answers = countAnswers(client)
    client.write(requests('/last', 1) + requests('/now', 3))
    await isGone(client)
    assert.deepEqual([answers(), requestCount()], [1, 1])
  })
})
