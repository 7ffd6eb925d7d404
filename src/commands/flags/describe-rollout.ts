// Describes the conditions of a flag for people.

import {
  readStoredFilters,
  type StoredFilter,
  type StoredFilters,
  type StoredSet,
  UnreadableFilters,
} from '#core/flags/definitions/flag-filters.ts'
import { readFlagRollout } from '#core/flags/definitions/flag-rollout.ts'
import { readConfigVersion, readRules } from '#core/flags/definitions/read-rules.ts'
import type { Predicate, Rule, RulesDocument } from '#core/flags/definitions/rules-document.ts'
import { formatCount } from '#core/format-count.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'

/** `everyone`, `everyone: control`, `no one`, `25 %`, `by conditions: 100 % / 10 %`, `by 3 rules`. */
export function describeRollout(filters: JsonObject): string {
  const rollout = readFlagRollout(filters)
  switch (rollout.kind) {
    case 'everybody':
      return rollout.variant === null ? 'everyone' : `everyone: ${rollout.variant}`
    case 'nobody':
      return 'no one'
    case 'unreadable':
      return 'unreadable'
    case 'some':
      return findRules(filters) === null
        ? describePartialRollout(readStoredFilters(filters))
        : `by ${formatRuleCount(findRules(filters)!)}`
    default:
      return rollout satisfies never
  }
}

/** The most condition sets whose percentages are shown in one table cell. */
const setsShown = 4

function describePartialRollout({ sets, variants }: StoredFilters): string {
  const percentages = sets.map(({ rolloutPercentage }) => rolloutPercentage ?? 100)
  if (sets.some(({ filters }) => filters.length > 0)) {
    const shown = percentages.slice(0, setsShown).map(percentage => `${percentage} %`)
    return `by conditions: ${shown.join(' / ')}${percentages.length > setsShown ? ' / …' : ''}`
  }
  const most = `${percentages.reduce((max, percentage) => Math.max(max, percentage), 0)} %`
  return variants.length > 0 ? `${most}, ${formatCount(variants.length, 'variant')}` : most
}

/**
 * A numbered line per condition set; one line if there are no sets. For version 2: a line per rule, and one for the
 * default.
 */
export function formatConditionLines(filters: JsonObject): string[] {
  const document = findRules(filters)
  if (document !== null)
    return [...document.rules.map((rule, index) => `${index + 1}. ${describeRule(rule)}`), describeDefault(document)]
  return describeIfReadable(filters, ({ sets }) => {
    if (sets.length === 0) return ['none: off for all users']
    return sets.map((set, index) => `${index + 1}. ${describeSet(set)}`)
  })
}

/** A line per condition set, without its number. For version 2: a line per rule, and one for the default. */
export function describeConditions(filters: JsonObject): string[] {
  const document = findRules(filters)
  if (document !== null) return [...document.rules.map(describeRule), describeDefault(document)]
  return describeIfReadable(filters, ({ sets }) => sets.map(describeSet))
}

/** A line for each variant of the flag; none for version 2, whose rules have their own. */
export function formatVariantLines(filters: JsonObject): string[] {
  if (readConfigVersion(filters) !== 1) return []
  return describeIfReadable(filters, ({ variants }) =>
    variants.map(({ key, rolloutPercentage }) => `${key}: ${rolloutPercentage} %`),
  )
}

/** @returns null for version 1, and for rules that cannot be read. */
function findRules(filters: JsonObject): RulesDocument | null {
  const read = readConfigVersion(filters) === 1 ? null : readRules(filters)
  return read?.ok ? read.value : null
}

function formatRuleCount({ rules }: RulesDocument): string {
  return formatCount(rules.length, 'rule')
}

function describeDefault({ defaultValue }: RulesDocument): string {
  return `else ${defaultValue === null ? 'no value' : JSON.stringify(defaultValue)}`
}

function describeRule(rule: Rule): string {
  const who = rule.predicates.length === 0 ? 'everyone' : rule.predicates.map(describePredicate).join(' and ')
  if (rule.type === 'targeted_release') return `${who}: ${JSON.stringify(rule.value)}`
  const missed = rule.continuesOnMiss ? '' : ' and the default for the others'
  const share = rule.rolloutPercentage === 100 ? '' : `, ${rule.rolloutPercentage} % of them${missed}`
  if (rule.type === 'percentage_rollout') return `${who}${share}: ${JSON.stringify(rule.value)}`
  const variants = rule.variants.map(({ key, weight, value }) => `${key} ${weight} % ${JSON.stringify(value)}`)
  const heldOut = rule.holdout === null ? '' : `, ${rule.holdout.exclusionPercentage} % held out`
  return `${who}${heldOut}${share}: ${rule.paused ? 'paused, ' : ''}${variants.join(' / ')}`
}

function describePredicate({ key, operator, value, negation }: Predicate): string {
  const condition = describeFilter({ type: 'person', key, operator, value: value ?? null })
  return negation ? `not (${condition})` : condition
}

function describeIfReadable(filters: JsonObject, linesOf: (read: StoredFilters) => string[]): string[] {
  if (readConfigVersion(filters) !== 1 && findRules(filters) === null)
    return ['unreadable: of an unknown version, or malformed']
  try {
    return linesOf(readStoredFilters(filters))
  } catch (cause) {
    if (cause instanceof UnreadableFilters) return [`unreadable: ${cause.message}`]
    throw cause
  }
}

function describeSet({ filters, rolloutPercentage, variant }: StoredSet): string {
  const isForAll = rolloutPercentage === null || rolloutPercentage === 100
  const matched = filters.map(describeFilter).join(' and ')
  const who =
    filters.length === 0
      ? `${isForAll ? '' : `${rolloutPercentage} % of `}everyone`
      : `${matched}${isForAll ? '' : `, ${rolloutPercentage} % of them`}`
  return `${who}${variant === null ? '' : `, variant ${variant}`}`
}

/** Operators whose value is not compared; PostHog stores the operator's name as the value. */
const withoutValue: ReadonlySet<string | null> = new Set(['is_set', 'is_not_set'])

function describeFilter({ type, key, operator, value }: Omit<StoredFilter, 'groupTypeIndex'>): string {
  if (type === 'cohort') return `${(operator ?? 'in').replaceAll('_', ' ')} cohort ${describeValue(value)}`
  const subject = type === 'person' ? key : `${type} ${key}`
  const verb = operator === 'flag_evaluates_to' ? 'is' : (operator ?? 'exact').replaceAll('_', ' ')
  return withoutValue.has(operator) ? `${subject} ${verb}` : `${subject} ${verb} ${describeValue(value)}`.trimEnd()
}

function describeValue(value: JsonValue): string {
  if (Array.isArray(value)) return value.map(describeValue).join(' or ')
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)
}
