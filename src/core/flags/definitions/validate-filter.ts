// Checks one filter of a condition set: its shape, its operator, and whether its value could ever match. This keeps
// mistakes from being stored; the evaluator does not rely on it, since a stored filter may be anything.

import {
  getOwnValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readJsonNumber,
  toComparableText,
} from '../../json.ts'
import { parseDateFilter } from '../match/match-date.ts'
import { toNumber } from '../match/match-property.ts'
import { compileSemver, type SemverOperator, semverOperators } from '../match/match-semver.ts'
import { compileFlagRegex, countPatternUnits, patternUnitsMax } from '../match/regex-dialect.ts'
import { createFlagIssue, type FlagIssue } from './flag-issue.ts'

const filterTypes = ['person', 'group', 'cohort', 'flag', 'person_metadata'] as const
type FilterType = (typeof filterTypes)[number]

/** The operators on properties and the form that their value must have. Source: docs/wire/evaluation.md 4.2, 5.9. */
const valueFormOf: ReadonlyMap<string, ValueForm> = new Map([
  ...createFormEntries('any', ['exact', 'is_not']),
  ...createFormEntries('none', ['is_set', 'is_not_set']),
  ...createFormEntries('scalar', [
    'icontains',
    'not_icontains',
    'starts_with',
    'not_starts_with',
    'ends_with',
    'not_ends_with',
  ]),
  ...createFormEntries('scalar_or_list', ['icontains_multi', 'not_icontains_multi']),
  ...createFormEntries('regex', ['regex', 'not_regex']),
  ...createFormEntries('number', ['gt', 'gte', 'lt', 'lte']),
  ...createFormEntries('range', ['between', 'not_between']),
  ...createFormEntries('date', ['is_date_exact', 'is_date_before', 'is_date_after']),
  ...createFormEntries('version', semverOperators),
])
type ValueForm = 'any' | 'none' | 'scalar' | 'scalar_or_list' | 'regex' | 'number' | 'range' | 'date' | 'version'

const otherOperators = ['in', 'not_in', 'flag_evaluates_to']

/** Every operator that a filter may have. */
export const flagOperators: readonly string[] = [...valueFormOf.keys(), ...otherOperators]

/** Bounds the distinct regular expressions of a flag or cohort together, since compiling them blocks the event loop. */
export const patternCharsOfFlagMax = 5_000
/** In the units of `regex-cost.ts`: 15 to 30 ms at worst, enough for a hundred patterns for e-mail addresses with `\w`. */
export const patternUnitsOfFlagMax = 15_000

/** The remaining budget for the regular expressions of one flag or cohort while its filters are validated. */
export interface PatternBudget {
  charsLeft: number
  unitsLeft: number
  /** Patterns already counted: each is compiled once, however many filters use it. */
  readonly paidFor: Set<string>
}

export function createPatternBudget(): PatternBudget {
  return { charsLeft: patternCharsOfFlagMax, unitsLeft: patternUnitsOfFlagMax, paidFor: new Set() }
}

/**
 * All issues of one entry of a set's `properties`. Source: docs/wire/evaluation.md 4.2, 5.9, 5.9.1, 5.11, 5.12; which
 * mistakes are refused: ours.
 */
