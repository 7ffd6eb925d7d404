// How fetching a part can fail. The class of the error decides what happens next: stop, wait, retry, or ask for less.

import { JobStopped } from '../job/job-paused.ts'
import { isSqliteDiskFull } from '../job/sqlite-file.ts'

/** Waiting does not help: the user must change something, and the message says what. */
export class FetchStop extends JobStopped {}

/** The source, the network or the disk is unavailable at the moment. Retried for as long as the user keeps the job running. */
export class FetchWait extends Error {
  /** From the source's `Retry-After` header; null without it. */
  readonly retryAfterMs: number | null
  constructor(reason: string, retryAfterMs: number | null = null) {
    super(reason)
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * The response is incomplete or not in the source's format. All of it is discarded, and its part is retried, while other
 * parts need not wait.
 */
export class BrokenAnswer extends FetchWait {}

/** The window holds more than the source returns at once, so it is split in halves. */
export class WindowTooLarge extends BrokenAnswer {
  /** True when the source refused the window; false when the window took too long, so that a retry may succeed. */
  readonly isRefused: boolean
  constructor(message: string, isRefused: boolean) {
    super(message)
    this.isRefused = isRefused
  }
}

/** Shown as the reason for waiting for disk space. */
export const diskFull = 'the disk is full'

const certificateCodes = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT)/

/** Converts the error of a system call or a socket into a FetchWait or FetchStop; returns any other error unchanged. */
export function convertToFetchFault(cause: unknown): unknown {
  const code = (cause as { code?: unknown } | null)?.code
  if (typeof code !== 'string' || cause instanceof FetchStop || cause instanceof FetchWait) return cause
  if (code === 'ENOSPC' || code === 'EDQUOT' || isSqliteDiskFull(cause)) return new FetchWait(diskFull)
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') return new BrokenAnswer('the answer broke off')
  // From Node's HTTP parser: the server is in trouble, or does not speak HTTP.
  if (code.startsWith('HPE_')) return new FetchWait(`the source answers something that is no HTTP (${code})`)
  if (certificateCodes.test(code)) return new FetchStop(`The source's certificate is not accepted (${code}).`)
  if (/^(ECONN|ENET|EHOST|ENOTFOUND|EAI_|ETIMEDOUT|EPIPE|ERR_SSL|EPROTO)/.test(code))
    return new FetchWait(`no connection to the source (${code})`)
  return cause
}

/** @returns the first unexpected error; if all are expected, an error that contains each distinct message once. */
export function mergeFailures(failures: readonly Error[]): Error {
  const unexpected = failures.find(failure => !(failure instanceof FetchStop))
  const messages = new Set(failures.map(({ message }) => (/[.!?]$/.test(message) ? message : `${message}.`)))
  return unexpected ?? (messages.size === 1 ? failures[0]! : new FetchStop([...messages].join(' ')))
}
