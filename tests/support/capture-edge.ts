// One capture server for a table of requests: sends exactly what a case says, including headers, and returns what this
// request added to the log.

import type { IncomingHttpHeaders } from 'node:http'
import type { CapturedEvent, DecodedRecord } from '#core/events/captured-event.ts'
import { exchange } from '../conformance/exchange.ts'
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
      const { status, headers: answered, text } = await exchange(server.url, { method, path, headers, body })
      const records = appended
      const { detail = '', code = '' } = status >= 400 && method !== 'HEAD' ? JSON.parse(text) : {}
      const events = records.flatMap(record => (record.kind === 'event' ? [record.event] : []))
      return { status, headers: answered, body: text, detail, code, records, events }
    },
  }
}
