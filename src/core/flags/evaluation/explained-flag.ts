// Everything that is known of one flag's value for one subject, before it is put into words. `services/flags/explain-flag.ts` makes
// it.

import type { Flag } from '../definitions/flag.ts'
import type { FlagEvaluation } from './evaluate-flags.ts'
import type { EvaluationRequest } from './evaluation-request.ts'
import type { EvaluationSubject } from './evaluation-subject.ts'
import type { EvaluationTrace } from './evaluation-trace.ts'
import type { ProjectToExplain } from './project-to-explain.ts'

/** Why /flags does not answer a flag at all. */
export const leftOutReasons = [
  'deleted',
  'inactive',
  'encrypted_payloads',
  'unreadable',
  'dependency_cycle',
  'filtered_out',
] as const
export type LeftOut = (typeof leftOutReasons)[number]

export interface ExplainedFlag extends ProjectToExplain {
  /** As it is stored. */
  readonly stored: Flag
  /** Null when /flags answers it. */
  readonly leftOut: LeftOut | null
  /** As if the flag were active, and not filtered out. */
  readonly evaluation: FlagEvaluation
  readonly trace: EvaluationTrace
  readonly subject: EvaluationSubject
  readonly request: EvaluationRequest
  /** Whether the stored person was read, and of which group types the stored group. */
  readonly readsPerson: boolean
  readonly groupTypesRead: readonly number[]
}
