// The stored state of a day's cookieless visitors, for projects with stateful cookieless mode: their `$identify` events and
// sessions. Events and sessions contain the log offset at which they began, so that reprocessing a record, after a crash or
// to restore its row, sees the same state as the first time. Source: docs/wire/ingestion.md 13.

/** `hash` is the visitor's base hash (22 characters). It also identifies the day, since each day has its own salt. */
export interface VisitorName {
  readonly projectId: number
  readonly hash: string
}

/** A visitor's `$identify` event, as first seen. */
export interface VisitorIdentify extends VisitorName {
  readonly uuid: string
  /** How many other `$identify` events of the visitor came before it. */
  readonly ordinal: number
  /** Offset of the event's record in the log. */
  readonly offset: number
  /** `YYYY-MM-DD` */
  readonly day: string
}

export interface VisitorSessionName extends VisitorName {
  /**
   * The number of `$identify` events before the session; −1 for events sent with their own id before the first `$identify`.
   */
  readonly identifies: number
}

export interface VisitorSession extends VisitorSessionName {
  /** Offset of the record that began the session. The next session begins at a higher offset. */
  readonly offset: number
  readonly sessionId: string
  /** The latest time of the session's events so far, epoch ms. */
  readonly lastMs: number
  readonly day: string
}

export interface WantedIdentifies {
  /** Asks how many distinct `$identify` events each of these visitors has in records before `beforeOffset`. */
  readonly visitors: readonly (VisitorName & { readonly beforeOffset: number })[]
  readonly events: readonly (VisitorName & { readonly uuid: string })[]
}

export interface LoadedIdentifies {
  /** In the order of the wanted visitors. */
  readonly counts: readonly number[]
  /** Those of the wanted events that are already known, in any order. */
  readonly known: readonly VisitorIdentify[]
}

/** The changes of a chunk: new `$identify` events, and sessions that are new or were extended. */
export interface VisitorChanges {
  readonly identifies: readonly VisitorIdentify[]
  readonly sessions: readonly VisitorSession[]
}
