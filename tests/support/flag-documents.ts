// Builders of the JSON of flags: filters as the private API accepts them, and documents of version 2
// (docs/wire/evaluation.md 11.2).

import type { JsonObject, JsonValue } from '#core/json.ts'

export const pro = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }
export const treeOf = (...values: readonly unknown[]) => ({ properties: { type: 'AND', values } })
export const cohortFilter = (id: unknown) => ({ key: 'id', type: 'cohort', value: id, operator: 'in' })
export const flagFilter = (id: number) => ({
  key: String(id),
  type: 'flag',
  value: true,
  operator: 'flag_evaluates_to',
})
export const flagOn = (...properties: readonly unknown[]) => ({ groups: [{ properties, rollout_percentage: 100 }] })

const ruleId = (place: number) => `${String(place).padStart(8, '0')}-1111-4111-8111-111111111111`
const hashed = { assignment_algorithm: 'sha1_60_v1', rollout_percentage: 100, on_rollout_miss: 'continue' }

/** A document with these rules, whose ids are derived from their positions. */
export function rulesDocument(returnType: string, defaultValue: JsonValue, rules: readonly JsonObject[]): JsonObject {
  return {
    version: 2,
    return_type: returnType,
    default_value: defaultValue,
    rules: rules.map((rule, place) => ({ id: ruleId(place), ...rule })),
  }
}

export function personPredicate(key: string, operator: string, value: JsonValue, negation = false): JsonObject {
  return { key, type: 'person', operator, value, negation }
}

export function release(value: JsonValue, ...properties: JsonObject[]): JsonObject {
  return { rule_type: 'targeted_release', targeting: { properties }, value }
}

export function rollout(value: JsonValue, percentage: number, over: JsonObject = {}): JsonObject {
  const rule = { rule_type: 'percentage_rollout', targeting: { properties: [] }, value, seed: 'rollout' }
  return { ...rule, ...hashed, rollout_percentage: percentage, ...over }
}

/** @param values of variants `a`, `b`, …, with equal weights. */
export function experiment(values: readonly JsonValue[], over: JsonObject = {}): JsonObject {
  const weight = 100 / values.length
  const variants = values.map((value, place) => ({ key: String.fromCharCode(97 + place), weight, value }))
  const rule = { rule_type: 'experiment', targeting: { properties: [] }, seed: 'split', variants }
  return { ...rule, experiment_id: null, paused: false, ...hashed, ...over }
}
