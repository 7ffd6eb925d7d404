// How the next step of a job is written down: a command to type, with paths as a shell takes them.

export interface NextStep {
  /** Null where no command does what has to be done, which `why` says in words. */
  readonly command: string | null
  readonly why: string
  /** All is done, and the command is only for somebody who does not want what was done. */
  readonly isOnlyToUndo?: boolean
}

/** A command that takes something back never stands behind `Next:`, which people type without a thought. */
export function nextLine({ command, why, isOnlyToUndo = false }: NextStep): string {
  if (isOnlyToUndo) return `All is done. ${why}: ${command}`
  return command === null ? `Next: ${why}` : `Next: ${command} (${why})`
}

/** A path as a shell takes it. */
export function quotePath(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
