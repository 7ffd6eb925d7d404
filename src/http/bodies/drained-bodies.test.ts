import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { eventually } from '../../../tests/support/eventually.ts'
import { DrainedBodies, isBodyDraining } from './drained-bodies.ts'

const KiB = 1024

/** A client of a server that answers requests at once and drains their bodies. */
async function drainedClient(t: TestContext, limits: { bytesMax: number; msMax: number }) {
  const drained = new DrainedBodies(limits)
  const sockets: Socket[] = []
  const server = createServer((request, response) => {
    sockets.push(request.socket)
    drained.add(request, response)
    response.writeHead(413, { 'content-length': 0 }).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => undefined)
  let answers = ''
  client.setEncoding('utf8').on('data', text => {
    answers += text
  })
  t.after(() => {
    client.destroy()
    server.closeAllConnections()
    server.close()
  })
  return { client, sockets, answers: () => answers }
}

const head = (bytes: number) => `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`

describe('the rest of a body that was refused', () => {
  it('is read to the end, and then the connection serves the next request', async t => {
    const { client, sockets, answers } = await drainedClient(t, { bytesMax: 1024 * KiB, msMax: 60_000 })
    client.write(head(600 * KiB))
    client.write(Buffer.alloc(300 * KiB))
    await eventually(() => answers().includes('413'))
    assert.equal(isBodyDraining(sockets[0]!), true)
    client.write(Buffer.alloc(300 * KiB))
    await eventually(() => !isBodyDraining(sockets[0]!))
    client.write(`${head(1)}x`)
    await eventually(() => answers().split('413').length === 3)
    assert.equal(sockets[0], sockets[1])
  })

  it('is read to the end before the connection is closed if the client sent `Connection: close`', async t => {
    const { client, answers } = await drainedClient(t, { bytesMax: 1024 * KiB, msMax: 60_000 })
    client.write(head(600 * KiB).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    await eventually(() => answers().includes('413'))
    client.write(Buffer.alloc(600 * KiB))
    await eventually(() => client.closed)
    assert.equal(client.bytesWritten > 600 * KiB, true)
    assert.equal(client.errored, null)
  })

  it('is no longer read if it arrives in countless tiny pieces', async t => {
    const { client, answers } = await drainedClient(t, { bytesMax: 1024 * KiB, msMax: 60_000 })
    client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    await eventually(() => answers().includes('413'))
    client.write('1\r\nx\r\n'.repeat(20_000))
    await eventually(() => client.closed)
  })

  it('is no longer read when it exceeds its limit of bytes or of time', async t => {
    const much = await drainedClient(t, { bytesMax: 256 * KiB, msMax: 60_000 })
    much.client.write(head(10_000 * KiB))
    much.client.write(Buffer.alloc(600 * KiB))
    await eventually(() => much.client.closed)
    assert.ok(much.answers().includes('413'))

    const slow = await drainedClient(t, { bytesMax: 256 * KiB, msMax: 200 })
    slow.client.write(`${head(10_000)}x`)
    await eventually(() => slow.client.closed)
    assert.ok(slow.answers().includes('413'))
  })
})
