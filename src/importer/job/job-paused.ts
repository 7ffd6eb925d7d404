/** The user, or a limit that the user set, stopped a stage. Finished work is kept, and the next run continues from it. */
export class JobPaused extends Error {}

/** What the user must do before the job can continue, if the same command would only stop again. */
export interface Remedy {
  /** The command that continues the job, with FOLDER as placeholder for its folder; null if no command does. */
  readonly command: string | null
  /** A sentence without its full stop; may contain FOLDER too. */
  readonly why: string
}

/** The job cannot continue without the user; the message says what to do. */
export class JobStopped extends Error {
  /** Null if the same command may continue. */
  readonly remedy: Remedy | null

  constructor(message: string, remedy: Remedy | null = null) {
    super(message)
    this.remedy = remedy
  }
}

/** @throws JobPaused */
export function throwIfPaused(signal: AbortSignal): void {
  if (signal.aborted) throw new JobPaused('paused')
}
