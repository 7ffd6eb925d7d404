/** The user, or a limit that the user set, stopped a stage; what is done is kept, and the next run goes on. */
export class JobPaused extends Error {}

/** The job cannot go on as it is; the message says what to do. */
export class JobStopped extends Error {}

/** @throws JobPaused */
export function checkPause(signal: AbortSignal): void {
  if (signal.aborted) throw new JobPaused('paused')
}
