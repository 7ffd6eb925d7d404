// Everything that is known about one flag's value for one subject, before it is put into words.
// `services/flags/explain-flag.ts` creates it.

import type { Flag } from '../definitions/flag.ts'
import type { FlagEvaluation } from './evaluate-flags.ts'
import type { EvaluationRequest } from './evaluation-request.ts'
import type { EvaluationSubject } from './evaluation-subject.ts'
import type { EvaluationTrace } from './evaluation-trace.ts'
import type { ProjectToExplain } from './project-to-explain.ts'

/** Why an answer of /flags leaves a flag out. */
export const leftOutReasons = [
  'deleted',
  'inactive',
  'encrypted_payloads',
  'unreadable',
  'dependency_cycle',
  'filtered_out',
] as const
export type LeftOutReason = (typeof leftOutReasons)[number]

export interface ExplainedFlag extends ProjectToExplain {
  /** The flag as stored. */
  readonly stored: Flag
  /** Null when /flags answers the flag. */
  readonly leftOut: LeftOutReason | null
  /** Evaluated as if the flag were active and not filtered out. */
  readonly evaluation: FlagEvaluation
  readonly trace: EvaluationTrace
  readonly subject: EvaluationSubject
  readonly request: EvaluationRequest
  /** Whether the stored person was read, and the group types whose stored group was read. */
  readonly readsPerson: boolean
  readonly groupTypesRead: readonly number[]
}
