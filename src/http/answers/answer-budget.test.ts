import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../../../tests/support/eventually.ts'
import { Connections } from '../connections.ts'
import { AnswerBudget, exemptFromStallLimit, readerLimits } from './answer-budget.ts'

const MiB = 1024 * 1024
/** More than the system buffers for a connection whose client reads nothing. */
const answer = Buffer.alloc(32 * MiB)
/** The least of `answer` that stays in this process. */
const waitsMin = 16 * MiB

interface Asked {
  readonly client: Socket
  isEnded(): boolean
}

async function startServer(t: TestContext, bytesMax = 1_000 * MiB) {
  const ended: string[] = []
  let begunCount = 0
  let unacknowledged: () => number | Promise<number> = () => 0
  let tick: () => void = () => undefined
  let onAnswered: () => void = () => undefined
  const budget = new AnswerBudget({
    bytesMax,
    senderOf: ({ headers }) => String(headers['x-sender']),
    onEnded: reason => void ended.push(reason),
    readUnacknowledged: async files => {
      const bytes = await unacknowledged()
      return new Map([...files].map(file => [file, bytes]))
    },
    startTicks: onTick => {
      tick = onTick
      return () => undefined
    },
  })
  const connections = new Connections(100, () => undefined, budget)
  const server = createServer(
    connections.serverOptions,
    connections.noting((request, response) => {
      begunCount++
      if (request.url === '/own-time') exemptFromStallLimit(response)
      response.end(request.url === '/small' ? 'small' : answer)
      onAnswered()
    }),
  )
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
  /** Sends a request and reads nothing of its answer. Resolves when the answer has begun. */
  const ask = async (sender: string, path = '/large'): Promise<Asked> => {
    const before = begunCount
    const client = connect({ port, host: '127.0.0.1' }).pause()
    client.on('error', () => undefined)
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Sender: ${sender}\r\n\r\n`)
    clients.push(client)
    await eventually(() => begunCount > before)
    return { client, isEnded: () => client.destroyed }
  }
  /** Runs this many ticks, and whatever the budget does after each. */
  const ticks = async (count: number) => {
    for (let index = 0; index < count; index++) {
      tick()
      await new Promise(setImmediate)
    }
  }
  const holdUnacknowledged = (read: () => number | Promise<number>) => {
    unacknowledged = read
  }
  const callOnAnswered = (call: () => void) => {
    onAnswered = call
  }
  return { budget, ended, ask, ticks, holdUnacknowledged, onAnswered: callOnAnswered, begunCount: () => begunCount }
}

/** Reads until this many bytes have arrived, then stops. */
async function readSome({ client }: Asked, bytes: number): Promise<void> {
  let left = bytes
  const onData = (part: Buffer) => {
    left -= part.length
    if (left <= 0) client.pause()
  }
  client.on('data', onData).resume()
  await eventually(() => left <= 0)
  client.off('data', onData)
}

/** Starts reading first: a client that reads nothing does not see that its connection has ended. */
async function listEnded(asked: readonly Asked[]): Promise<boolean[]> {
  for (const { client } of asked) client.resume()
  await eventually(() => asked.every(({ client }) => client.destroyed || client.bytesRead > answer.length))
  return asked.map(({ isEnded }) => isEnded())
}

describe('the budget for unread answers', () => {
  it('charges unread bytes until their reader takes them', async t => {
    const { budget, ask, ended } = await startServer(t)
    await ask('one', '/small')
    assert.equal(budget.heldBytes, 0)
    const slow = await ask('one')
    assert.ok(budget.heldBytes >= waitsMin && budget.heldBytes <= answer.length + 1_000, `${budget.heldBytes}`)
    slow.client.resume()
    await eventually(() => budget.heldBytes === 0 && slow.client.bytesRead > answer.length)
    assert.deepEqual(ended, [])
  })

  it('frees the bytes of a client that disconnects', async t => {
    const { budget, ask } = await startServer(t)
    const { client } = await ask('one')
    client.destroy()
    await eventually(() => budget.heldBytes === 0)
  })

  it('charges requests that wait behind an unread answer, including their bodies', async t => {
    const { budget, ask, begunCount } = await startServer(t)
    const { client } = await ask('one')
    const before = budget.heldBytes
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(30_000)}`)
    await eventually(() => budget.heldBytes >= before + 30_000)
    assert.equal(begunCount(), 1)
  })

  it('when full, disconnects a reader at the address with the most bytes, even for a new answer to that address', async t => {
    const { ask, ended } = await startServer(t, 80 * MiB)
    const crowd = [await ask('crowd'), await ask('crowd')]
    const other = await ask('other')
    assert.deepEqual(ended, ['no_room'])
    crowd.push(await ask('crowd'))
    assert.deepEqual(ended, ['no_room', 'no_room'])
    const all = await listEnded([other, ...crowd])
    assert.equal(all[0], false)
    assert.equal(all.filter(isEnded => isEnded).length, 2)
  })

  it('disconnects the slowest reader of an address first', async t => {
    const { ask, ended, ticks } = await startServer(t, 80 * MiB)
    const reading = await ask('crowd')
    const standing = await ask('crowd')
    await readSome(reading, 16 * MiB)
    await ticks(readerLimits.youngTicks)
    const next = await ask('crowd')
    assert.deepEqual(ended, ['no_room'])
    assert.deepEqual(await listEnded([reading, standing, next]), [false, true, false])
  })

  it('when full, delays requests to a later turn of the event loop and keeps their order', async t => {
    const { budget, ask, ended, onAnswered } = await startServer(t, 48 * MiB)
    await ask('one')
    const seen: [string, boolean][] = []
    onAnswered(() => {
      seen.push(['when a reader was ended', budget.isFull])
      for (const name of ['first', 'second']) budget.whenFree(() => seen.push([name, budget.isFull]))
    })
    await ask('one')
    await eventually(() => seen.length === 3)
    const inOrder = [
      ['when a reader was ended', true],
      ['first', false],
      ['second', false],
    ]
    assert.deepEqual([seen, ended], [inOrder, ['no_room']])
  })
})

