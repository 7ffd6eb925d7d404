// Who changes something, and when: every write of the private API takes a `Change`, and its store records it.

import { hash } from 'node:crypto'

export interface Author {
  /**
   * Id of the user or the personal API key; null for a command on the host, and for writes made before ids were recorded.
   */
  readonly id: string | null
  /** The user's name at that time, the key's label, or the name of the command. */
  readonly label: string
  /** The user's e-mail address at that time; absent for a key and for a command. */
  readonly email?: string
}

export interface Change {
  readonly by: Author
  readonly atMs: number
}

/** A 31-bit whole number that stands for an author in the private API, where PostHog has a user's id. */
export function computeAuthorNumber({ id, label }: Author): number {
  return Number.parseInt(hash('sha256', id ?? label, 'hex').slice(32, 40), 16) >>> 1
}

export function isSameAuthor(a: Author | null, b: Author | null): boolean {
  return a?.id === b?.id && a?.label === b?.label
}
