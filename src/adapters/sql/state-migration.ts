// The log lines of a start about a migration of the state.

import type { Logger } from '#telemetry/log.ts'

export interface StateMigration {
  /** Number of the last migration before; 0 for a state that is made only now. */
  readonly from: number
  readonly to: number
  readonly durationMs: number
  /** Name of the copy of the state from before, next to the state; null without one. */
  readonly copy: string | null
}

/** Logs nothing for a state that is new, or was up to date. */
export function logStateMigration({ from, to, durationMs, copy }: StateMigration, logger: Logger): void {
  if (from === 0 || from === to) return
  const wayBack = copy === null ? 'a dump or backup from before' : copy
  logger.info(
    { from, to, durationMs, ...(copy !== null && { copy }) },
    `the state was migrated to the schema of this version: an earlier Pennon starts only with ${wayBack}`,
  )
}
