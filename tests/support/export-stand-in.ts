// Stands in for the export APIs of Mixpanel and Amplitude: answers in their recorded formats, enforces their limits,
// and fails as they do.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { BlobWriter, TextReader, Uint8ArrayReader, ZipWriter } from '@zip.js/zip.js'

/** How one answer is sent or fails. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly body?: string; readonly retryAfter?: string }
  /** The announced length is longer than what comes. */
  | { readonly kind: 'cut_connection' }
  /** A whole HTTP answer around half of the file. */
  | { readonly kind: 'cut_file' }
  | { readonly kind: 'empty_body' }
  | { readonly kind: 'closed' }
  /** Words of the source at the end of the lines. */
  | { readonly kind: 'terminated_early' }
  /** A byte in the middle differs. */
  | { readonly kind: 'damaged' }

export interface AskedWindow {
  readonly from: string
  readonly to: string
  /** How often exactly this window was requested, from 1. */
  readonly times: number
  readonly authorization: string
  readonly url: URL
}

export interface StandInOptions {
  /** Lines of a day (Mixpanel) or an hour (Amplitude): the true data. */
  readonly lines: ReadonlyMap<string, readonly string[]>
  readonly faultOf?: (window: AskedWindow) => Fault | null
  /** Reorders the lines of an answer; by default they stay in order. */
  readonly reorder?: (lines: readonly string[]) => readonly string[]
  readonly isPacked?: boolean
  /** How long an answer takes; none by default. */
  readonly slowMs?: number
  /** The clock used for the limit. */
  readonly nowMs?: () => number
  readonly callsPerHour?: number
}

export interface StandIn {
  readonly url: string
  readonly asked: AskedWindow[]
  /** Calls refused because of the limit. */
  readonly overLimit: () => number
  stop(): Promise<void>
}

/** By day, `YYYY-MM-DD`, both ends inclusive. */
export function startMixpanel(options: StandInOptions): Promise<StandIn> {
  return startStandIn(options, {
    path: '/api/2.0/export',
    parameters: ['from_date', 'to_date'],
    answer: async (lines, { isPacked = true }) => {
      const text = lines.map(line => `${line}\n`).join('')
      return isPacked
        ? { body: gzipSync(text), headers: { 'content-encoding': 'gzip', 'content-type': 'text/plain' } }
        : { body: Buffer.from(text), headers: { 'content-type': 'text/plain' } }
    },
  })
}

/** By hour, `YYYYMMDDTHH`, both ends inclusive. */
export function startAmplitude(options: StandInOptions): Promise<StandIn> {
  return startStandIn(options, {
    path: '/api/2/export',
    parameters: ['start', 'end'],
    answer: async lines => {
      if (lines.length === 0) return null
      return { body: await zipOf(lines), headers: { 'content-type': 'application/zip' } }
    },
  })
}

/**
 * Entries as Amplitude names them, each gzipped separately.
 * @param isZip64 uses fields of 64 bits, as needed beyond 4 GiB.
 */
export async function zipOf(lines: readonly string[], isZip64 = false): Promise<Buffer> {
  const zip = new ZipWriter(new BlobWriter(), { useWebWorkers: false, zip64: isZip64 })
  const half = Math.ceil(lines.length / 2)
  for (const [index, share] of [lines.slice(0, half), lines.slice(half)].entries()) {
    const packed = gzipSync(share.map(line => `${line}\n`).join(''))
    const at = { lastModDate: new Date('2024-05-01T00:00:00Z') }
    await zip.add(`9001/9001_2024-05-01_${index}#1.json.gz`, new Uint8ArrayReader(packed), at)
  }
  await zip.add('9001/complete.txt', new TextReader('ok'), { lastModDate: new Date('2024-05-01T00:00:00Z') })
  return Buffer.from(await (await zip.close()).arrayBuffer())
}

interface Api {
  readonly path: string
  readonly parameters: readonly [string, string]
  /** Null when there is no data. */
  answer(
    lines: readonly string[],
    options: StandInOptions,
  ): Promise<{ body: Buffer; headers: Record<string, string> } | null>
}

async function startStandIn(options: StandInOptions, api: Api): Promise<StandIn> {
  const { lines, nowMs = Date.now, callsPerHour = Infinity } = options
  const asked: AskedWindow[] = []
  const callsMs: number[] = []
  let overLimit = 0
  const isOverLimit = () => {
    const at = nowMs()
    if (callsMs.filter(call => call > at - 3_600_000).length >= callsPerHour) return true
    callsMs.push(at)
    return false
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url!, 'http://stand-in')
    if (url.pathname !== api.path) return void response.writeHead(421).end('another path')
    const [from, to] = api.parameters.map(name => url.searchParams.get(name)!) as [string, string]
    const times = asked.filter(window => window.from === from && window.to === to).length + 1
    const window = { from, to, times, authorization: request.headers.authorization ?? '', url }
    asked.push(window)
    if (isOverLimit()) {
      overLimit++
      return void response.writeHead(429, { 'retry-after': '60' }).end('{"error": "too many calls"}')
    }
    const keys = [...lines.keys()].filter(key => key >= from && key <= to)
    const wanted = keys.flatMap(key => lines.get(key)!)
    const fault = options.faultOf?.(window) ?? null
    const sent = options.reorder?.(wanted) ?? wanted
    const whole = await api.answer(fault?.kind === 'terminated_early' ? [...sent, 'terminated early'] : sent, options)
    if (whole === null && fault === null) return void response.writeHead(404).end('Raw data files were not found.')
    const answered = whole ?? { body: Buffer.alloc(0), headers: {} }
    if (fault === null && options.slowMs !== undefined) await sendSlowly(response, answered, options.slowMs)
    else send(request, response, fault, answered)
  }
  const server = createServer((request, response) => {
    answer(request, response).catch(error => {
      console.error(error)
      response.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    asked,
    overLimit: () => overLimit,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const sliceCount = 8

async function sendSlowly(
  response: ServerResponse,
  { body, headers }: { readonly body: Buffer; readonly headers: Record<string, string> },
  slowMs: number,
): Promise<void> {
  response.writeHead(200, { ...headers, 'content-length': body.length })
  const sliceBytes = Math.ceil(body.length / sliceCount)
  for (let from = 0; from < body.length && !response.destroyed; from += sliceBytes) {
    response.write(body.subarray(from, from + sliceBytes))
    await sleep(slowMs / sliceCount)
  }
  response.end()
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  fault: Fault | null,
  { body, headers }: { readonly body: Buffer; readonly headers: Record<string, string> },
): void {
  switch (fault?.kind) {
    case 'status':
      response.writeHead(fault.status, fault.retryAfter === undefined ? {} : { 'retry-after': fault.retryAfter })
      response.end(fault.body ?? '')
      return
    case 'closed':
      request.socket.destroy()
      return
    case 'cut_connection':
      response.writeHead(200, { ...headers, 'content-length': body.length })
      response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy())
      return
    case 'cut_file':
      response.writeHead(200, headers).end(body.subarray(0, Math.floor(body.length * 0.6)))
      return
    case 'empty_body':
      response.writeHead(200).end()
      return
    case 'damaged': {
      const damaged = Buffer.from(body)
      damaged[Math.floor(body.length / 2)]! ^= 0x55
      response.writeHead(200, headers).end(damaged)
      return
    }
    default:
      response.writeHead(200, headers).end(body)
  }
}
