// A cheap HTTP/1.1 client over raw sockets: prepared request bytes, keep-alive, one request in flight per connection.
// Runs in a separate process (`bench/load-process.ts`), so that it can be pinned to another core than the server.

import { connect, type Socket } from 'node:net'

export interface LoadOptions {
  readonly port: number
  readonly connections: number
  readonly durationMs: number
  /** Used in turn. */
  readonly requests: readonly Buffer[]
  /** Requests per second, all connections together; when absent, as fast as answers arrive. */
  readonly rate?: number
  /**
   * Keeps the process awake between answers. Waking a sleeping peer costs a server several microseconds of CPU for each
   * answer. A fast server, whose peer never gets to sleep, would be spared this cost, which would make comparisons
   * unfair.
   */
  readonly staysAwake?: boolean
  /** 200 when absent. */
  readonly expectedStatus?: number
  /** Two loads take turns of that many ms: each sends only in its own. They agree by the clock. */
  readonly turn?: { readonly ms: number; readonly isSecond: boolean }
}

export interface LoadResult {
  readonly answerCount: number
  /** Answers with a status other than the expected one. */
  readonly failureCount: number
  readonly seconds: number
  /** Latencies in ms, from the moment a request was due. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Excluded from latencies: requests at a steady rate wait until the compiler has settled in this process too. */
const settlingMs = 1_000

const headerEnd = Buffer.from('\r\n\r\n')

export function httpRequest(path: string, body: Buffer, headers: Record<string, string> = {}): Buffer {
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...headers,
  })
  return Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`),
    body,
  ])
}

export function httpGet(path: string, headers: Record<string, string>): Buffer {
  const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
}

export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = []
  let answerCount = 0
  let failureCount = 0
  let next = 0
  const expectedStatus = String(options.expectedStatus ?? 200)
  const startedAt = performance.now()
  const endsAt = startedAt + options.durationMs
  const gapMs = options.rate === undefined ? 0 : 1000 / options.rate
  let due = startedAt
  /** Connections that have no request in flight and wait for one to be due; only if the process stays awake. */
  const idle: (() => void)[] = []

  let isRunning = true
  const look = () => {
    while (idle.length > 0 && performance.now() >= Math.min(due, endsAt)) idle.pop()!()
    const waitMs = untilTurnMs(options)
    if (isRunning) waitMs > 0 ? setTimeout(look, waitMs) : setImmediate(look)
  }
  if (options.staysAwake === true) look()
  await Promise.all(Array.from({ length: options.connections }, drive))
  isRunning = false
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return {
    answerCount,
    failureCount,
    seconds: (performance.now() - startedAt) / 1000,
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
  }

  function drive(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true })
      let sentAt = 0
      let received: Buffer = Buffer.alloc(0)
      let expected = -1
      const send = (dueAt: number) => {
        const now = performance.now()
        if (now >= endsAt) return finish(socket, resolve)
        // A request that waited for a free connection counts from when it was due, but never from after it was sent.
        sentAt = Math.min(dueAt, now)
        socket.write(options.requests[next++ % options.requests.length]!)
      }
      const takeDue = () => {
        const mine = due
        due += gapMs
        return mine
      }
      const sendNext = () => {
        const turnsInMs = untilTurnMs(options)
        if (turnsInMs > 0) return void setTimeout(sendNext, turnsInMs)
        if (gapMs === 0) return send(performance.now())
        if (options.staysAwake === true) return void idle.push(() => send(takeDue()))
        const mine = takeDue()
        const waitMs = mine - performance.now()
        if (waitMs > 1) setTimeout(() => send(mine), waitMs)
        else send(mine)
      }
      socket.on('connect', sendNext)
      socket.on('error', reject)
      socket.on('data', (chunk: Buffer) => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
        if (expected < 0) {
          const end = received.indexOf(headerEnd)
          if (end < 0) return
          const length = /content-length: (\d+)/i.exec(received.toString('latin1', 0, end))
          expected = end + 4 + Number(length?.[1] ?? 0)
        }
        if (received.length < expected) return
        answerCount++
        if (received.toString('latin1', 9, 12) !== expectedStatus) failureCount++
        if (sentAt > startedAt + settlingMs) latencies.push(performance.now() - sentAt)
        received = Buffer.alloc(0)
        expected = -1
        sendNext()
      })
    })
  }
}

/** 0 while it is this load's turn. */
function untilTurnMs({ turn }: LoadOptions): number {
  if (turn === undefined) return 0
  const into = (Date.now() + (turn.isSecond ? turn.ms : 0)) % (2 * turn.ms)
  return into < turn.ms ? 0 : 2 * turn.ms - into
}

function finish(socket: Socket, resolve: () => void): void {
  socket.end()
  resolve()
}