export function validateFilter(filter: JsonValue, path: string, patterns: PatternBudget): FlagIssue[] {
  if (!isJsonObject(filter)) return [createFlagIssue(path, 'invalid', 'A filter must be an object.')]
  const issues: FlagIssue[] = []
  const type = getOwnValue(filter, 'type')
  if (type === undefined || type === null) {
    issues.push(createFlagIssue(`${path}.type`, 'required', `A filter needs a type: ${filterTypes.join(', ')}.`))
  } else if (!isFilterType(type)) {
    issues.push(
      createFlagIssue(
        `${path}.type`,
        'invalid_input',
        `The type of a filter must be one of ${filterTypes.join(', ')}.`,
      ),
    )
  }
  issues.push(...validateKey(filter, path), ...validateGroupTypeIndex(filter, path))
  const operator = getOwnValue(filter, 'operator') ?? null
  if (operator !== null && typeof operator !== 'string') {
    issues.push(createFlagIssue(`${path}.operator`, 'invalid', 'An operator must be a string.'))
  } else if (operator !== null && !valueFormOf.has(operator) && !otherOperators.includes(operator)) {
    const message = `Unknown operator "${operator.slice(0, 80)}". The operators are ${flagOperators.join(', ')}.`
    issues.push(createFlagIssue(`${path}.operator`, 'invalid_input', message))
  } else if (type === 'cohort') issues.push(...validateCohortFilter(filter, operator, path))
  else if (type === 'flag') issues.push(...validateDependency(filter, operator, path))
  else issues.push(...validatePropertyFilter(filter, operator ?? 'exact', path, patterns))
  return issues
}

function validateKey(filter: JsonObject, path: string): FlagIssue[] {
  const key = getOwnValue(filter, 'key')
  if (key === undefined || key === null) return [createFlagIssue(`${path}.key`, 'required', 'A filter needs a key.')]
  if (typeof key !== 'string')
    return [createFlagIssue(`${path}.key`, 'invalid', 'The key of a filter must be a string.')]
  return []
}

function validateGroupTypeIndex(filter: JsonObject, path: string): FlagIssue[] {
  return findGroupTypeIndexIssues(getOwnValue(filter, 'group_type_index'), `${path}.group_type_index`)
}

/** Checks that a group type index is absent, null or a whole number from 0 to 4. */
export function findGroupTypeIndexIssues(value: JsonValue | undefined, path: string): FlagIssue[] {
  if (value === undefined || value === null) return []
  const index = readJsonNumber(value)
  if (index === undefined || !Number.isInteger(index)) {
    return [createFlagIssue(path, 'invalid', 'A group type index must be a whole number.')]
  }
  return index >= 0 && index <= 4
    ? []
    : [createFlagIssue(path, 'invalid_input', 'A group type index must be between 0 and 4.')]
}

function validateCohortFilter(filter: JsonObject, operator: string | null, path: string): FlagIssue[] {
  const issues: FlagIssue[] = []
  if (operator !== null && operator !== 'in' && operator !== 'not_in') {
    issues.push(
      createFlagIssue(
        `${path}.operator`,
        'invalid_input',
        'A cohort filter supports only the operators in and not_in.',
      ),
    )
  }
  const value = getOwnValue(filter, 'value')
  const id = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : readJsonNumber(value ?? null)
  if (value === undefined || value === null) {
    issues.push(createFlagIssue(`${path}.value`, 'required', 'A cohort filter needs the id of a cohort as its value.'))
  } else if (id === undefined || !Number.isSafeInteger(id) || id < 0) {
    issues.push(createFlagIssue(`${path}.value`, 'invalid_input', 'The value of a cohort filter must be a cohort id.'))
  }
  return issues
}

function validateDependency(filter: JsonObject, operator: string | null, path: string): FlagIssue[] {
  const issues: FlagIssue[] = []
  const key = getOwnValue(filter, 'key')
  if (typeof key === 'string' && !/^\d{1,15}$/.test(key)) {
    issues.push(
      createFlagIssue(
        `${path}.key`,
        'invalid_input',
        'The key of a flag filter must be the id of the other flag, as a string.',
      ),
    )
  }
  if (operator !== 'flag_evaluates_to') {
    issues.push(
      createFlagIssue(`${path}.operator`, 'invalid_input', 'A flag filter needs the operator flag_evaluates_to.'),
    )
  }
  const value = getOwnValue(filter, 'value')
  if (typeof value !== 'boolean' && typeof value !== 'string') {
    issues.push(
      createFlagIssue(
        `${path}.value`,
        'invalid_input',
        'The value of a flag filter must be true, false or a variant key.',
      ),
    )
  }
  return issues
}

