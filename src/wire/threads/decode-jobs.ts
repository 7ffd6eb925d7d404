// The input and the result of each job of a decode thread, which decodes bodies that would hold the event loop. The
// thread itself is `compose/front/decode-thread.ts`.

import type { ReceivedRequest } from '#core/capture/prepare-events.ts'
import type { CaptureInput, PreparedCapture } from '../capture/decode-capture.ts'
import type { PreparedV1Capture, V1CaptureInput } from '../capture-v1/decode-batch.ts'
import type { DecideContext } from '../flags/decide-request.ts'
import type { FlagsDecodeResult } from '../flags/decode-flags.ts'
import type { FlagsBody } from '../flags/flags-body.ts'
import type { OtlpInput, OtlpReadResult } from '../otlp/read-otlp.ts'
import type { PreparedRecording, RecordingInput } from '../recordings/decode-recording.ts'

/** For each kind of job, its input and its result. */
export interface DecodeJobs {
  readonly capture: readonly [CaptureJob, PreparedCapture]
  readonly capture_v1: readonly [V1CaptureJob, PreparedV1Capture]
  readonly flags: readonly [FlagsJob, FlagsDecodeResult]
  readonly recording: readonly [RecordingJob, PreparedRecording]
  readonly otlp: readonly [OtlpJob, OtlpReadResult]
}

export interface CaptureJob {
  readonly input: Omit<CaptureInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly receivedAtMs: number
  readonly ip: string
  readonly rerouteOlderThanMs: number | null
  readonly importJobId?: number
  /** For a batch that asks for an import report: the time from which on events count as recent, epoch ms. */
  readonly reportRecentFromMs?: number
}

export interface V1CaptureJob {
  readonly input: Omit<V1CaptureInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly received: ReceivedRequest
}

export interface FlagsJob {
  readonly body: Omit<FlagsBody, 'bytes'> & { readonly bytes: Uint8Array<ArrayBuffer> }
  readonly context: DecideContext
  /** The client's address, as `findClientAddress` finds it. */
  readonly address: string
}

export interface RecordingJob {
  readonly input: Omit<RecordingInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly receivedAtMs: number
  readonly userAgent: string
  /** The client's address, as `findClientAddress` finds it. */
  readonly address: string
}

export interface OtlpJob {
  readonly input: Omit<OtlpInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  /** The key outside the body. */
  readonly token: string
  /** The client's address, as `findClientAddress` finds it. */
  readonly address: string
}

/**
 * Bytes that can move to a thread: the buffer's own memory if the buffer fills it, else a copy, as for slices of a pool.
 * All requests share one empty body, so it is never moved.
 */
export function toTransferableBytes(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const isWhole = bytes.length > 0 && bytes.buffer.byteLength === bytes.length
  return isWhole ? (bytes as Buffer<ArrayBuffer>) : new Uint8Array(bytes)
}
