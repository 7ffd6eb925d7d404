/** The user, or a limit that the user set, stopped a stage; what is done is kept, and the next run goes on. */
export class JobPaused extends Error {}

/** What has to be done before a job goes on, where the same command would only stop again. */
export interface Remedy {
  /** A command that goes on, with FOLDER for the folder of the job; null where no command does it. */
  readonly command: string | null
  /** In words, without a full stop; FOLDER as well. */
  readonly why: string
}

/** The job cannot go on as it is; the message says what to do. */
export class JobStopped extends Error {
  /** Null where the same command may go on. */
  readonly remedy: Remedy | null

  constructor(message: string, remedy: Remedy | null = null) {
    super(message)
    this.remedy = remedy
  }
}

/** @throws JobPaused */
export function checkPause(signal: AbortSignal): void {
  if (signal.aborted) throw new JobPaused('paused')
}
