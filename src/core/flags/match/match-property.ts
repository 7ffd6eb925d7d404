// The only table of property operators: how each operator compiles a filter's value into a test, and its answer for an
// absent property. Callers read the property. Source: docs/wire/evaluation.md 5.9.

import { isRawNumber, type JsonValue, toComparableText } from '../../json.ts'
import { parseFloatText } from './float-text.ts'
import { containsAny, containsText, toAsciiFoldedText, toFoldedText, toPropertyText } from './fold-text.ts'
import { dateOfProperty, parseDateFilter } from './match-date.ts'
import { compileSemver, type SemverOperator, semverOperators } from './match-semver.ts'
import { compileFlagRegex, type FlagRegex } from './regex-dialect.ts'

export interface MatchSettings {
  /** IANA name: dates without a zone are read in it. */
  readonly timezone: string
  readonly propertyMatchingVersion: 1 | 2
}

/** A long test in steps of less than a millisecond. */
export type MatchSteps = Generator<void, boolean>

export interface CompiledMatch {
  /** Whether a property with this value matches, or the steps to find out; only relative dates use `nowMs`. */
  readonly matches: (value: JsonValue, nowMs: number) => boolean | MatchSteps
  /** The answer for an absent property. */
  readonly whenAbsent: boolean
  /** Why the filter can never match, such as an invalid pattern; for the log. */
  readonly problem?: string
}

type Matches = CompiledMatch['matches']
type QuickMatches = (value: JsonValue, nowMs: number) => boolean

interface Operator {
  readonly whenAbsent: boolean
  /** Turns the filter's value (never null) into a test, or into a text that says why no value can ever match. */
  readonly compile: (filter: JsonValue, settings: MatchSettings) => Matches | string
}

const matchNothing: Matches = () => false

const operators = new Map<string, Operator>([
  ['exact', { whenAbsent: false, compile: compileExact }],
  ['is_not', { whenAbsent: true, compile: (filter, settings) => negate(compileExact(filter, settings)) }],
  ['icontains', { whenAbsent: false, compile: filter => compileContains(filter, true) }],
  ['not_icontains', { whenAbsent: true, compile: filter => compileContains(filter, false) }],
  ['icontains_multi', { whenAbsent: false, compile: filter => compileContainsAny(filter, true) }],
  ['not_icontains_multi', { whenAbsent: true, compile: filter => compileContainsAny(filter, false) }],
  ['starts_with', { whenAbsent: false, compile: compileStartsWith }],
  ['not_starts_with', { whenAbsent: true, compile: filter => negate(compileStartsWith(filter)) }],
  ['ends_with', { whenAbsent: false, compile: compileEndsWith }],
  ['not_ends_with', { whenAbsent: true, compile: filter => negate(compileEndsWith(filter)) }],
  ['regex', { whenAbsent: false, compile: filter => compileRegex(filter, true) }],
  ['not_regex', { whenAbsent: true, compile: filter => compileRegex(filter, false) }],
  ['gt', { whenAbsent: false, compile: filter => compileComparison(filter, (own, bound) => own > bound) }],
  ['gte', { whenAbsent: false, compile: filter => compileComparison(filter, (own, bound) => own >= bound) }],
  ['lt', { whenAbsent: false, compile: filter => compileComparison(filter, (own, bound) => own < bound) }],
  ['lte', { whenAbsent: false, compile: filter => compileComparison(filter, (own, bound) => own <= bound) }],
  ['between', { whenAbsent: false, compile: filter => compileBetween(filter, true) }],
  ['not_between', { whenAbsent: true, compile: filter => compileBetween(filter, false) }],
  [
    'is_date_exact',
    { whenAbsent: false, compile: (filter, s) => compileDate(filter, s, (own, bound) => own === bound) },
  ],
  [
    'is_date_before',
    { whenAbsent: false, compile: (filter, s) => compileDate(filter, s, (own, bound) => own < bound) },
  ],
  ['is_date_after', { whenAbsent: false, compile: (filter, s) => compileDate(filter, s, (own, bound) => own > bound) }],
  // Operators of cohort and flag filters; on a property they are accepted but never match.
  ['in', { whenAbsent: false, compile: () => matchNothing }],
  ['not_in', { whenAbsent: false, compile: () => matchNothing }],
  ['flag_evaluates_to', { whenAbsent: false, compile: () => matchNothing }],
  ...semverOperators.map(name => [name, { whenAbsent: false, compile: createSemverCompiler(name) }] as const),
])

/**
 * Every operator that a stored definition may name; any other operator makes the definition unreadable. Source:
 * docs/wire/evaluation.md 4.2.
 */
export const operatorNames: readonly string[] = ['is_set', 'is_not_set', ...operators.keys()]

/** Whether an operator never matches a property that is absent. */
export function doesOperatorNeedValue(operator: string): boolean {
  return operator === 'is_set' || operators.get(operator)?.whenAbsent === false
}

/** @returns null for an operator that does not exist. */
export function compilePropertyMatch(
  operator: string,
  filter: JsonValue,
  settings: MatchSettings,
): CompiledMatch | null {
  if (operator === 'is_set') return { matches: () => true, whenAbsent: false }
  if (operator === 'is_not_set') return { matches: matchNothing, whenAbsent: true }
  const known = operators.get(operator)
  if (known === undefined) return null
  if (filter === null) return { matches: matchNothing, whenAbsent: false }
  const matches = known.compile(filter, settings)
  if (typeof matches === 'string') return { matches: matchNothing, whenAbsent: known.whenAbsent, problem: matches }
  return { matches, whenAbsent: known.whenAbsent }
}