function validatePropertyFilter(
  filter: JsonObject,
  operator: string,
  path: string,
  patterns: PatternBudget,
): FlagIssue[] {
  const form = valueFormOf.get(operator)
  if (form === undefined) {
    const place = operator === 'flag_evaluates_to' ? 'flag' : 'cohort'
    return [
      createFlagIssue(
        `${path}.operator`,
        'invalid_input',
        `The operator ${operator} is only for filters of type ${place}.`,
      ),
    ]
  }
  if (form === 'none') return []
  const value = getOwnValue(filter, 'value')
  if (value === undefined || value === null) {
    return [createFlagIssue(`${path}.value`, 'required', `The operator ${operator} needs a value.`)]
  }
  const problem = findValueProblem(form, operator, value, patterns)
  return problem === null ? [] : [createFlagIssue(`${path}.value`, 'invalid_input', problem)]
}

/** Why an operator can never match a value. If such a filter were stored, it would silently be false for everyone. */
function findValueProblem(
  form: Exclude<ValueForm, 'none'>,
  operator: string,
  value: JsonValue,
  patterns: PatternBudget,
): string | null {
  switch (form) {
    case 'any':
      return null
    case 'scalar':
      return Array.isArray(value) || isJsonObject(value) ? 'The value must be a string, a number or a boolean.' : null
    case 'scalar_or_list':
      return isJsonObject(value) ? 'The value must be a list, string, number or boolean.' : null
    case 'number':
      return Number.isNaN(toRangeBound(value)) ? 'The value must be a number: strings are never compared.' : null
    case 'date':
      // Checked in UTC: whether the project's zone skips this wall time does not matter, since that zone may change.
      return parseDateFilter(value, 'UTC') === null
        ? 'The value must be a string: a date such as 2026-01-31, a time such as 2026-01-31T10:00:00Z, or a span such as -7d.'
        : null
    case 'version':
      return compileSemver(operator as SemverOperator, toComparableText(value)) === null
        ? describeVersionProblem(operator)
        : null
    case 'range':
      return isRange(value) ? null : 'The value must be a list of two numbers, the smaller one first.'
    case 'regex':
      return findRegexProblem(value, patterns)
    default:
      return form satisfies never
  }
}

/** Why a pattern is refused; null for an acceptable pattern. Counts the pattern against the budget. */
export function findRegexProblem(value: JsonValue, patterns: PatternBudget): string | null {
  if (typeof value !== 'string') return 'The value must be a string: a regular expression.'
  if (!patterns.paidFor.has(value)) {
    patterns.paidFor.add(value)
    patterns.charsLeft -= value.length
    if (patterns.charsLeft >= 0) patterns.unitsLeft -= Math.min(countPatternUnits(value), patternUnitsMax)
  }
  if (patterns.charsLeft < 0) {
    return `The regular expressions of a flag or cohort may have ${patternCharsOfFlagMax} characters in total.`
  }
  if (patterns.unitsLeft < 0) {
    return 'The regular expressions are too large in total: use fewer counted repetitions and classes such as \\w.'
  }
  const compiled = compileFlagRegex(value)
  return compiled.ok ? null : `This regular expression is not supported: ${compiled.error}.`
}

function isRange(value: JsonValue): boolean {
  if (!Array.isArray(value) || value.length !== 2) return false
  const [low, high] = value.map(toRangeBound)
  return low! <= high!
}

/** NaN for a value that is not a number, and for the text `nan`, with which no comparison is true. */
function toRangeBound(value: JsonValue): number {
  return toNumber(value) ?? Number.NaN
}

function describeVersionProblem(operator: string): string {
  const example =
    operator === 'semver_wildcard' ? 'a version such as 1.2.*, without comparison signs' : 'a version such as 1.2.3'
  return `The value must be ${example}.`
}

function isFilterType(type: JsonValue): type is FilterType {
  return (filterTypes as readonly JsonValue[]).includes(type)
}

function createFormEntries(form: ValueForm, operators: readonly string[]): [string, ValueForm][] {
  return operators.map(operator => [operator, form])
}
