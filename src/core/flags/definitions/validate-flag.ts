// Decides whether a flag may be stored as written, and reports everything that is wrong with it. `validate-filter.ts`
// checks single filters, and the store checks whether the key is free. The evaluator does not rely on any of this.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import type { FlagFields } from './flag.ts'
import { createFlagIssue, type FlagIssue, findShapeIssues } from './flag-issue.ts'
import { findMisspeltFields } from './misspelt-fields.ts'
import { readConfigVersion } from './read-rules.ts'
import { createPatternBudget, findGroupTypeIndexIssues, type PatternBudget, validateFilter } from './validate-filter.ts'
import { validateRules } from './validate-rules.ts'

export const flagKeyLengthMax = 400
export const evaluationRuntimes = ['all', 'client', 'server'] as const
/** Bounds the condition sets, filters and variants of a flag together: every evaluation may test each of them. */
export const flagEntryCountMax = 5_000
export const bucketingIdentifiers = ['distinct_id', 'device_id'] as const

/** The parts of a flag that are validated. Absent ones are not being written and are not checked. */
export type FlagToValidate = Omit<FlagFields, 'filters'> & { readonly filters?: JsonValue }

/** Weights are doubles, and 33.33 + 33.33 + 33.34 must count as 100. */
const weightTolerance = 1e-6

/**
 * All issues in the order of the definition, but with all misspelt fields of `filters` before its other faults, and
 * only the first fault of a version 2 document; empty when the flag may be stored.
 * @param stored the flag's current document; null for a new one. Source: docs/wire/evaluation.md 4.2 (what the evaluator
 * reads), 5.9.1 (patterns refused when written), 11; key charset and weights of 100 are what the product's own forms
 * require; all else is ours.
 */
export function validateFlag(flag: FlagToValidate, stored: JsonObject | null = null): FlagIssue[] {
  const issues: FlagIssue[] = flag.key === undefined ? [] : validateFlagKey(flag.key)
  const { evaluationRuntime, bucketingIdentifier } = flag
  if (evaluationRuntime !== undefined && !isOneOf(evaluationRuntimes, evaluationRuntime)) {
    issues.push(
      createFlagIssue('evaluation_runtime', 'invalid_input', `Must be one of ${evaluationRuntimes.join(', ')}.`),
    )
  }
  if (
    bucketingIdentifier !== undefined &&
    bucketingIdentifier !== null &&
    !isOneOf(bucketingIdentifiers, bucketingIdentifier)
  ) {
    issues.push(
      createFlagIssue('bucketing_identifier', 'invalid_input', `Must be one of ${bucketingIdentifiers.join(', ')}.`),
    )
  }
  const filters = flag.filters ?? stored
  if (isJsonObject(filters) && readConfigVersion(filters) === 2) issues.push(...findUnsupportedFields(flag))
  if (flag.filters === undefined) return issues
  if (!isJsonObject(flag.filters))
    return [...issues, createFlagIssue('filters', 'invalid', 'Filters must be an object.')]
  return [...issues, ...validateDocument(flag.filters, stored)]
}

function validateDocument(filters: JsonObject, stored: JsonObject | null): FlagIssue[] {
  const version = readConfigVersion(filters)
  const path = 'filters.version'
  if (version === 'unsupported') {
    return [createFlagIssue(path, 'unsupported_config_version', 'The version of a flag document must be 1 or 2.')]
  }
  const before = stored === null ? version : readConfigVersion(stored)
  if (before !== 'unsupported' && before !== version) {
    return [createFlagIssue(path, 'invalid_input', `This is a version ${before} flag; the version cannot be changed.`)]
  }
  return version === 2 ? validateRules(filters, stored) : validateFilters(filters)
}

/** What a flag with rules cannot have, each with its name in a request. */
const notBesideRules = [
  ['ensureExperienceContinuity', 'ensure_experience_continuity'],
  ['bucketingIdentifier', 'bucketing_identifier'],
  ['isRemoteConfiguration', 'is_remote_configuration'],
  ['hasEncryptedPayloads', 'has_encrypted_payloads'],
] as const

function findUnsupportedFields(flag: FlagToValidate): FlagIssue[] {
  return notBesideRules
    .filter(([field]) => (flag[field] ?? false) !== false)
    .map(([, path]) => createFlagIssue(path, 'invalid_input', 'Not supported for version 2 flags.'))
}

/**
 * Issues of switching a flag on: an archived flag stays inactive, as in PostHog.
 * @param written the fields to write.
 * @param current the flag as stored; absent for a new one.
 */