function negate(matches: QuickMatches): QuickMatches {
  return (value, nowMs) => !matches(value, nowMs)
}

function compileExact(filter: JsonValue, settings: MatchSettings): QuickMatches {
  const isEmptyList = Array.isArray(filter) && filter.length === 0
  if (isEmptyList || (settings.propertyMatchingVersion === 1 && isBooleanLike(filter))) {
    const wanted = isTruthy(filter)
    return value => isTruthy(value) === wanted
  }
  if (Array.isArray(filter)) {
    const wanted = new Set(filter.map(toFoldedText))
    let charsMax = 0
    for (const text of wanted) charsMax = Math.max(charsMax, text.length)
    return value => !isLongerThan(charsMax, value) && wanted.has(toFoldedText(value))
  }
  const wanted = toFoldedText(filter)
  return value => value === wanted || (!isLongerThan(wanted.length, value) && toFoldedText(value) === wanted)
}

/** Folding never shortens a text, so a text of more than `chars` cannot match and is not folded. */
function isLongerThan(chars: number, value: JsonValue): boolean {
  return typeof value === 'string' && value.length > chars
}

function isBooleanLike(value: JsonValue): boolean {
  if (typeof value === 'boolean') return true
  if (typeof value === 'string') return /^(?:true|false)$/i.test(value)
  return Array.isArray(value) && value.every(isBooleanLike)
}

function isTruthy(value: JsonValue): boolean {
  if (typeof value === 'boolean') return value
  if (typeof value === 'string') return value.length === 4 && value.toLowerCase() === 'true'
  return Array.isArray(value) && value.every(isTruthy)
}

function compileContains(filter: JsonValue, wanted: boolean): Matches {
  const part = toAsciiFoldedText(filter)
  return value => {
    const found = containsText(toAsciiFoldedText(value), part)
    return typeof found === 'boolean' ? found === wanted : matchesWanted(found, wanted)
  }
}

function compileContainsAny(filter: JsonValue, wanted: boolean): Matches {
  const parts = (Array.isArray(filter) ? filter : [filter]).map(toAsciiFoldedText)
  return value => {
    const found = containsAny(toAsciiFoldedText(value), parts)
    return typeof found === 'boolean' ? found === wanted : matchesWanted(found, wanted)
  }
}

function* matchesWanted(found: MatchSteps, wanted: boolean): MatchSteps {
  return (yield* found) === wanted
}

function compileStartsWith(filter: JsonValue): QuickMatches {
  const start = toAsciiFoldedText(filter)
  return value => toAsciiFoldedText(value).startsWith(start)
}

function compileEndsWith(filter: JsonValue): QuickMatches {
  const end = toAsciiFoldedText(filter)
  return value => toAsciiFoldedText(value).endsWith(end)
}

/** With an invalid pattern or an over-long subject, both `regex` and `not_regex` are false. */
function compileRegex(filter: JsonValue, wanted: boolean): Matches | string {
  const regex = compileFlagRegex(toComparableText(filter))
  if (!regex.ok) return `the pattern is not supported: ${regex.error}`
  return value => {
    const text = toPropertyText(value)
    return regex.value.isSlow(text) ? findLater(regex.value, text, wanted) : regex.value.find(text) === wanted
  }
}

/** Pauses once, so that the caller checks the time: the regular expression engine cannot be interrupted. */
function* findLater(regex: FlagRegex, text: string, wanted: boolean): MatchSteps {
  yield
  return regex.find(text) === wanted
}

/** The double that a number or a numeric text means; null for anything else. */
export function toNumber(value: JsonValue): number | null {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return parseFloatText(value)
  return isRawNumber(value) ? Number(value.rawJSON) : null
}

function compileComparison(filter: JsonValue, holds: (own: number, bound: number) => boolean): Matches {
  const bound = toNumber(filter)
  if (bound === null) return matchNothing
  return value => {
    const own = toNumber(value)
    return own !== null && holds(own, bound)
  }
}

function compileBetween(filter: JsonValue, wanted: boolean): Matches {
  if (!Array.isArray(filter) || filter.length !== 2) return matchNothing
  const min = toNumber(filter[0]!)
  const max = toNumber(filter[1]!)
  if (min === null || max === null || !(min <= max)) return matchNothing
  return value => {
    const own = toNumber(value)
    return own !== null && !Number.isNaN(own) && (own >= min && own <= max) === wanted
  }
}

function compileDate(
  filter: JsonValue,
  { timezone }: MatchSettings,
  holds: (own: bigint, bound: bigint) => boolean,
): Matches {
  const date = parseDateFilter(filter, timezone)
  if (date === null) return matchNothing
  return (value, nowMs) => {
    const bound = date.kind === 'fixed' ? date.instant : date.at(nowMs)
    const own = bound === null ? null : dateOfProperty(value, timezone)
    return own !== null && bound !== null && holds(own, bound)
  }
}

function createSemverCompiler(operator: SemverOperator): Operator['compile'] {
  return filter => {
    const test = compileSemver(operator, toComparableText(filter))
    return test === null ? matchNothing : value => test(toPropertyText(value))
  }
}
