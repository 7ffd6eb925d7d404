// A flag's definition in its second form: rules in order, each with a typed value. Source: docs/wire/evaluation.md 11.

import type { JsonValue } from '../../json.ts'

export const returnTypes = ['boolean', 'string', 'number', 'object'] as const
export type ReturnType = (typeof returnTypes)[number]

export interface RulesDocument {
  readonly returnType: ReturnType
  /** Null means no value, so that the caller's default applies. */
  readonly defaultValue: JsonValue
  readonly rules: readonly Rule[]
}

interface RuleBase {
  /** The rule's id in lower case, however it was written. */
  readonly id: string
  readonly predicates: readonly Predicate[]
}

export interface TargetedRelease extends RuleBase {
  readonly type: 'targeted_release'
  readonly value: JsonValue
}

interface Rollout extends RuleBase {
  /** 0 to 100, at most two decimals. */
  readonly rolloutPercentage: number
  /** Whether a subject outside the rollout continues with the next rule; otherwise it gets the default value. */
  readonly continuesOnMiss: boolean
  readonly seed: string
}

export interface PercentageRollout extends Rollout {
  readonly type: 'percentage_rollout'
  readonly value: JsonValue
}

export interface ExperimentRule extends Rollout {
  readonly type: 'experiment'
  /** Null for a split that belongs to no experiment. */
  readonly experimentId: number | null
  readonly paused: boolean
  readonly holdout: RuleHoldout | null
  readonly variants: readonly RuleVariant[]
}

export interface RuleHoldout {
  readonly id: number | null
  readonly seed: string
  readonly exclusionPercentage: number
}

export interface RuleVariant {
  readonly key: string
  /** The weights of a rule sum to 100. */
  readonly weight: number
  readonly value: JsonValue
}

export type Rule = TargetedRelease | PercentageRollout | ExperimentRule

/** A filter on a property of the person. */
export interface Predicate {
  readonly key: string
  readonly operator: string
  /** Undefined when the predicate has none. */
  readonly value: JsonValue | undefined
  readonly negation: boolean
}