export function findArchivedIssues(
  written: { readonly active?: boolean; readonly archived?: boolean },
  current: { readonly archived: boolean } = { archived: false },
): FlagIssue[] {
  if (written.active !== true || !(written.archived ?? current.archived)) return []
  return [
    createFlagIssue(
      'active',
      'invalid_input',
      'An archived flag cannot be active. Unarchive it first: `archived: false`.',
    ),
  ]
}

function validateFlagKey(key: string): FlagIssue[] {
  if (key.length > flagKeyLengthMax) {
    return [createFlagIssue('key', 'invalid_input', `A flag key may have at most ${flagKeyLengthMax} characters.`)]
  }
  if (/^[a-zA-Z0-9_-]+$/.test(key)) return []
  return [
    createFlagIssue('key', 'invalid_input', 'A flag key may only contain letters, digits, hyphens and underscores.'),
  ]
}

/** Of version 1. */
function validateFilters(filters: JsonObject): FlagIssue[] {
  const tooLong = validateEntryCount(filters)
  if (tooLong !== null) return [tooLong]
  const patterns = createPatternBudget()
  const payloads = getOwnValue(filters, 'payloads') ?? null
  const validateBoolean = (name: string) => {
    const value = getOwnValue(filters, name)
    return findShapeIssues(value, `filters.${name}`, typeof value === 'boolean', 'true, false')
  }
  return [
    ...findMisspeltFields(filters),
    ...validateSets(getOwnValue(filters, 'groups'), 'filters.groups', { required: true, patterns }),
    ...validateVariants(getOwnValue(filters, 'multivariate')),
    ...findShapeIssues(payloads, 'filters.payloads', isJsonObject(payloads), 'an object'),
    ...findGroupTypeIndexIssues(
      getOwnValue(filters, 'aggregation_group_type_index'),
      'filters.aggregation_group_type_index',
    ),
    ...validateBoolean('feature_enrollment'),
    ...validateBoolean('early_exit'),
    ...validateSets(getOwnValue(filters, 'super_groups'), 'filters.super_groups', { required: false, patterns }),
    ...validateHoldout(getOwnValue(filters, 'holdout')),
    ...validateHoldoutGroups(getOwnValue(filters, 'holdout_groups')),
  ]
}

/** The issue of too many entries, or null. Entries are counted before any is checked: long lists cost nothing. */
function validateEntryCount(filters: JsonObject): FlagIssue | null {
  let count = 0
  const multivariate = getOwnValue(filters, 'multivariate') ?? null
  const variants = isJsonObject(multivariate) ? getOwnValue(multivariate, 'variants') : undefined
  for (const [path, list] of [
    ['groups', getOwnValue(filters, 'groups')],
    ['multivariate.variants', variants],
    ['super_groups', getOwnValue(filters, 'super_groups')],
    ['holdout_groups', getOwnValue(filters, 'holdout_groups')],
  ] as const) {
    if (!Array.isArray(list)) continue
    count += list.length
    if (count > flagEntryCountMax) return createTooManyIssue(path)
    for (const [index, entry] of list.entries()) {
      const properties = isJsonObject(entry) ? getOwnValue(entry, 'properties') : undefined
      if (!Array.isArray(properties)) continue
      count += properties.length
      if (count > flagEntryCountMax) return createTooManyIssue(`${path}.${index}.properties`)
    }
  }
  return null
}

function createTooManyIssue(path: string): FlagIssue {
  const most = `A flag may have at most ${flagEntryCountMax} condition sets, filters and variants in total.`
  return createFlagIssue(`filters.${path}`, 'invalid_input', most)
}

function validateSets(
  sets: JsonValue | undefined,
  path: string,
  options: { required: boolean; patterns: PatternBudget },
): FlagIssue[] {
  if (!options.required && (sets === undefined || sets === null)) return []
  if (sets === undefined)
    return [createFlagIssue(path, 'required', 'Condition sets are required; an empty list is allowed.')]
  if (!Array.isArray(sets)) return [createFlagIssue(path, 'invalid', 'Condition sets must be a list.')]
  return sets.flatMap((set, index) => validateSet(set, `${path}.${index}`, options.patterns))
}

