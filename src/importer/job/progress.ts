// How far a job is: stored in `progress.json` for `pennon import status` in another terminal, and printed by the running
// command.
// Source: docs/wire/import.md §2.8.

export const stageNames = ['plan', 'fetch', 'stage', 'scan', 'rehearse', 'send', 'verify'] as const
export type StageName = (typeof stageNames)[number]

export interface ProgressState {
  readonly stage: StageName
  /** The event day in progress; null in a stage that does not work by days. */
  readonly day: string | null
  readonly recordsDone: number
  /** The unit of the counts, such as `groups and links`; absent for records of the files. */
  readonly unit?: string
  /** Null while unknown. */
  readonly recordsTotal: number | null
  readonly bytesDone: number
  readonly bytesTotal: number | null
  readonly rejects: number
  readonly retries: number
  /** The reason, such as `source limit, 14 min`; null when not waiting. */
  readonly waiting: string | null
}

/** Receives the progress of a stage. */
export interface StageProgress {
  /** Begins a stage and resets all figures to zero. */
  begin(stage: StageName, totals: { records?: number | null; bytes?: number | null; unit?: string }): void
  /**
   * Adds to the figures; cheap enough for every record.
   * @param done.isEarlier done by an earlier run: counts towards how far the stage is, but not towards its rate.
   */
  add(done: { records?: number; bytes?: number; rejects?: number; retries?: number; isEarlier?: boolean }): void
  day(day: string | null): void
  waiting(reason: string | null): void
  /** Prints a line for the user, such as a warning. */
  say(line: string): void
}
