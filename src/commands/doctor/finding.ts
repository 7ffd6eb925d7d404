// The result of one check of `pennon doctor`.

export interface Finding {
  readonly what: string
  readonly isGood: boolean
  readonly found: string
  /**
   * What to do about a failed check. If the check passed, the remedy is printed as a warning, and the command does not
   * fail.
   */
  readonly remedy?: string
}

export function createGoodFinding(what: string, found: string): Finding {
  return { what, isGood: true, found }
}

/** A warning: what was checked works, but not as well as it should. */
export function createWarningFinding(what: string, found: string, remedy: string): Finding {
  return { what, isGood: true, found, remedy }
}

export function createBadFinding(what: string, found: string, remedy: string): Finding {
  return { what, isGood: false, found, remedy }
}

/** The innermost reason, since `fetch` hides codes such as ECONNREFUSED behind "fetch failed". */
export function formatCause(cause: unknown): string {
  const { message, cause: inner } = cause as Error & { cause?: Error & { code?: string } }
  return inner?.code ?? inner?.message ?? message
}
