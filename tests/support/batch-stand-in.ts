// Accepts `POST /batch/` as the import stream does and misbehaves on demand, to simulate faults that a healthy service
// does not have.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { addressOf } from './local-server.ts'

export interface ReceivedEvent {
  readonly uuid: string
  readonly event: string
  readonly timestamp: string
  readonly properties: Readonly<Record<string, unknown>> & { readonly distinct_id: string }
}

export interface ReceivedBatch {
  readonly events: readonly ReceivedEvent[]
  readonly bodyBytes: number
  readonly headers: IncomingMessage['headers']
}

export type Fault =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: unknown }
  /** The connection is cut before the events are taken, or after it. */
  | 'cut'
  | 'cut after taking'

export interface BatchStandIn {
  readonly url: string
  /** In order of arrival, with repeats. */
  readonly taken: ReceivedBatch[]
  requests: number
  /** Called for each request; null accepts the batch. */
  fault: (batch: ReceivedBatch) => Fault | null
  /** Added to the answers of accepted batches. */
  answer: (batch: ReceivedBatch) => { body?: object; headers?: Record<string, string> }
}

export async function startBatchStandIn(t: { after(end: () => void): void }): Promise<BatchStandIn> {
  const server = createServer((request, response) => void take(request, response))
  const standIn: BatchStandIn = {
    url: await addressOf(t, server),
    taken: [],
    requests: 0,
    fault: () => null,
    answer: () => ({}),
  }
  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    standIn.requests++
    const body = await text(request.pipe(createGunzip()))
    const { batch } = JSON.parse(body) as { batch: ReceivedEvent[] }
    const received = { events: batch, bodyBytes: Buffer.byteLength(body), headers: request.headers }
    const fault = standIn.fault(received)
    if (fault === 'cut') return void response.destroy()
    if (fault === null || fault === 'cut after taking') standIn.taken.push(received)
    if (fault === 'cut after taking') return void response.destroy()
    if (fault !== null)
      return void response.writeHead(fault.status, fault.headers).end(JSON.stringify(fault.body ?? { detail: 'no' }))
    const answer = standIn.answer(received)
    const { failed_records: failed = [] } = { ...answer.body } as { failed_records?: readonly unknown[] }
    response.writeHead(200, { 'content-type': 'application/json', ...answer.headers }).end(
      JSON.stringify({
        status: 'Ok',
        accepted: batch.length - failed.length,
        duplicates: 0,
        recent: 0,
        ...answer.body,
      }),
    )
  }
  return standIn
}
