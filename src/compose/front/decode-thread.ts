// The code of a decode thread: it runs the same pure functions as the event loop, one function for each kind of job.

import { randomFillSync } from 'node:crypto'
import { serveThreadJobs } from '#adapters/decode-threads/serve-thread-jobs.ts'
import { createPooledRandomUint32 } from '#core/capture/event-uuid.ts'
import { releaseBytesMemory } from '#core/release-bytes.ts'
import { lowerThreadPriority } from '#telemetry/thread-priority.ts'
import { decodeAndPrepareCapture, type PreparedCapture } from '#wire/capture/decode-capture.ts'
import { type PreparedV1Capture, prepareV1Capture } from '#wire/capture-v1/decode-batch.ts'
import { decodeFlagsRequest, extractRequestLiterals } from '#wire/flags/decode-flags.ts'
import { readOtlp } from '#wire/otlp/read-otlp.ts'
import { decodeRecordingRequest } from '#wire/recordings/decode-recording.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'

lowerThreadPriority()
const random = createPooledRandomUint32(randomFillSync)

serveThreadJobs<DecodeJobs>({
  capture: ({ input, reportRecentFromMs, ...received }) => {
    const capture = { ...input, body: asBuffer(input.body) }
    const outcome = decodeAndPrepareCapture(capture, { ...received, random }, reportRecentFromMs)
    releaseBytesMemory(input.body)
    return { outcome, moved: listMovableBuffers(outcome) }
  },
  capture_v1: ({ input, received }) => {
    const outcome = prepareV1Capture({ ...input, body: asBuffer(input.body) }, received)
    releaseBytesMemory(input.body)
    return { outcome, moved: listMovableBuffers(outcome) }
  },
  flags: ({ body, context }) => ({
    outcome: extractRequestLiterals(decodeFlagsRequest({ ...body, bytes: asBuffer(body.bytes) }, context)),
  }),
  otlp: ({ input }) => {
    const outcome = readOtlp({ ...input, body: asBuffer(input.body) })
    releaseBytesMemory(input.body)
    return { outcome }
  },
  recording: ({ input, receivedAtMs, userAgent }) => {
    const outcome = decodeRecordingRequest(
      { ...input, body: asBuffer(input.body) },
      { receivedAtMs, random, userAgent },
    )
    releaseBytesMemory(input.body)
    return { outcome, moved: outcome.kind === 'prepared' ? [outcome.record.bytes.buffer] : [] }
  },
})

function asBuffer({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

/** Lists the buffers that can be moved: buffers that only the table or its records use. Other buffers are copied. */
function listMovableBuffers(prepared: PreparedCapture | PreparedV1Capture): ArrayBuffer[] {
  if (prepared.kind !== 'prepared') return []
  const { cells, live, import: imports, rejects } = prepared.table
  return [cells, live?.bytes, imports?.bytes, rejects?.bytes].flatMap(array =>
    array !== undefined && array.byteLength === array.buffer.byteLength ? [array.buffer] : [],
  )
}
