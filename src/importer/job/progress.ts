// The progress of a job: stored in `progress.json` for `pennon import status` in another terminal, and printed by the
// running command. Source: docs/wire/import.md §2.8.

import { allowNull, type DeepReadonly, type Static, Type } from '../records/file-schema.ts'

export const progressFile = 'progress.json'

export const stageNames = ['plan', 'fetch', 'stage', 'scan', 'rehearse', 'send', 'verify'] as const
export type StageName = (typeof stageNames)[number]

const ofStage = {
  stage: Type.Enum(stageNames),
  /** The event day that is being processed; null in a stage that does not work by days. */
  day: allowNull(Type.String()),
  recordsDone: Type.Number(),
  /** The unit of the counts, such as `groups and links`; absent for records of the files. */
  unit: Type.Optional(Type.String()),
  /** Null while unknown. */
  recordsTotal: allowNull(Type.Number()),
  bytesDone: Type.Number(),
  bytesTotal: allowNull(Type.Number()),
  rejects: Type.Number(),
  retries: Type.Number(),
  /** The reason, such as `source limit, 14 min`; null when not waiting. */
  waiting: allowNull(Type.String()),
}

export const progressSchema = Type.Object({
  v: Type.Literal(1),
  pid: Type.Number(),
  state: Type.Enum(['running', 'paused', 'stopped', 'done']),
  /** Why it stopped, or the next step; null while it runs. */
  message: allowNull(Type.String()),
  /** A `Remedy`: what the user must do first, if the same command would stop again; otherwise absent. */
  wayOut: Type.Optional(Type.Object({ command: allowNull(Type.String()), why: Type.String() })),
  startedAt: Type.String(),
  updatedAt: Type.String(),
  ...ofStage,
  /** The rate over the last ten seconds. */
  recordsPerSecond: Type.Number(),
  /** The mean rate since this run began the stage. */
  meanRecordsPerSecond: Type.Number(),
  etaSeconds: allowNull(Type.Number()),
})
/** The content of `progress.json`, also printed as a progress line. */
export type ProgressFigures = DeepReadonly<Static<typeof progressSchema>>
type ProgressState = Pick<Static<typeof progressSchema>, keyof typeof ofStage>

const windowMs = 10_000
/** No estimate in the first seconds: a stage starts slowly. */
const etaAfterMs = 5_000
const etaAfterShare = 0.01
/** Even one percent of a huge stage takes long, so an estimate is given after a minute in any case. */
const etaAlwaysAfterMs = 60_000

interface FiguresOptions {
  readonly nowMs: () => number
  readonly say: (line: string) => void
}

/** Receives the progress of a stage. */
export type StageProgress = Pick<ProgressTracker, 'begin' | 'add' | 'day' | 'waiting' | 'say'>

/** Computes rates and the remaining time from the work that a stage has done. */
export class ProgressTracker {
  readonly #options: FiguresOptions
  readonly #startedMs: number
  #stageMs: number
  /** Samples of the last ten seconds, at least a second apart. */
  #points: { readonly ms: number; readonly records: number }[] = []
  #state: ProgressState = createEmptyState('plan')
  /** How much of this stage earlier runs have done. */
  #earlier = { records: 0, bytes: 0 }

  constructor(options: FiguresOptions) {
    this.#options = options
    this.#startedMs = this.#stageMs = options.nowMs()
  }

  /** Begins a stage and resets all figures to zero. */
  begin(
    stage: StageName,
    { records = null, bytes = null, unit }: { records?: number | null; bytes?: number | null; unit?: string },
  ): void {
    this.#state = {
      ...createEmptyState(stage),
      recordsTotal: records,
      bytesTotal: bytes,
      ...(unit !== undefined && { unit }),
    }
    this.#stageMs = this.#options.nowMs()
    this.#earlier = { records: 0, bytes: 0 }
    this.#points = [{ ms: this.#stageMs, records: 0 }]
  }

  /**
   * Adds to the figures; cheap enough for every record.
   * @param done.isEarlier whether an earlier run did the work: it counts towards the progress of the stage, but not towards
   * its rate.
   */
  add(done: { records?: number; bytes?: number; rejects?: number; retries?: number; isEarlier?: boolean }): void {
    const { records = 0, bytes = 0, rejects = 0, retries = 0, isEarlier = false } = done
    if (isEarlier) {
      this.#earlier.records += records
      this.#earlier.bytes += bytes
    }
    this.#state.recordsDone += records
    this.#state.bytesDone += bytes
    this.#state.rejects += rejects
    this.#state.retries += retries
  }

  day(day: string | null): void {
    this.#state.day = day
  }

  waiting(reason: string | null): void {
    this.#state.waiting = reason
  }

  /** Prints a line for the user, such as a warning. */
  say(line: string): void {
    this.#options.say(line)
  }

  figures(state: ProgressFigures['state'] = 'running', message: string | null = null): ProgressFigures {
    const nowMs = this.#options.nowMs()
    const doneHere = this.#state.recordsDone - this.#earlier.records
    const recordsPerSecond = this.#recentRate(nowMs, doneHere)
    return {
      v: 1,
      pid: process.pid,
      state,
      message,
      startedAt: new Date(this.#startedMs).toISOString(),
      updatedAt: new Date(nowMs).toISOString(),
      ...this.#state,
      recordsPerSecond: Math.round(recordsPerSecond),
      meanRecordsPerSecond: Math.round(doneHere / Math.max(0.001, (nowMs - this.#stageMs) / 1_000)),
      etaSeconds: state === 'running' ? this.#eta(nowMs) : null,
    }
  }

  /** @param doneHere how many records this run has processed. */
  #recentRate(nowMs: number, doneHere: number): number {
    if (nowMs - (this.#points.at(-1)?.ms ?? 0) >= 1_000) this.#points.push({ ms: nowMs, records: doneHere })
    while (this.#points.length > 1 && this.#points[1]!.ms <= nowMs - windowMs) this.#points.shift()
    const first = this.#points[0]
    return first === undefined || nowMs === first.ms ? 0 : ((doneHere - first.records) * 1_000) / (nowMs - first.ms)
  }

  /** Estimates by records, or by bytes if the total of records is unknown. */
  #eta(nowMs: number): number | null {
    const { recordsDone, recordsTotal, bytesDone, bytesTotal } = this.#state
    const { records, bytes } = this.#earlier
    const [done, earlier, total] =
      recordsTotal === null ? [bytesDone, bytes, bytesTotal] : [recordsDone, records, recordsTotal]
    if (total === null || done === earlier) return null
    const spentMs = nowMs - this.#stageMs
    const isKnown = spentMs >= etaAlwaysAfterMs || (spentMs >= etaAfterMs && done - earlier >= total * etaAfterShare)
    return isKnown ? Math.ceil((Math.max(0, total - done) * spentMs) / (done - earlier) / 1_000) : null
  }
}

function createEmptyState(stage: StageName): ProgressState {
  return {
    ...{ stage, day: null, recordsDone: 0, recordsTotal: null, bytesDone: 0, bytesTotal: null },
    ...{ rejects: 0, retries: 0, waiting: null },
  }
}
