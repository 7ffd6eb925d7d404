// What an adapter of a source gives to be fetched from: its parts, its limits, and how one part comes. The stage
// (`fetch-stage.ts`) decides when, waits, tries again and splits. Source: docs/wire/import.md §2.1, §2.5.

import type { CallLimits } from './call-limits.ts'
import type { PartFile } from './part-file.ts'

/** A unit of export, which becomes one file. Its name follows from what it asks for, so that a rerun finds it again. */
export interface FetchPart {
  /** Path of its file below `raw/`, and its id. */
  readonly id: string
  /** What it asks for; kept in the folder of the job, so never a secret. */
  readonly asks: PartAsks
  /** When the source says it; null otherwise. */
  readonly bytes: number | null
  /** Whether the source says neither size nor version now, as behind a link that has expired: no sign of a change. */
  readonly isUnseen?: boolean
}

export type PartAsks = Readonly<Record<string, string | number | null>>

export type PartOutcome =
  | { readonly kind: 'file'; readonly lineCount: number | null }
  /** The source says that it has no data there. */
  | { readonly kind: 'empty' }
  /** Nothing came, and nothing says why. It is believed when it comes twice. */
  | { readonly kind: 'seems_empty' }

/** What the stage gives to the fetching of one part. */
export interface PartTools {
  readonly file: PartFile
  readonly signal: AbortSignal
  readonly nowMs: () => number
  /** To be awaited before each request: resolves when the limits allow it. */
  takeCall(): Promise<void>
  /**
   * To be called before bytes go into the file.
   * @throws FetchWait while the disk has no room. What is in the file by then stays: it is gone on from where the source
   *   can, and otherwise it holds the room without which the part would only come in vain once more.
   */
  willWrite(bytes: number): void
  /** Tells of bytes that came, for progress. */
  received(bytes: number): void
  /** Bytes of the file that are known to be on the disk from an earlier try; 0 for a part that begins. */
  readonly savedBytes: number
  /** Keeps that number: everything before it is synced. */
  saveBytes(bytes: number): void
  /** Tells the user something that does not stop the part; kept with it. */
  warn(line: string): void
}

export interface FetchSource {
  readonly limits: CallLimits
  /** A way out for what the export cannot give, such as the bucket export of the source. */
  readonly advice: string
  /** All parts, oldest first. Asks the source only where they have to be listed. */
  listParts(signal: AbortSignal): AsyncIterable<FetchPart> | Iterable<FetchPart>
  /** Whether a part that has not come yet is given up once it is not listed any more; it is kept unless given. */
  readonly dropsUnlisted?: boolean
  /** Parts that ask for the same in smaller windows; null for the smallest. */
  splitPart(part: FetchPart): readonly FetchPart[] | null
  /** @throws a fault of `fetch-faults.ts` */
  fetchPart(part: FetchPart, tools: PartTools): Promise<PartOutcome>
  /** Requests that a part takes at least. */
  readonly callsPerPart: number
  /** Lines for the plan: what a person should know before. */
  readonly notes: readonly string[]
}
