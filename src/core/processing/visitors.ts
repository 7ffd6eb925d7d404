// What is remembered of a day's cookieless visitors where the project keeps state: their `$identify` events, and their
// sessions. Both say at which record of the log they began, so that a record that is processed again, after a crash or to
// restore its row, finds what it found the first time. Source: docs/wire/ingestion.md 13.

/** A visitor's `hash` is its base hash (22 characters), which names its day as well, since every day has its own salt. */
export interface VisitorName {
  readonly projectId: number
  readonly hash: string
}

/** An `$identify` event of a visitor, as it was seen first. */
export interface VisitorIdentify extends VisitorName {
  readonly uuid: string
  /** How many other ones of the visitor came before it. */
  readonly ordinal: number
  /** Of its record in the log. */
  readonly offset: number
  /** `YYYY-MM-DD` */
  readonly day: string
}

export interface VisitorSessionName extends VisitorName {
  /** After how many `$identify` events; −1 for an event that is sent with an id of its own before the first. */
  readonly identifies: number
}

export interface VisitorSession extends VisitorSessionName {
  /** Of the record that began it. The next session begins at a higher one. */
  readonly offset: number
  readonly sessionId: string
  /** The largest time of its events so far, epoch ms. */
  readonly lastMs: number
  readonly day: string
}

export interface WantedIdentifies {
  /** How many `$identify` events of the visitor there are in records before this offset; none of them is counted twice. */
  readonly visitors: readonly (VisitorName & { readonly beforeOffset: number })[]
  readonly events: readonly (VisitorName & { readonly uuid: string })[]
}

export interface LoadedIdentifies {
  /** In the order of the wanted visitors. */
  readonly counts: readonly number[]
  /** Those of the wanted events that are known, in any order. */
  readonly known: readonly VisitorIdentify[]
}

/** What a chunk adds: new `$identify` events, and sessions that are new or have lasted longer. */
export interface VisitorChanges {
  readonly identifies: readonly VisitorIdentify[]
  readonly sessions: readonly VisitorSession[]
}
