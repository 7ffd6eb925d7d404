// Entry of a decode thread: one job in, one result out, the same pure functions as on the event loop. The pool that
// starts it and feeds it is `adapters/decode-threads`.

import { randomFillSync } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { pooledRandomUint32 } from '#core/events/event-uuid.ts'
import { type CaptureInput, decodeAndPrepare, type PreparedCapture } from './decode-capture.ts'

export interface DecodeJob {
  readonly input: Omit<CaptureInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly receivedAtMs: number
  readonly ip: string
}

/** For the pool. */
export const decodeThreadEntry = new URL(import.meta.url)

const random = pooledRandomUint32(randomFillSync)

parentPort?.on('message', ({ input, receivedAtMs, ip }: DecodeJob) => {
  const { buffer, byteOffset, length } = input.body
  const body = Buffer.from(buffer, byteOffset, length)
  const prepared = decodeAndPrepare({ ...input, body }, { receivedAtMs, ip, random })
  parentPort!.postMessage(prepared, transferable(prepared))
})

/** Buffers that hold nothing but records move; shared ones are copied. */
function transferable(prepared: PreparedCapture): ArrayBuffer[] {
  if (prepared.kind !== 'prepared' || 'refusal' in prepared.outcome) return []
  const { main, historical } = prepared.outcome
  return [main, historical].flatMap(records =>
    records !== null && records.bytes.length === records.bytes.buffer.byteLength ? [records.bytes.buffer] : [],
  )
}
