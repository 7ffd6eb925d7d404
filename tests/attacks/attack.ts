// The parts of an attack, all in the test's process: many raw connections that send only part of a request, and a
// bystander that asks for flags and sends events as an SDK does.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Pennon, type StartOptions, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import type { Scope } from '../support/temp-dir.ts'

/** Starts an instance for one test. The attacks that the test adds to the list end before the instance is stopped. */
export async function attackedPennon(t: Scope, options: StartOptions) {
  const pennon = await startPennon(options)
  const attacks: RawConnections[] = []
  t.after(async () => {
    for (const attack of attacks) attack.end()
    await pennon.stop()
  })
  return { pennon, attacks }
}

export interface RawConnections {
  readonly sockets: readonly Socket[]
  /** The number of connections that the server has not ended. */
  openCount(): number
  /** Writes the same bytes to each open connection. */
  write(text: string | Buffer): void
  end(): void
}

export interface RawOptions {
  readonly port: number
  readonly count: number
  /** Sent on each connection at once. */
  readonly text?: string | Buffer
  /** On Linux, 127.0.0.2 and so on count as different client addresses. */
  readonly localAddress?: string
  /** Whether answers are read; true by default. */
  readonly reads?: boolean
}

/** Resolves when every connection is established or refused. */
export async function rawConnections({
  port,
  count,
  text,
  localAddress,
  reads = true,
}: RawOptions): Promise<RawConnections> {
  const sockets: Socket[] = []
  const atOnce = 200
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(atOnce, count - sockets.length) }, () => {
      const socket = connect({ port, host: '127.0.0.1', ...(localAddress !== undefined && { localAddress }) })
      socket.on('error', () => undefined)
      if (reads) socket.resume()
      else socket.pause()
      if (text !== undefined) socket.write(text)
      return socket
    })
    sockets.push(...batch)
    await Promise.all(batch.map(socket => settled(socket)))
  }
  return {
    sockets,
    openCount: () => sockets.filter(socket => !socket.destroyed && socket.readable).length,
    write: more => {
      for (const socket of sockets) if (socket.writable) socket.write(more)
    },
    end: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

function settled(socket: Socket): Promise<void> {
  return new Promise(resolve => {
    if (!socket.connecting) return resolve()
    socket.once('connect', resolve).once('close', () => resolve())
  })
}

/** The number of answers by status, or by the code of a failed connection, and the longest wait. */
export interface Answers {
  readonly counts: Record<string, number>
  slowestMs: number
}

let madeCount = 0

export interface Bystander {
  readonly flags: Answers
  readonly capture: Answers
  readonly writes: Answers
}

/** Asks for flags, sends an event and writes through the private API `rounds` times, each on a separate connection. */
export async function bystander(
  pennon: Pick<Pennon, 'url'>,
  {
    rounds = 20,
    adminUrl = pennon.url,
    localAddress,
  }: { rounds?: number; adminUrl?: string; localAddress?: string } = {},
): Promise<Bystander> {
  const seen: Bystander = { flags: noAnswers(), capture: noAnswers(), writes: noAnswers() }
  const key = { Authorization: `Bearer ${testPersonalKey}` }
  for (let round = 0; round < rounds; round++) {
    const asked = { api_key: testProjectKey, distinct_id: 'bystander' }
    await note(seen.flags, post(`${pennon.url}/flags?v=2`, asked, {}, localAddress))
    await note(seen.capture, post(`${pennon.url}/capture/`, { ...asked, event: 'seen' }, {}, localAddress))
    const flag = { key: `made-under-attack-${madeCount++}`, filters: { groups: [] } }
    await note(seen.writes, post(`${adminUrl}/api/projects/@current/feature_flags/`, flag, key, localAddress))
    await sleep(10)
  }
  return seen
}

/** The result as one line of figures. */
export function figures({ flags, capture, writes }: Bystander): string {
  const one = (name: string, { counts, slowestMs }: Answers) =>
    `${name} ${JSON.stringify(counts)} slowest ${Math.round(slowestMs)} ms`
  return [one('flags', flags), one('capture', capture), one('writes', writes)].join(', ')
}

/** Requires that each request of the bystander was carried out. */
export function assertAllServed(answered: Bystander): void {
  const { flags, capture, writes } = answered
  const statuses = [flags, capture, writes].map(({ counts }) => Object.keys(counts).join())
  assert.deepEqual(statuses, ['200', '200', '201'], figures(answered))
}

function noAnswers(): Answers {
  return { counts: {}, slowestMs: 0 }
}

async function note(answers: Answers, asked: Promise<string>): Promise<void> {
  const startedMs = performance.now()
  const answer = await asked
  answers.counts[answer] = (answers.counts[answer] ?? 0) + 1
  answers.slowestMs = Math.max(answers.slowestMs, performance.now() - startedMs)
}

function post(
  url: string,
  body: object,
  headers: Record<string, string>,
  localAddress: string | undefined,
): Promise<string> {
  const text = JSON.stringify(body)
  return new Promise(resolve => {
    const options = {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers },
      ...(localAddress !== undefined && { localAddress }),
    } as const
    const sent = request(url, options, answer => {
      answer.resume().on('close', () => resolve(String(answer.statusCode)))
    })
    sent.on('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? cause.message))
    sent.end(text)
  })
}

/** The sum of a metric's series. */
export async function metric({ url }: Pick<Pennon, 'url'>, name: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${testPersonalKey}` } })
  const values = [...(await response.text()).matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)`, 'gm'))]
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}
