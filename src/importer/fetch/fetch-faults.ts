// How fetching a part can fail. What is thrown decides what happens next: stop, wait, ask again, or ask for less.

/** Waiting does not help: a person has to change something, and the message says what. */
export class FetchStop extends Error {}

/** The source, the network or the disk cannot at the moment. Asked again for as long as the user keeps it running. */
export class FetchWait extends Error {
  /** What the source asks for by `Retry-After`, in milliseconds; null when it says nothing. */
  readonly retryAfterMs: number | null
  constructor(reason: string, retryAfterMs: number | null = null) {
    super(reason)
    this.retryAfterMs = retryAfterMs
  }
}

/** The answer is not whole: it ended early, or is not what the source gives. Nothing of it is kept. */
export class BrokenAnswer extends Error {}

/** The window has more than the source gives at once, so its halves are asked for. */
export class WindowTooLarge extends Error {
  /** The source refused it; otherwise it took too long, which another try may not. */
  readonly isRefused: boolean
  constructor(message: string, isRefused: boolean) {
    super(message)
    this.isRefused = isRefused
  }
}

/** An object has other bytes than when it was listed or begun. */
export class ObjectChanged extends Error {}

/** The reason of a wait for room, in words for people. */
export const diskFull = 'the disk is full'

const certificateCodes = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT)/

/** What a system call or a socket threw, as one of the above; anything else comes back as it is. */
export function asFetchFault(cause: unknown): unknown {
  const code = (cause as { code?: unknown } | null)?.code
  if (typeof code !== 'string' || cause instanceof FetchStop || cause instanceof FetchWait) return cause
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL') return new FetchWait(diskFull)
  if (code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE') return new BrokenAnswer('the answer broke off')
  // Node's parser of HTTP: what came is no answer, as of a server in trouble or of none that speaks HTTP.
  if (code.startsWith('HPE_')) return new FetchWait(`the source answers something that is no HTTP (${code})`)
  if (certificateCodes.test(code)) return new FetchStop(`The source's certificate is not accepted (${code}).`)
  if (/^(ECONN|ENET|EHOST|ENOTFOUND|EAI_|ETIMEDOUT|EPIPE|ERR_SSL|EPROTO)/.test(code))
    return new FetchWait(`no connection to the source (${code})`)
  return cause
}

export function isOfAbort(fault: unknown, { reason }: AbortSignal): boolean {
  return fault === reason || (fault instanceof Error && fault.name === 'AbortError')
}

/** Each thing that a person has to do something about, once. */
export function joinedStops(stops: readonly FetchStop[]): FetchStop {
  const messages = [...new Set(stops.map(({ message }) => (/[.!?]$/.test(message) ? message : `${message}.`)))]
  return messages.length === 1 ? stops[0]! : new FetchStop(messages.join(' '))
}
