// The conditions of an insight on events: a tree of conditions on properties, flags and cohorts. Operators mean the same as
// in flag conditions. Source: docs/wire/evaluation.md 5.9; docs/wire/private-api.md.

import type { JsonValue } from '../json.ts'

/** Where a property's value is read from. */
export type PropertySource =
  | { readonly kind: 'event' }
  /** The person's properties, as stored with the event. */
  | { readonly kind: 'person' }
  /** The current properties of the group of this type. */
  | { readonly kind: 'group'; readonly groupTypeIndex: number }
  /** A flag's value that was sent with the event; the key is the name of the property, `$feature/…`. */
  | { readonly kind: 'flag' }
  /** The person's current properties; within `person_today` only. */
  | { readonly kind: 'person_today' }

export interface PropertyCondition {
  readonly kind: 'property'
  readonly source: PropertySource
  readonly key: string
  /** One of `operatorNames` that tests properties. */
  readonly operator: string
  readonly value: JsonValue
  /**
   * 2 in query filters, as in PostHog; in cohort conditions the project's version, so that a cohort has the same members in
   * insights as in flags.
   */
  readonly matchingVersion: 1 | 2
}

export type Condition =
  | { readonly kind: 'all' | 'any'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'not'; readonly condition: Condition }
  | PropertyCondition
  /** The event's current person is one of these persons. */
  | { readonly kind: 'persons'; readonly personIds: readonly string[] }
  /** The person exists now and fulfils this condition, which is made of `property`, `persons` and groups of these. */
  | { readonly kind: 'person_today'; readonly condition: Condition }
  /** Member of a cohort; the service replaces it before a store sees it. */
  | { readonly kind: 'cohort'; readonly cohortId: number; readonly isMember: boolean; readonly path: string }

/** A value that figures are broken down by. */
export interface Breakdown {
  readonly source: Exclude<PropertySource, { kind: 'person_today' }>
  readonly key: string
}

/** A condition that is always true. */
export const always: Condition = { kind: 'all', conditions: [] }

export const conditionsMax = 100
export const conditionDepthMax = 10
/** Maximum number of values of one condition. */
export const conditionValuesMax = 1_000
/** Maximum number of breakdowns at once. */
export const breakdownsMax = 2
export const breakdownLimitDefault = 25
export const breakdownLimitMax = 500
