// `?skip_validation=true` stores definitions unchecked, for tests and for importing what another server accepted.

import { type Answer, permissionDenied, refusal } from './answers.ts'
import { type Caller, holdsScope } from './authenticate.ts'
import { booleanParam } from './query-params.ts'

export const skipValidationParam = booleanParam(
  'Store the definition even if it is invalid, and return `warnings`. Requires a key with all scopes.',
)

/** Returns the refusal; null when the request does not skip validation or the key allows it. */
export function refuseSkippedValidation(skips: boolean, caller: Caller): Answer | null {
  if (!skips || holdsScope(caller, '*')) return null
  return refusal(permissionDenied("skip_validation needs a personal API key with all scopes ('*')."))
}
