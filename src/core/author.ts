// Who changes something, and when: every write of the private API takes a `Change`, and its store records it.

export interface Author {
  /** Id of the personal API key; null for a command on the host, and for writes older than the ids. */
  readonly id: string | null
  /** The key's label, or the name of the command. */
  readonly label: string
}

export interface Change {
  readonly by: Author
  readonly atMs: number
}

export function isSameAuthor(a: Author | null, b: Author | null): boolean {
  return a?.id === b?.id && a?.label === b?.label
}
