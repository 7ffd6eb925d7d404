// A fault in a flag or cohort about to be stored: its place, its kind, and a sentence for the author.

import type { JsonValue } from '../../json.ts'

/**
 * `required`: missing; `invalid`: wrong JSON type; `invalid_input`: right type, but a value that does not work;
 * `unsupported_config_version`: a document of a version that is not 1 or 2; `unsupported_dependency_config_version`: a
 * filter that leads to a flag with a document of another version than 1.
 */
export type FlagIssueCode =
  | 'required'
  | 'invalid'
  | 'invalid_input'
  | 'unsupported_config_version'
  | 'unsupported_dependency_config_version'

export interface FlagIssue {
  /** Keys and list indexes joined by dots: `filters.groups.0.properties.1.operator`. */
  readonly path: string
  readonly code: FlagIssueCode
  readonly message: string
}

export function createFlagIssue(path: string, code: FlagIssueCode, message: string): FlagIssue {
  return { path, code, message }
}

/** The issue of a value that is present, not null, and not of the form that it must have. */
export function findShapeIssues(
  value: JsonValue | undefined,
  path: string,
  isOfForm: boolean,
  form: string,
): FlagIssue[] {
  return value === undefined || value === null || isOfForm
    ? []
    : [createFlagIssue(path, 'invalid', `Must be ${form} or null.`)]
}
