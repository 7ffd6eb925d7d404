// A process that has nothing to do with Pennon: it takes a loopback port as soon as that is free, answers 200 to whatever
// is asked, and keeps all that it is sent. Spawned by `startStranger` of stranger-process.ts with the port.

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
  // What a server says of an insert that it took, however large.
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
