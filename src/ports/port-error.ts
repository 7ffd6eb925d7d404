// What an adapter throws when the world failed: which port, which kind, whether another try may help, and the cause.

/** Meaning: the store cannot be reached or refuses; it did not answer in time; somebody else wrote first or the input
 * contradicts what is stored; what is stored cannot be read; the store has no room and takes nothing. */
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

/** A queue of ours before the store has no place left. The store was not asked, so this says nothing about it. */
export class QueueFullError extends PortError {
  declare readonly code: 'unavailable' | 'timeout'
  constructor(port: string, code: 'unavailable' | 'timeout' = 'unavailable') {
    super(port, code, new Error('too many calls wait'))
  }
}
