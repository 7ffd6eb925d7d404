// A TCP proxy between a client and a server that resets connections after a given number of response bytes.

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface CuttingProxy {
  readonly url: string
  /** Response bytes passed to clients so far. */
  readonly bytes: () => number
  /**
   * Resets the next connection that has passed this many bytes, after `then` has been called. Each call cuts one
   * connection.
   */
  cutAfter(bytes: number, then?: () => void | Promise<void>): void
}

export async function startCuttingProxy(
  t: { after(end: () => void | Promise<void>): void },
  target: string,
): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const cuts: { bytes: number; then?: () => void | Promise<void> }[] = []
  let total = 0
  const server = createServer(client => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    let bytes = 0
    client.pipe(upstream)
    upstream.on('data', chunk => {
      bytes += chunk.length
      total += chunk.length
      const cut = cuts[0]
      if (cut !== undefined && bytes >= cut.bytes) {
        cuts.shift()
        const end = () => client.resetAndDestroy()
        if (cut.then === undefined) end()
        else void Promise.resolve(cut.then()).then(end)
        return
      }
      if (!client.write(chunk)) {
        upstream.pause()
        client.once('drain', () => upstream.resume())
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    bytes: () => total,
    cutAfter: (after, then) => void cuts.push({ bytes: after, ...(then === undefined ? {} : { then }) }),
  }
}