describe('a stalled reader', () => {
  it('is disconnected after 30 seconds', async t => {
    const { ask, ended, ticks } = await startServer(t)
    await ask('one')
    await ticks(readerLimits.stalledTicks - 1)
    assert.deepEqual(ended, [])
    await ticks(1)
    assert.deepEqual(ended, ['stalled'])
  })

  it('stays connected as long as its peer acknowledges a byte now and then', async t => {
    const { ask, ended, ticks, holdUnacknowledged } = await startServer(t)
    let unacknowledged = 1_000
    holdUnacknowledged(() => unacknowledged--)
    await ask('one')
    await ticks(5 * readerLimits.stalledTicks)
    assert.deepEqual(ended, [])
  })

  it('is disconnected even if the system reports on it late, and the system is asked about one reader at a time', async t => {
    const { ask, ended, ticks, holdUnacknowledged } = await startServer(t)
    const asked: ((bytes: number) => void)[] = []
    holdUnacknowledged(() => new Promise(resolve => void asked.push(resolve)))
    for (const sender of ['one', 'other', 'third']) {
      await ask(sender)
      await ticks(1)
    }
    for (let look = 1; look <= 6 && ended.length < 3; look++) {
      await ticks(readerLimits.examinedTicks + 5)
      assert.equal(asked.length, look)
      asked.at(-1)!(1_000)
      await ticks(1)
    }
    assert.deepEqual(ended, ['stalled', 'stalled', 'stalled'])
  })

  it('stays connected if it reads from time to time', async t => {
    const { ask, ended, ticks } = await startServer(t)
    const slow = await ask('one')
    for (let round = 0; round < 2; round++) {
      await ticks(readerLimits.stalledTicks - 1)
      await readSome(slow, 12 * MiB)
    }
    await ticks(readerLimits.stalledTicks - 1)
    assert.deepEqual(ended, [])
  })

  it('is not disconnected early if its answer has a time limit of its own', async t => {
    const { ask, ended, ticks } = await startServer(t)
    await ask('one', '/own-time')
    await ticks(3 * readerLimits.stalledTicks)
    assert.deepEqual(ended, [])
  })
})
