// Formats the next step of a job: a command to type, with paths quoted for a shell.

export interface NextStep {
  /** Null if no command does it; then `why` says what to do. */
  readonly command: string | null
  readonly why: string
  /** Everything is done, and the command only undoes it. */
  readonly isOnlyToUndo?: boolean
}

/** A command that takes something back never follows `Next:`, which people run without thinking. */
export function nextLine({ command, why, isOnlyToUndo = false }: NextStep): string {
  if (isOnlyToUndo) return `Done. ${why}: ${command}`
  return command === null ? `Next: ${why}` : `Next: ${command} (${why})`
}

/** @returns the path, quoted for a shell if necessary. */
export function quotePath(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
