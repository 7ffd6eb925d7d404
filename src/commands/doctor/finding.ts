// What one check of `pennon doctor` found.

export interface Finding {
  readonly what: string
  readonly isGood: boolean
  readonly found: string
  /** What to do about it; only for what is not good. */
  readonly remedy?: string
}

export function good(what: string, found: string): Finding {
  return { what, isGood: true, found }
}

export function bad(what: string, found: string, remedy: string): Finding {
  return { what, isGood: false, found, remedy }
}

/** `fetch` hides what happened, such as ECONNREFUSED, behind "fetch failed". */
export function reasonOf(cause: unknown): string {
  const { message, cause: inner } = cause as Error & { cause?: Error & { code?: string } }
  return inner?.code ?? inner?.message ?? message
}
