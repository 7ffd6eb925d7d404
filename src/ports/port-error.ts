// The error an adapter throws when the system behind a port fails: which port, which kind of failure, whether to retry.

/**
 * `unavailable`: the store cannot be reached or refuses the call. `timeout`: it did not answer in time. `conflict`:
 * another writer was first, or the input contradicts stored data. `corrupt`: stored data cannot be read. `full`: no
 * space left.
 */
export const portErrorCodes = ['unavailable', 'timeout', 'conflict', 'corrupt', 'full'] as const
export type PortErrorCode = (typeof portErrorCodes)[number]

export class PortError extends Error {
  readonly port: string
  readonly code: PortErrorCode
  readonly retryable: boolean
  constructor(port: string, code: PortErrorCode, cause?: unknown) {
    super(`${port}: ${code}${cause instanceof Error ? `: ${cause.message}` : ''}`, { cause })
    this.name = 'PortError'
    this.port = port
    this.code = code
    this.retryable = code === 'unavailable' || code === 'timeout'
  }
}

/**
 * The query needs current persons or groups, but the event store does not have all of them yet: at a first start, after an
 * upgrade, or after the store was lost. They are filled in automatically.
 */
export class MirrorFillingError extends PortError {
  constructor(cause: unknown) {
    super('event-store', 'unavailable', cause)
  }
}

/**
 * The query reached a limit on single queries: its answer is too large, or it needs too much memory or time. The store
 * works, and a query for less may succeed.
 */
export class QueryTooLargeError extends PortError {
  declare readonly code: 'full' | 'timeout'
  constructor(port: string, code: 'full' | 'timeout', cause: unknown) {
    super(port, code, cause)
  }
}

/** Our own queue in front of a store is full. The store was not called, so this says nothing about its health. */
export class QueueFullError extends PortError {
  declare readonly code: 'unavailable' | 'timeout'
  constructor(port: string, code: 'unavailable' | 'timeout' = 'unavailable') {
    super(port, code, new Error('too many calls are queued'))
  }
}

/** The last version that can open the old schemas; the current migrations do not start from these schemas. */
const lastOfOldSchemas = '0.1.0'

/**
 * A start, a restore or another command refuses data that another version of Pennon stored. The message is one line for
 * operators; the text before the first `. ` says what is wrong.
 */
export class UnfitSchemaError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnfitSchemaError'
  }
}

/** The beginning of a message; the caller puts the name of the store before it. */
export const isTooOld = `was written by Pennon ${lastOfOldSchemas} or earlier, and ${lastOfOldSchemas} is the last version that can open it`
