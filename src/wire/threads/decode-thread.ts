// Entry of a decode thread: one job in, one result out, the same pure functions as on the event loop. The pool that
// starts it and feeds it is `adapters/decode-threads`.

import { randomFillSync } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { pooledRandomUint32 } from '#core/capture/event-uuid.ts'
import type { ReceivedV1Request } from '#core/capture/prepare-v1-events.ts'
import { neighbourhoodOf, networkOf } from '../address/client-address.ts'
import { type CaptureInput, decodeAndPrepare, type PreparedCapture } from '../capture/decode-capture.ts'
import { type PreparedV1Capture, prepareV1Capture, type V1CaptureInput } from '../capture-v1/decode-v1-capture.ts'
import type { DecideContext } from '../flags/decide-request.ts'
import { decodeFlags, type PostedFlags, packFlags } from '../flags/decode-flags.ts'
import type { FlagsBody } from '../flags/flags-body.ts'
import { decodeReplay, type PreparedReplay, type ReplayInput } from '../recordings/decode-replay.ts'

export interface CaptureJob {
  readonly kind: 'capture'
  readonly input: Omit<CaptureInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly receivedAtMs: number
  readonly ip: string
  readonly rerouteOlderThanMs: number | null
}

export interface V1CaptureJob {
  readonly kind: 'capture_v1'
  readonly input: Omit<V1CaptureInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly received: ReceivedV1Request
}

export interface FlagsJob {
  readonly kind: 'flags'
  readonly body: Omit<FlagsBody, 'bytes'> & { readonly bytes: Uint8Array<ArrayBuffer> }
  readonly context: DecideContext
  /** The client's address, as `clientAddress` finds it. */
  readonly address: string
}

export interface ReplayJob {
  readonly kind: 'replay'
  readonly input: Omit<ReplayInput, 'body'> & { readonly body: Uint8Array<ArrayBuffer> }
  readonly receivedAtMs: number
  readonly userAgent: string
  /** The client's address, as `clientAddress` finds it. */
  readonly address: string
}

export type DecodeJob = CaptureJob | V1CaptureJob | FlagsJob | ReplayJob
export type DecodeOutcome = PreparedCapture | PreparedV1Capture | PostedFlags | PreparedReplay

/** `gone` is aborted when the client waits no more: a job that has no thread yet is dropped then. */
type RunArguments = [bytes: number, buffers: ArrayBuffer[], gone: AbortSignal]

/** The pool as handlers see it: each kind of job has an outcome of its own. */
export interface DecodePool {
  /** @throws PortError when the pool cannot take the job or loses it; nothing came of it then. */
  run(job: CaptureJob, ...rest: RunArguments): Promise<PreparedCapture>
  run(job: V1CaptureJob, ...rest: RunArguments): Promise<PreparedV1Capture>
  run(job: FlagsJob, ...rest: RunArguments): Promise<PostedFlags>
  run(job: ReplayJob, ...rest: RunArguments): Promise<PreparedReplay>
}

/** For the pool: events may wait for a moment, a page that asks for its flags stands still. */
export const isUrgentDecodeJob = (job: DecodeJob): boolean => job.kind === 'flags'

/**
 * For the pool: the project whose key stands beside the body, where there is such a project, else the client's network. A key
 * that anybody makes up tells nothing, and the one in the body is not known yet. A project is a group of its own; networks are
 * grouped as they are handed out, because one customer of a provider may have thousands.
 * @param projectIdOf by project API key; null when no project has it.
 */
export function senderOfDecodeJob(
  job: DecodeJob,
  projectIdOf: (token: string) => number | null,
): { sender: string; group?: string } {
  const token = tokenBeside(job)
  const projectId = token === null ? null : projectIdOf(token)
  if (projectId !== null) return { sender: `project ${projectId}` }
  const address = addressOf(job)
  return { sender: networkOf(address), group: neighbourhoodOf(address) }
}

function tokenBeside(job: DecodeJob): string | null {
  switch (job.kind) {
    case 'capture':
    case 'replay':
      return job.input.fallbackToken
    case 'capture_v1':
      return job.input.headers.token
    case 'flags':
      return null
  }
}

function addressOf(job: DecodeJob): string {
  switch (job.kind) {
    case 'capture':
      return job.ip
    case 'capture_v1':
      return job.received.ip
    case 'replay':
    case 'flags':
      return job.address
  }
}

/** For the pool. */
export const decodeThreadEntry = new URL(import.meta.url)

/** Names the outcomes of a pool whose threads run this module. */
export function decodePool(threads: {
  run(job: DecodeJob, ...rest: RunArguments): Promise<DecodeOutcome>
}): DecodePool {
  return threads as DecodePool
}

/** What lies in memory of its own moves to the thread; a slice of a shared pool is copied. */
export function movableBytes(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const isWhole = bytes.buffer.byteLength === bytes.length
  return isWhole ? (bytes as Buffer<ArrayBuffer>) : new Uint8Array(bytes)
}

const random = pooledRandomUint32(randomFillSync)

parentPort?.on('message', (job: DecodeJob) => {
  if (job.kind === 'flags') {
    const body = { ...job.body, bytes: asBuffer(job.body.bytes) }
    parentPort!.postMessage(packFlags(decodeFlags(body, job.context)))
    return
  }
  if (job.kind === 'replay') {
    const { input, receivedAtMs, userAgent } = job
    const replay = decodeReplay({ ...input, body: asBuffer(input.body) }, { receivedAtMs, random, userAgent })
    parentPort!.postMessage(replay, replay.kind === 'prepared' ? [replay.record.bytes.buffer] : [])
    return
  }
  if (job.kind === 'capture_v1') {
    const input = { ...job.input, body: asBuffer(job.input.body) }
    const prepared = prepareV1Capture(input, job.received)
    parentPort!.postMessage(prepared, transferable(prepared))
    return
  }
  const { input, receivedAtMs, ip, rerouteOlderThanMs } = job
  const received = { receivedAtMs, ip, random, rerouteOlderThanMs }
  const prepared = decodeAndPrepare({ ...input, body: asBuffer(input.body) }, received)
  parentPort!.postMessage(prepared, transferable(prepared))
})

function asBuffer({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

/** Buffers that hold nothing but records move; shared ones are copied. */
function transferable(prepared: PreparedCapture | PreparedV1Capture): ArrayBuffer[] {
  if (prepared.kind !== 'prepared' || 'refusal' in prepared.outcome) return []
  const { outcome } = prepared
  const results = 'uuids' in outcome ? [outcome.uuids, outcome.verdicts] : []
  return [outcome.main?.bytes, outcome.historical?.bytes, ...results].flatMap(bytes =>
    bytes !== undefined && bytes.length === bytes.buffer.byteLength ? [bytes.buffer] : [],
  )
}
