// The evaluation of one flag for one person in the shape of PostHog's `test_evaluation`: a shorter form of our own
// explanation. Source: PostHog's schema of `feature_flags_test_evaluation_create`.

import Type, { type Static } from 'typebox'
import type { PropertyBag } from '#core/json.ts'
import { jsonObjectSchema, nullable } from '../shapes.ts'
import { describeFilter } from './explanation-filters.ts'
import type { ExplainedConditionJson, ExplainedFilterJson, ExplanationJson } from './explanation-shapes.ts'

const testedFilterSchema = Type.Object({
  key: Type.String(),
  operator: Type.String(),
  value: Type.Unknown(),
  type: Type.String(),
  actual_value: Type.Unknown({ description: 'Null if there is none, or if the key may not read groups.' }),
  matched: Type.Boolean({ description: 'Also false if not evaluated; see `explanation`.' }),
  explanation: Type.String(),
})

const testedConditionSchema = Type.Object({
  index: Type.Integer(),
  matched: Type.Boolean({ description: 'Whether this condition set decided the value; true for at most one.' }),
  properties_matched: Type.Optional(
    Type.Boolean({ description: 'Whether all filters match; absent if not evaluated.' }),
  ),
  explanation: Type.String(),
  rollout_percentage: Type.Number(),
  rollout_excluded: Type.Boolean({ description: 'Whether the filters match but the rollout excludes the subject.' }),
  variant: nullable(Type.String()),
  properties: Type.Array(testedFilterSchema),
})

export const testEvaluationSchema = Type.Object({
  flag_key: Type.String(),
  result: Type.Union([Type.Boolean(), Type.String(), Type.Null()], {
    description: 'Null if /flags omits the flag although it is active; see `reason`.',
  }),
  reason: Type.String(),
  condition_index: nullable(Type.Integer()),
  payload: nullable(Type.String()),
  person_properties: jsonObjectSchema('Properties of the stored person, if any, overridden by those of the request.'),
  evaluation_distinct_id: Type.String(),
  conditions: Type.Array(testedConditionSchema, {
    description: 'Up to 100 condition sets, and always the one that decided.',
  }),
})
type TestEvaluationJson = Omit<Static<typeof testEvaluationSchema>, 'person_properties'> & {
  person_properties: PropertyBag
}
type TestedConditionJson = Static<typeof testedConditionSchema>
type TestedFilterJson = Static<typeof testedFilterSchema>

/** @param personPropertiesJson the person's stored or sent properties; passed on unchanged. */
export function encodeTestEvaluation(
  explanation: ExplanationJson,
  { distinctId, personPropertiesJson }: { readonly distinctId: string; readonly personPropertiesJson: string },
): string {
  const { flag, payload, conditions } = explanation
  const { result, reason, decidedIndex } = toDecision(explanation)
  const head: Omit<TestEvaluationJson, 'person_properties'> = {
    ...{ flag_key: flag.key, result, reason, condition_index: decidedIndex },
    payload: explanation.left_out === null ? payload : null,
    evaluation_distinct_id: distinctId,
    conditions: conditions.map(condition => toTestedCondition(condition, explanation)),
  }
  return `${JSON.stringify(head).slice(0, -1)},"person_properties":${personPropertiesJson}}`
}

/** An inactive flag is off for all persons; any other flag that /flags omits has no value. */
function toDecision({ left_out, value, failed, reason }: ExplanationJson) {
  if (left_out !== null) {
    const isOff = left_out === 'inactive'
    return { result: isOff ? false : null, reason: isOff ? 'flag_disabled' : left_out, decidedIndex: null }
  }
  return {
    result: toShownValue(value, failed),
    reason: reason?.code ?? 'unknown',
    decidedIndex: reason?.condition_index ?? null,
  }
}

/**
 * PostHog's shape has only booleans and texts: a number or an object is shown as on, with the payload, and an absent value
 * as off.
 */
function toShownValue(value: unknown, failed: boolean): boolean | string | null {
  if (typeof value === 'boolean' || typeof value === 'string') return value
  return failed ? null : value !== null
}

function toTestedCondition(condition: ExplainedConditionJson, explanation: ExplanationJson): TestedConditionJson {
  const { condition_index: index, result, rollout, variant, filters, rule } = condition
  const matches = !result.startsWith('no_') && result !== 'failed'
  const { result: flagResult, decidedIndex } = toDecision(explanation)
  const isDecisive = rule === undefined ? result === 'matched' && flagResult !== false : true
  const matched = isDecisive && index === decidedIndex
  return {
    index,
    matched,
    ...(result !== 'not_reached' && { properties_matched: matches }),
    explanation: describeConditionResult(condition, matched),
    rollout_percentage: rollout.percentage ?? 100,
    rollout_excluded: result === 'out_of_rollout_bound' || result === 'rollout_miss',
    variant,
    properties: [...filters].sort((a, b) => a.filter_index - b.filter_index).map(toTestedFilter),
  }
}

function describeConditionResult({ result, rollout, filters }: ExplainedConditionJson, decided: boolean): string {
  switch (result) {
    case 'matched':
      return `Matches, ${decided ? 'and decides' : 'but does not decide'} the value.`
    case 'experiment_paused':
      return 'The filters match, but the experiment is paused: the default value is served.'
    case 'holdout':
      return 'The filters match, but the subject is in the holdout: the default value is served.'
    case 'out_of_rollout_bound':
    case 'rollout_miss':
      return `The filters match, but the rollout of ${rollout.percentage} % excludes the subject.`
    case 'no_condition_match':
    case 'no_condition_match_behavioral_cohort': {
      const failed = filters.find(filter => filter.result === 'failed' || filter.result === 'error')
      return failed === undefined ? 'Does not match.' : `The filter ${describeFilter(failed)} does not match.`
    }
    case 'no_group_type':
      return 'Does not match: the request has no group of this type, or its key is not a string or number.'
    case 'failed':
      return 'Could not be evaluated.'
    case 'not_reached':
      return 'Not evaluated: the value was already decided.'
    default:
      return result satisfies never
  }
}

function toTestedFilter(filter: ExplainedFilterJson): TestedFilterJson {
  const { key, operator, value, type, compared, result, note } = filter
  const more = note === null ? '' : `: ${note}`
  const explanations: Record<ExplainedFilterJson['result'], string> = {
    passed: `Matches${more}.`,
    failed: compared?.source === 'absent' ? `Does not match: there is no value${more}.` : `Does not match${more}.`,
    error: `Could not be evaluated${more}.`,
    not_evaluated: 'Not evaluated: the condition was already decided.',
  }
  return {
    ...{ key, operator: operator ?? 'exact', value, type },
    actual_value: compared?.value ?? null,
    matched: result === 'passed',
    explanation: compared?.hidden
      ? `${explanations[result]} The key may not read the stored value.`
      : explanations[result],
  }
}
