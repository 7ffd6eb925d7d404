// How far a job is: kept in `progress.json` for `pennon import status` in another terminal, and shown by who runs it.
// Source: docs/wire/import.md §2.8.

export const stageNames = ['plan', 'fetch', 'stage', 'scan', 'rehearse', 'approve', 'send', 'verify'] as const
export type StageName = (typeof stageNames)[number]

export interface ProgressState {
  readonly stage: StageName
  /** The event day at work; null where a stage does not go by days. */
  readonly day: string | null
  readonly recordsDone: number
  /** What is counted, such as `groups and links`; records of the files unless given. */
  readonly unit?: string
  /** Null while it is not known. */
  readonly recordsTotal: number | null
  readonly bytesDone: number
  readonly bytesTotal: number | null
  readonly rejects: number
  readonly retries: number
  /** Such as `source limit, 14 min`; null when nothing is waited for. */
  readonly waiting: string | null
}

/** What stages tell of themselves. */
export interface StageProgress {
  /** Begins a stage; all figures are zero again. */
  begin(stage: StageName, totals: { records?: number | null; bytes?: number | null; unit?: string }): void
  /**
   * Adds to the figures; cheap enough for every record.
   * @param done.isEarlier an earlier run did it: it counts for how far the stage is, and not for how fast it goes.
   */
  add(done: { records?: number; bytes?: number; rejects?: number; retries?: number; isEarlier?: boolean }): void
  day(day: string | null): void
  waiting(reason: string | null): void
  /** A line that people should see, such as a warning. */
  say(line: string): void
}
