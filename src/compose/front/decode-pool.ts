// Starts a front's decode threads, and decides which sender a job belongs to (senders take turns) and which jobs go first.

import {
  createDecodeThreads,
  type DecodeThreads,
  decodeThreadDefaults,
} from '#adapters/decode-threads/decode-threads.ts'
import type { AnyJob } from '#ports/thread-pool.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { findAddressBlock, findSenderNetwork } from '#wire/address/client-address.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'

export interface DecodePoolOptions {
  /** Id of the project with this key; null for an unknown key. */
  readonly projectIdOf: (token: string) => number | null
  readonly logger: Logger
  readonly metrics: Metrics
  /** For tests: limits that differ from those of an instance, or a module that replaces `decode-thread.ts`. */
  readonly overrides?: { readonly entry?: URL; readonly threadCount?: number; readonly queuedJobCountMax?: number }
}

/** Starts no thread before the first job. */
export function createDecodePool(options: DecodePoolOptions): DecodeThreads<DecodeJobs> {
  const { projectIdOf, logger, metrics, overrides } = options
  return createDecodeThreads<DecodeJobs>({
    entry: new URL('./decode-thread.ts', import.meta.url),
    // Events can wait a moment, but a page is blocked until it has its flags.
    isUrgent: ({ kind }) => kind === 'flags',
    senderOf: asked => findSender(asked, projectIdOf),
    ...decodeThreadDefaults,
    logger,
    onRestart: () => metrics.childRestarts.inc({ process: 'decode thread' }),
    ...overrides,
  })
}

/**
 * The sender is the project whose key is sent outside the body. If no project has this key, or the key is inside the body,
 * which is not decoded yet, the sender is the client's network. Each project is a group. Networks are grouped in the blocks
 * that providers assign, because one customer may have thousands of networks.
 */
function findSender(asked: AnyJob<DecodeJobs>, projectIdOf: DecodePoolOptions['projectIdOf']) {
  const token = findTokenOutsideBody(asked)
  const projectId = token === null ? null : projectIdOf(token)
  if (projectId !== null) return { sender: `project ${projectId}` }
  const address = readAddress(asked)
  return { sender: findSenderNetwork(address), group: findAddressBlock(address) }
}

function findTokenOutsideBody({ kind, job }: AnyJob<DecodeJobs>): string | null {
  switch (kind) {
    case 'capture':
    case 'recording':
      return job.input.fallbackToken
    case 'capture_v1':
      return job.input.headers.token
    case 'otlp':
      return job.token
    case 'flags':
      return null
  }
}

function readAddress({ kind, job }: AnyJob<DecodeJobs>): string {
  switch (kind) {
    case 'capture':
      return job.ip
    case 'capture_v1':
      return job.received.ip
    case 'recording':
    case 'otlp':
    case 'flags':
      return job.address
  }
}
