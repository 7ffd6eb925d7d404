// The interface of a source that can be fetched: its parts, its limits, and how to download one part. The stage
// (`fetch-stage.ts`) schedules, waits, retries and splits. Source: docs/wire/import.md §2.1, §2.5.

import type { PartFile } from './part-file.ts'

/** A unit of export, which becomes one file. Its name is derived from its request, so that a rerun finds it again. */
export interface FetchPart {
  /** The part's name, which is also the path of its file below `raw/`. */
  readonly id: string
  /** Parameters of the part's request. They are stored in the job folder, so they never contain a secret. */
  readonly asks: PartParams
  /** The part's size; null when the source does not report it. */
  readonly bytes: number | null
  /** Whether the source now reports neither size nor version, as for an expired link, so that no change can be detected. */
  readonly isUnseen?: boolean
}

export type PartParams = Readonly<Record<string, string | number | null>>

/** What the stage passes to `fetchPart`. */
export interface PartTools {
  readonly file: PartFile
  readonly signal: AbortSignal
  /** To be awaited before each request: resolves when the limits allow a request. */
  takeCall(): Promise<void>
  /**
   * Call it before writing bytes to the file.
   * @throws FetchWait while the disk is full. Bytes already written are kept: the download resumes from them if the source
   *   can, and otherwise they reserve the space that the retry needs.
   */
  willWrite(bytes: number): void
  /** Reports received bytes, for progress. */
  received(bytes: number): void
  /** Bytes of the file that an earlier try has synced to disk; 0 for a new part. */
  readonly savedBytes: number
  /** Stores how many bytes are synced to disk, as `savedBytes` of the next try. */
  saveBytes(bytes: number): void
  /** Stores a warning for the user with the part. The download continues. */
  warn(line: string): void
}

export interface CallLimits {
  readonly perSecond: number | null
  readonly perHour: number | null
  /** Concurrent requests, at least 1. */
  readonly atOnce: number
}

export interface FetchSource extends Disposable {
  readonly limits: CallLimits
  /** What to do when this export cannot deliver a part, such as using the source's bucket export. */
  readonly advice: string
  /** All parts, oldest first. Sends requests only where the source must list them. */
  listParts(signal: AbortSignal): AsyncIterable<FetchPart> | Iterable<FetchPart>
  /** Whether to drop parts that are no longer listed and have not been fetched. Default: false. */
  readonly dropsUnlisted?: boolean
  /** Splits a part into parts with smaller windows and the same data; null if the window cannot be split. */
  splitPart(part: FetchPart): readonly FetchPart[] | null
  /** @returns whether the source has data for the part. @throws a fault of `fetch-faults.ts` */
  fetchPart(part: FetchPart, tools: PartTools): Promise<boolean>
  /** The least number of requests per part. */
  readonly callsPerPart: number
  /** Lines for the plan: what the user should know before the fetch. */
  readonly notes: readonly string[]
}
