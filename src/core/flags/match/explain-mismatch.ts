// Explains in words why a filter could not match: the filter's value, or the property's value, cannot be compared that way.
// For explanations only: `match-property.ts` decides what matches, and both use the same readers of numbers, dates and
// versions. Source: docs/wire/evaluation.md 5.9.

import { type JsonValue, toComparableText } from '../../json.ts'
import { toPropertyText } from './fold-text.ts'
import { dateOfProperty, parseDateFilter } from './match-date.ts'
import { compilePropertyMatch, type MatchSettings, toNumber } from './match-property.ts'
import { compileSemver, parseSemver, semverOperators } from './match-semver.ts'
import { subjectBytesMax } from './regex-dialect.ts'

export interface FilterValues {
  readonly operator: string
  readonly filter: JsonValue
  /** Undefined when the subject has no such property. */
  readonly property: JsonValue | undefined
}

/** @returns null when the two values could be compared and simply differ. */
export function explainMismatch({ operator, filter, property }: FilterValues, settings: MatchSettings): string | null {
  if (operator === 'is_set' || operator === 'is_not_set') return null
  if (operator === 'in' || operator === 'not_in') return `"${operator}" works on cohorts only`
  if (operator === 'flag_evaluates_to') return '"flag_evaluates_to" works on flags only'
  if (filter === null) return 'a filter without a value never matches'
  const unusable = findFilterProblem(operator, filter, settings)
  if (unusable !== null) return unusable
  return property === undefined ? null : findPropertyProblem(operator, property, settings)
}

const numberOperators = ['gt', 'gte', 'lt', 'lte']

function findFilterProblem(operator: string, filter: JsonValue, settings: MatchSettings): string | null {
  if (operator === 'regex' || operator === 'not_regex') {
    const problem = compilePropertyMatch(operator, filter, settings)?.problem
    return problem === undefined ? null : `never matches: ${problem}`
  }
  if (numberOperators.includes(operator)) return toNumber(filter) === null ? "the filter's value is not a number" : null
  if (operator === 'between' || operator === 'not_between') return isRange(filter) ? null : rangeNote
  if (operator.startsWith('is_date_'))
    return parseDateFilter(filter, settings.timezone) === null ? "the filter's value is not a date" : null
  const semver = semverOperators.find(name => name === operator)
  if (semver === undefined) return null
  return compileSemver(semver, toComparableText(filter)) === null ? "the filter's value is not a version" : null
}

const rangeNote = "the filter's value is not a range: two numbers, the smaller one first"

function isRange(filter: JsonValue): boolean {
  if (!Array.isArray(filter) || filter.length !== 2) return false
  const [min, max] = filter.map(toNumber)
  return min !== null && max !== null && min! <= max!
}

function findPropertyProblem(operator: string, property: JsonValue, { timezone }: MatchSettings): string | null {
  if (numberOperators.includes(operator) || operator.endsWith('between')) {
    const number = toNumber(property)
    return number === null || Number.isNaN(number) ? "the property's value is not a number" : null
  }
  if (operator.startsWith('is_date_'))
    return dateOfProperty(property, timezone) === null ? "the property's value is not a date" : null
  if ((semverOperators as readonly string[]).includes(operator))
    return parseSemver(toPropertyText(property)) === null ? "the property's value is not a version" : null
  if (operator !== 'regex' && operator !== 'not_regex') return null
  const isTooLong = Buffer.byteLength(toPropertyText(property), 'utf8') > subjectBytesMax
  return isTooLong ? 'a value of more than 16 KiB never matches a pattern' : null
}
