// `conditions` of each flag in a V2 or V3 answer to a request with `detailed_analysis`: the result of every condition set, in
// the order of the definition. Any holder of the public project key may ask, so it shows the codes of an answer's
// `reason` but no filters and properties; those are in the private API's explanation.
// A flag of version 2 has none: it has rules. Source: ours, docs/wire/evaluation.md 2.3.

import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationTrace, TracedSet } from '#core/flags/evaluation/evaluation-trace.ts'
import { type flagDetail, type flagRecord, reasonCode, reasonDescription } from './flag-texts.ts'

/** Maximum number of conditions shown for a flag, so that a public answer stays small whatever is defined. */
const conditionCountMax = 100

interface ConditionDetail {
  readonly condition_index: number
  readonly matched: boolean
  /** Null for a set that was not reached or in which the evaluation failed. */
  readonly reason: { readonly code: string; readonly description: string } | null
}

/** How many flags and conditions are encoded without a break. */
const detailsPerStep = 256

/**
 * Encodes the members of `flags`, each with its `conditions`.
 * @param entryOf returns a flag's entry without `conditions`.
 */
export function* encodeFlagsWithConditions(
  { project, outcomes }: FlagEvaluation,
  trace: EvaluationTrace,
  entryOf: typeof flagDetail | typeof flagRecord,
): Generator<undefined, string> {
  let text = ''
  let detailCount = 0
  for (const [position, outcome] of outcomes.entries()) {
    const flag = project.flags[position]
    if (outcome === undefined || flag === undefined) continue
    const traced = trace.of(flag)?.sets ?? []
    const conditions = flag.sets.slice(0, conditionCountMax).map((_set, index) => encodeCondition(index, traced[index]))
    const entry = entryOf(flag, outcome)
    text += `,${JSON.stringify(flag.key)}:${JSON.stringify(flag.rules === null ? { ...entry, conditions } : entry)}`
    detailCount += 1 + conditions.length
    if (detailCount < detailsPerStep) continue
    detailCount = 0
    yield
  }
  return text.slice(1)
}

function encodeCondition(index: number, set: TracedSet | undefined): ConditionDetail {
  if (set === undefined || set.missed === undefined) return { condition_index: index, matched: false, reason: null }
  const reason = set.missed ?? 'condition_match'
  const description = reasonDescription({ reason, conditionIndex: index })
  return { condition_index: index, matched: set.missed === null, reason: { code: reasonCode(reason), description } }
}
