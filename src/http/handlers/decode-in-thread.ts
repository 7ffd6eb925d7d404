// Lets a decode thread read a body that would block the event loop, and asks the client to retry when no thread can.

import type { FastifyReply } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import { PortError } from '#ports/port-error.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import { type DecodeJobs, toTransferableBytes } from '#wire/threads/decode-jobs.ts'
import { createDisconnectSignal } from '../bodies/disconnect-signal.ts'

const retryAfterSecondsMax = 30

/** @param toJob makes a job from the bytes that move to the thread. @returns null when no thread can take the job now. */
export async function decodeInThread<Kind extends keyof DecodeJobs>(
  threads: ThreadPool<DecodeJobs>,
  kind: Kind,
  body: Buffer,
  toJob: (bytes: Uint8Array<ArrayBuffer>) => DecodeJobs[Kind][0],
  reply: FastifyReply,
): Promise<DecodeJobs[Kind][1] | null> {
  const bytes = toTransferableBytes(body)
  try {
    return await threads.run(kind, toJob(bytes), bytes.length, [bytes.buffer], createDisconnectSignal(reply))
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return null
  }
}

/** Sets a random delay, which spreads the clients' retries. Source: docs/wire/ingestion.md 1.3, 8.4. */
export function setRetryAfter(reply: FastifyReply, random: RandomUint32): void {
  reply.header('retry-after', String(1 + (random() % retryAfterSecondsMax)))
}
