// Refusals of writes of flags and cohorts: because of the first mistake, because of a concurrent write, or because the key
// may not skip validation. Skipping validation stores definitions unchecked, for tests and imports.

import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, createPermissionDeniedError, refusal } from './answers.ts'
import { type Caller, hasScope } from './authenticate.ts'
import { booleanParam } from './query-params.ts'

/** Answers 400. `attr` is the path of the first mistake and `detail` its message. Source: ours. */
export function refuseInvalidDefinition(issues: readonly FlagIssue[]): Answer {
  const first = issues[0]!
  return refusal(wireError(400, first.code, first.message, first.path))
}

/** Answers 409 with the sent version and the current version. @param kind what the message calls the item. */
export function refuseStaleVersion(
  kind: 'flag' | 'cohort',
  { current, sentVersion }: { readonly current: { readonly version: number }; readonly sentVersion: number },
): Answer {
  const { version } = current
  const detail = `The ${kind} is at version ${version}; this change is based on version ${sentVersion}. Read the ${kind} again and repeat the change.`
  const extra = { current_version: version, sent_version: sentVersion }
  return refusal(wireError(409, 'conflict', detail, 'version'), extra)
}

export const skipValidationParam = booleanParam(
  'Store the definition even if it is invalid, and return `warnings`. Requires a key with all scopes.',
)

/** Returns the refusal; null when the request does not skip validation or the key allows it. */
export function refuseSkippedValidation(skips: boolean, caller: Caller): Answer | null {
  if (!skips || hasScope(caller, '*')) return null
  return refusal(createPermissionDeniedError("skip_validation needs a personal API key with all scopes ('*')."))
}
