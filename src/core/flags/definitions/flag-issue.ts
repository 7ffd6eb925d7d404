// What is wrong with a flag that is to be stored: where, which kind, and a sentence for its author.

/** `required`: missing; `invalid`: of another JSON type; `invalid_input`: right type, but not a value that works. */
export type FlagIssueCode = 'required' | 'invalid' | 'invalid_input'

export interface FlagIssue {
  /** Keys and list indexes joined by dots: `filters.groups.0.properties.1.operator`. */
  readonly path: string
  readonly code: FlagIssueCode
  readonly message: string
}
