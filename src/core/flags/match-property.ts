// The one table of property operators: what each makes of a filter's value when a definition is compiled, and what it
// answers for a property that is absent. Where the property comes from is the caller's business.
// Source: docs/wire/evaluation.md 5.9.

import { isRawNumber, type JsonValue, textOf } from '../json.ts'
import { parseFloatText } from './float-text.ts'
import { dateOfProperty, parseDateFilter } from './match-date.ts'
import { compileSemver, type SemverOperator, semverOperators } from './match-semver.ts'
import { compileFlagRegex } from './regex-dialect.ts'

export interface MatchSettings {
  /** IANA name: dates without a zone are read in it. */
  readonly timezone: string
  readonly propertyMatchingVersion: 1 | 2
}

export interface CompiledMatch {
  /** Whether a property with this value matches; `nowMs` only moves relative dates. */
  readonly matches: (value: JsonValue, nowMs: number) => boolean
  /** The answer for a property that is not there. */
  readonly whenAbsent: boolean
  /** Why the filter can never match, for the project's log: an invalid pattern, say. */
  readonly problem?: string
}

type Matches = CompiledMatch['matches']

interface Operator {
  readonly whenAbsent: boolean
  /** Turns the filter's value (never null) into a test; text = why no value can ever match. */
  readonly compile: (filter: JsonValue, settings: MatchSettings) => Matches | string
}

const never: Matches = () => false

const operators = new Map<string, Operator>([
  ['exact', { whenAbsent: false, compile: compileExact }],
  ['is_not', { whenAbsent: true, compile: (filter, settings) => negate(compileExact(filter, settings)) }],
  ['icontains', { whenAbsent: false, compile: compileContains }],
  ['not_icontains', { whenAbsent: true, compile: filter => negate(compileContains(filter)) }],
  ['icontains_multi', { whenAbsent: false, compile: compileContainsAny }],
  ['not_icontains_multi', { whenAbsent: true, compile: filter => negate(compileContainsAny(filter)) }],
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
  // On cohort and flag filters only; on a property they are known, and never match.
  ['in', { whenAbsent: false, compile: () => never }],
  ['not_in', { whenAbsent: false, compile: () => never }],
  ['flag_evaluates_to', { whenAbsent: false, compile: () => never }],
  ...semverOperators.map(name => [name, { whenAbsent: false, compile: semverCompiler(name) }] as const),
])

/** Every operator that a stored definition may name; another one makes it unreadable. Source: docs/wire/evaluation.md 4.2. */
export const operatorNames: readonly string[] = ['is_set', 'is_not_set', ...operators.keys()]

/** @returns null for an operator that does not exist. */
export function compileMatch(operator: string, filter: JsonValue, settings: MatchSettings): CompiledMatch | null {
  if (operator === 'is_set') return { matches: () => true, whenAbsent: false }
  if (operator === 'is_not_set') return { matches: never, whenAbsent: true }
  const known = operators.get(operator)
  if (known === undefined) return null
  if (filter === null) return { matches: never, whenAbsent: false }
  const matches = known.compile(filter, settings)
  if (typeof matches === 'string') return { matches: never, whenAbsent: known.whenAbsent, problem: matches }
  return { matches, whenAbsent: known.whenAbsent }
}

function negate(matches: Matches): Matches {
  return (value, nowMs) => !matches(value, nowMs)
}

function compileExact(filter: JsonValue, settings: MatchSettings): Matches {
  const isEmptyList = Array.isArray(filter) && filter.length === 0
  if (isEmptyList || (settings.propertyMatchingVersion === 1 && isBooleanLike(filter))) {
    const wanted = isTruthy(filter)
    return value => isTruthy(value) === wanted
  }
  if (Array.isArray(filter)) {
    const wanted = new Set(filter.map(foldedText))
    return value => wanted.has(foldedText(value))
  }
  const wanted = foldedText(filter)
  return value => value === wanted || foldedText(value) === wanted
}

/** Text forms of lists, objects and kept literals: a property is tested by many filters, and a large one takes long. */
const knownTexts = new WeakMap<object, string>()

function propertyText(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return textOf(value)
  let text = knownTexts.get(value)
  if (text === undefined) {
    text = textOf(value)
    knownTexts.set(value, text)
  }
  return text
}

function foldedText(value: JsonValue): string {
  return (typeof value === 'string' ? value : propertyText(value)).toLowerCase()
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

const notAscii = /[^\0-\x7f]/
const upperAscii = /[A-Z]+/g

/** Lower case of A–Z alone: `É` stays `É`. */
function asciiFold(text: string): string {
  const lower = text.toLowerCase()
  if (lower === text) return text // nothing to fold, the usual case
  return notAscii.test(text) ? text.replace(upperAscii, letters => letters.toLowerCase()) : lower
}

function asciiFoldedText(value: JsonValue): string {
  return asciiFold(typeof value === 'string' ? value : propertyText(value))
}

function compileContains(filter: JsonValue): Matches {
  const part = asciiFoldedText(filter)
  return value => asciiFoldedText(value).includes(part)
}

function compileContainsAny(filter: JsonValue): Matches {
  const parts = (Array.isArray(filter) ? filter : [filter]).map(asciiFoldedText)
  return value => {
    const text = asciiFoldedText(value)
    return parts.some(part => text.includes(part))
  }
}

function compileStartsWith(filter: JsonValue): Matches {
  const start = asciiFoldedText(filter)
  return value => asciiFoldedText(value).startsWith(start)
}

function compileEndsWith(filter: JsonValue): Matches {
  const end = asciiFoldedText(filter)
  return value => asciiFoldedText(value).endsWith(end)
}

/** An invalid pattern and an over-long subject answer false either way. */
function compileRegex(filter: JsonValue, wanted: boolean): Matches | string {
  const regex = compileFlagRegex(textOf(filter))
  if (!regex.ok) return `the pattern cannot be used: ${regex.error}`
  return value => regex.value.find(propertyText(value)) === wanted
}

/** The double that a number or a numeric text stands for; null otherwise. */
function numericValue(value: JsonValue): number | null {
  if (typeof value === 'number') return value
  if (typeof value === 'string') return parseFloatText(value)
  return isRawNumber(value) ? Number(value.rawJSON) : null
}

function compileComparison(filter: JsonValue, holds: (own: number, bound: number) => boolean): Matches {
  const bound = numericValue(filter)
  if (bound === null) return never
  return value => {
    const own = numericValue(value)
    return own !== null && holds(own, bound)
  }
}

function compileBetween(filter: JsonValue, wanted: boolean): Matches {
  if (!Array.isArray(filter) || filter.length !== 2) return never
  const min = numericValue(filter[0]!)
  const max = numericValue(filter[1]!)
  if (min === null || max === null || !(min <= max)) return never
  return value => {
    const own = numericValue(value)
    return own !== null && !Number.isNaN(own) && (own >= min && own <= max) === wanted
  }
}

function compileDate(
  filter: JsonValue,
  { timezone }: MatchSettings,
  holds: (own: bigint, bound: bigint) => boolean,
): Matches {
  const date = parseDateFilter(filter, timezone)
  if (date === null) return never
  return (value, nowMs) => {
    const bound = date.kind === 'fixed' ? date.instant : date.at(nowMs)
    const own = bound === null ? null : dateOfProperty(value, timezone)
    return own !== null && bound !== null && holds(own, bound)
  }
}

function semverCompiler(operator: SemverOperator): Operator['compile'] {
  return filter => {
    const test = compileSemver(operator, textOf(filter))
    return test === null ? never : value => test(propertyText(value))
  }
}
