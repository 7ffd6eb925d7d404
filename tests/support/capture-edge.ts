// One capture server for a table of requests: sends exactly what a case says, including headers, and returns what this
// request added to the log.

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { CapturedEvent, DecodedRecord } from '#core/events/captured-event.ts'
import { type CaptureServerOptions, startCaptureServer } from './capture-server.ts'
import { decodeRecords } from './decode-records.ts'

export interface EdgeRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface EdgeAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** `detail` of an error, otherwise ''. */
  readonly detail: string
  readonly code: string
  readonly events: readonly CapturedEvent[]
  readonly records: readonly DecodedRecord[]
}

export type CaptureEdge = Awaited<ReturnType<typeof startCaptureEdge>>

/** Sends requests one after another. */
export async function startCaptureEdge(options: Omit<CaptureServerOptions, 'wrapLog'> = {}) {
  let appended: DecodedRecord[] = []
  const undo: (() => unknown)[] = []
  const server = await startCaptureServer(
    { after: fn => void undo.push(fn as () => unknown) },
    {
      ...options,
      wrapLog: log => ({
        ...log,
        append: async (traffic, records) => {
          const bytes = records.bytes
          await log.append(traffic, records)
          appended.push(...decodeRecords(bytes, records.recordCount))
        },
      }),
    },
  )
  return {
    ...server,
    close: async () => {
      for (const step of undo) await step()
    },
    async send({ method = 'POST', path = '/e/', headers = {}, body = '' }: EdgeRequest): Promise<EdgeAnswer> {
      appended = []
      const answer = await exchange(server.url, { method, path, headers, body })
      const records = appended
      const { detail = '', code = '' } = answer.status >= 400 && method !== 'HEAD' ? JSON.parse(answer.body) : {}
      const events = records.flatMap(record => (record.kind === 'event' ? [record.event] : []))
      return { ...answer, detail, code, records, events }
    },
  }
}

function exchange(url: string, { method, path, headers, body }: Required<EdgeRequest>) {
  const bytes = Buffer.from(body as string)
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: string }>((resolve, reject) => {
    const isBare = bytes.length === 0 && ['GET', 'HEAD', 'OPTIONS'].includes(method)
    const length: Record<string, string> = isBare ? {} : { 'Content-Length': String(bytes.length) }
    const { hostname, port } = new URL(url)
    const sent = httpRequest({ hostname, port, path, method, headers: { ...length, ...headers } }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode!, headers: response.headers, body: text })
      })
    })
    sent.on('error', reject)
    sent.end(bytes)
  })
}
