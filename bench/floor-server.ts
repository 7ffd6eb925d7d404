// The floor that figures are compared with: a Fastify server that only parses the body and serialises an answer. Sends
// its port over IPC. Its answers are set over IPC: {answers: {path: json value}}, or {etag}, so that a GET with this
// tag is answered with 304.

import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'

let answers: Record<string, unknown> = {}
let etag = ''
process.on('message', (message: { answers: Record<string, unknown> } | { etag: string }) => {
  if ('etag' in message) etag = message.etag
  else answers = message.answers
  process.send!({ type: 'set' })
})
const server = Fastify({ logger: false, bodyLimit: 64 * 2 ** 20 })
server.removeAllContentTypeParsers()
server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
server.post('/*', (request, reply) => {
  const body = request.body as Buffer
  const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body).toString() : body.toString()
  JSON.parse(text)
  const path = request.url.split('?')[0]!
  reply.header('content-type', 'application/json').send(JSON.stringify(answers[path] ?? { status: 'Ok' }))
})
server.get('/*', (request, reply) => {
  if (request.headers['if-none-match'] === etag) reply.code(304).header('etag', etag).send()
  else reply.code(404).send()
})
await server.listen({ port: 0, host: '127.0.0.1' })
const address = server.server.address() as { port: number }
process.send?.({ type: 'listening', port: address.port })
