import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { ProvingAgent, UnprovedServerError } from './proving-agent.ts'

const proofMs = 50

describe('ProvingAgent', () => {
  for (const [what, answer, expected] of [
    ['says nothing', (_: Socket, t: TestContext) => t.mock.timers.tick(proofMs), /did not answer/],
    ['hangs up', (socket: Socket) => socket.end(), /closed the connection/],
    ['is wrong', (socket: Socket) => socket.write(answerOf('0'.repeat(64))), /answer is wrong/],
    ['never ends', (socket: Socket) => socket.write('x'.repeat(10_000)), /not a proof/],
  ] as const) {
    it(`sends no request to a server whose answer ${what}`, async t => {
      const received: string[] = []
      const port = await listen(t, socket => {
        socket.on('data', data => received.push(data.toString()))
        socket.once('data', () => answer(socket, t))
      })
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const agent = new ProvingAgent('secret', 1, proofMs)
      t.after(() => agent.destroy())
      const request = get({ host: '127.0.0.1', port, path: '/rows', agent, auth: 'user:password' })
      const [error] = (await once(request, 'error')) as [Error]
      assert.ok(error instanceof UnprovedServerError)
      assert.match(error.message, expected)
      assert.equal(received.length, 1)
      assert.match(
        received[0]!,
        /^GET \/proof\/[0-9a-f]{32} HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\nConnection: keep-alive\r\n\r\n$/,
      )
    })
  }
})

function answerOf(hash: string): string {
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n${hash}\n\r\n0\r\n\r\n`
}

async function listen(t: TestContext, onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}
