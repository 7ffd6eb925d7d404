// A proxy between an SDK and Pennon that records the requests, so that a scenario can check which paths an SDK used and
// that nothing was refused. Bodies pass unread.

import { createServer, request as forward, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly status: number
}

export interface RecordingProxy {
  readonly url: string
  /** In the order of the answers. */
  readonly exchanges: readonly Exchange[]
  /** Returns the requests so far and forgets them. */
  take(): Exchange[]
  /** Answers the next requests to paths that start with `pathPrefix` itself; they do not reach Pennon. */
  answerNext(
    pathPrefix: string,
    answers: readonly { status: number; headers?: Record<string, string>; body: string }[],
  ): void
  close(): Promise<void>
}

export async function startRecordingProxy(targetUrl: string): Promise<RecordingProxy> {
  const target = new URL(targetUrl)
  const exchanges: Exchange[] = []
  const planned: { pathPrefix: string; status: number; headers?: Record<string, string>; body: string }[] = []
  const server = createServer((incoming, answer) => {
    const note = (status: number) =>
      void exchanges.push({ method: incoming.method!, path: incoming.url!, headers: incoming.headers, status })
    const index = planned.findIndex(({ pathPrefix }) => incoming.url!.startsWith(pathPrefix))
    if (index >= 0) {
      const [{ status, headers, body }] = planned.splice(index, 1) as [(typeof planned)[number]]
      incoming.resume().on('end', () => {
        note(status)
        answer.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
      })
      return
    }
    const outgoing = forward(
      {
        host: target.hostname,
        port: target.port,
        method: incoming.method,
        path: incoming.url,
        headers: incoming.headers,
      },
      response => {
        note(response.statusCode!)
        answer.writeHead(response.statusCode!, response.rawHeaders)
        response.pipe(answer)
      },
    )
    outgoing.on('error', () => {
      note(0)
      answer.destroy()
    })
    incoming.pipe(outgoing)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    take: () => exchanges.splice(0),
    answerNext: (pathPrefix, answers) => void planned.push(...answers.map(answer => ({ pathPrefix, ...answer }))),
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
