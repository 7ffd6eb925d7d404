// Whether the server answers, and whether it still knows the session: what every call finds out on its way.

export interface Connection {
  /** When the server answered last, in ms since the epoch, while it does not answer; null while it does. */
  readonly awaySinceMs: number | null
  readonly isSessionOver: boolean
}

let connection: Connection = { awaySinceMs: null, isSessionOver: false }
let answeredAtMs = Date.now()
let signedInAtMs = 0
const watchers = new Set<() => void>()

export function readConnection(): Connection {
  return connection
}

export function watchConnection(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

export function noteAnswer(): void {
  answeredAtMs = Date.now()
  change({ awaySinceMs: null })
}

export function noteNoAnswer(): void {
  change({ awaySinceMs: connection.awaySinceMs ?? answeredAtMs })
}

/** @param askedAtMs when the request was sent: a refusal from before the last sign-in says nothing about this session. */
export function noteEndOfSession(askedAtMs: number): void {
  if (askedAtMs >= signedInAtMs) change({ isSessionOver: true })
}

export function noteSession(): void {
  signedInAtMs = Date.now()
  change({ isSessionOver: false })
}

function change(part: Partial<Connection>): void {
  const next = { ...connection, ...part }
  if (next.awaySinceMs === connection.awaySinceMs && next.isSessionOver === connection.isSessionOver) return
  connection = next
  for (const watcher of watchers) watcher()
}
