// A process that does not belong to Pennon: it listens on a loopback port as soon as that is free, answers every
// request with 200, and records all requests. `startStranger` of stranger-process.ts starts it with the port.

import { createServer } from 'node:http'

const port = Number(process.argv[2])
const received: string[] = []

const server = createServer(async (request, response) => {
  let body = ''
  try {
    for await (const chunk of request) body += (chunk as Buffer).toString('latin1')
  } finally {
    received.push(`${request.method} ${request.url}\n${request.rawHeaders.join('\n')}\n${body}`)
  }
  // The answer of a server that accepted an insert of any size.
  response.writeHead(200, { 'x-clickhouse-summary': '{"written_rows":"1000000000"}', 'content-type': 'text/plain' })
  response.end(request.url === '/ping' ? 'Ok.\n' : '')
})

server.on('error', () => setImmediate(take))
server.on('listening', () => process.send!({ type: 'listening' }))
process.on('message', () => process.send!({ type: 'received', received }))
process.on('disconnect', () => process.exit())

function take(): void {
  server.listen(port, '127.0.0.1')
}

take()
