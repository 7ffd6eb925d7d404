// How the next step of a job is written down: a command to type, with paths as a shell takes them.

export interface NextStep {
  readonly command: string
  readonly why: string
}

export function nextLine({ command, why }: NextStep): string {
  return `Next: ${command} (${why})`
}

/** A path as a shell takes it. */
export function quoted(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}