function validateSet(set: JsonValue, path: string, patterns: PatternBudget): FlagIssue[] {
  if (!isJsonObject(set)) return [createFlagIssue(path, 'invalid', 'A condition set must be an object.')]
  const properties = getOwnValue(set, 'properties') ?? []
  const variant = getOwnValue(set, 'variant')
  return [
    ...(Array.isArray(properties)
      ? properties.flatMap((filter, index) => validateFilter(filter, `${path}.properties.${index}`, patterns))
      : [createFlagIssue(`${path}.properties`, 'invalid', 'Filters of a condition set must be a list.')]),
    ...validatePercentage(getOwnValue(set, 'rollout_percentage'), `${path}.rollout_percentage`, { required: false }),
    ...findShapeIssues(variant, `${path}.variant`, typeof variant === 'string', 'a string'),
    ...findGroupTypeIndexIssues(
      getOwnValue(set, 'aggregation_group_type_index'),
      `${path}.aggregation_group_type_index`,
    ),
  ]
}

function validateVariants(multivariate: JsonValue | undefined): FlagIssue[] {
  const path = 'filters.multivariate'
  if (multivariate === undefined || multivariate === null) return []
  if (!isJsonObject(multivariate))
    return [createFlagIssue(path, 'invalid', 'Must be an object with a list of variants, or null.')]
  const variants = getOwnValue(multivariate, 'variants') ?? []
  if (!Array.isArray(variants)) return [createFlagIssue(`${path}.variants`, 'invalid', 'Variants must be a list.')]
  const issues: FlagIssue[] = []
  const keys = new Set<string>()
  let sum = 0
  for (const [index, variant] of variants.entries()) {
    const at = `${path}.variants.${index}`
    if (!isJsonObject(variant)) {
      issues.push(createFlagIssue(at, 'invalid', 'A variant must be an object.'))
      continue
    }
    issues.push(...validateVariantKey(variant, keys, at))
    const weight = getOwnValue(variant, 'rollout_percentage')
    issues.push(...validatePercentage(weight, `${at}.rollout_percentage`, { required: true }))
    sum += readJsonNumber(weight ?? null) ?? 0
  }
  if (issues.length === 0 && variants.length > 0 && Math.abs(sum - 100) > weightTolerance) {
    issues.push(
      createFlagIssue(`${path}.variants`, 'invalid_input', `The variants' percentages sum to ${sum} instead of 100.`),
    )
  }
  return issues
}

function validateVariantKey(variant: JsonObject, seen: Set<string>, path: string): FlagIssue[] {
  const key = getOwnValue(variant, 'key')
  if (key === undefined || key === null) return [createFlagIssue(`${path}.key`, 'required', 'A variant needs a key.')]
  if (typeof key !== 'string')
    return [createFlagIssue(`${path}.key`, 'invalid', 'The key of a variant must be a string.')]
  if (key === '') return [createFlagIssue(`${path}.key`, 'invalid_input', 'The key of a variant must not be empty.')]
  if (seen.has(key)) return [createFlagIssue(`${path}.key`, 'invalid_input', 'Another variant has this key.')]
  seen.add(key)
  return []
}

function validateHoldout(holdout: JsonValue | undefined): FlagIssue[] {
  if (holdout === undefined || holdout === null) return []
  if (!isJsonObject(holdout))
    return [createFlagIssue('filters.holdout', 'invalid', 'A holdout must be an object or null.')]
  const path = 'filters.holdout.exclusion_percentage'
  return validatePercentage(getOwnValue(holdout, 'exclusion_percentage'), path, { required: true })
}

function validateHoldoutGroups(groups: JsonValue | undefined): FlagIssue[] {
  const path = 'filters.holdout_groups'
  if (groups === undefined || groups === null) return []
  if (!Array.isArray(groups)) return [createFlagIssue(path, 'invalid', 'Holdout groups must be a list or null.')]
  return groups.flatMap((group, index) => {
    const at = `${path}.${index}`
    if (!isJsonObject(group)) return [createFlagIssue(at, 'invalid', 'A holdout group must be an object.')]
    return validatePercentage(getOwnValue(group, 'rollout_percentage'), `${at}.rollout_percentage`, { required: false })
  })
}

/** A percentage is between 0 and 100; fractions are allowed. */
function validatePercentage(value: JsonValue | undefined, path: string, options: { required: boolean }): FlagIssue[] {
  if (value === undefined || value === null) {
    return options.required ? [createFlagIssue(path, 'required', 'A percentage is required.')] : []
  }
  const percentage = readJsonNumber(value)
  if (percentage === undefined) return [createFlagIssue(path, 'invalid', 'A percentage must be a number.')]
  if (percentage >= 0 && percentage <= 100) return []
  return [createFlagIssue(path, 'invalid_input', 'A percentage must be between 0 and 100.')]
}

function isOneOf(list: readonly string[], value: string): boolean {
  return list.includes(value)
}
