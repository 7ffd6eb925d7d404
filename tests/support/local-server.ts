// HTTP servers that stand in for an instance or a source.

import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './temp-dir.ts'

/** Serves a stand-in until the test ends. @returns its address. */
export async function addressOf(t: Scope, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export function serve(t: Scope, answer: RequestListener): Promise<string> {
  return addressOf(t, createServer(answer))
}

/** Answers these paths with JSON, and all others with 404. @param answers may hold their `status`. */
export function serveAnswers(t: Scope, answers: Readonly<Record<string, object>>): Promise<string> {
  return serve(t, (request, response) => {
    const body = answers[request.url!.replace(/\?.*/, '')] ?? { status: 404, detail: 'There is nothing here.' }
    response.statusCode = (body as { status?: number }).status ?? 200
    response.end(JSON.stringify(body))
  })
}
