// A condition on one property in SQL, equal to `core/flags/match` on every value. The engine decides values whose text
// or number it reads as we do. All others are left to Node: the test is NULL for them until Node has seen the distinct
// values and said which of them match.

import { asciiFoldedText, foldedText } from '#core/flags/match/fold-text.ts'
import { parseDateFilter } from '#core/flags/match/match-date.ts'
import { type CompiledMatch, compileMatch, type MatchSettings, numericValue } from '#core/flags/match/match-property.ts'
import { compileFlagRegex, subjectBytesMax } from '#core/flags/match/regex-dialect.ts'
import type { PropertyCondition } from '#core/insights/conditions.ts'
import { isJsonObject, type JsonValue, ownValue, parseJson, textOf } from '#core/json.ts'
import { type PropertyAccess, residualTags } from './property-access.ts'
import type { QueryParams } from './query-params.ts'

export interface MatchContext extends Pick<MatchSettings, 'timezone'> {
  /** What relative dates count from. */
  readonly nowMs: number
  /** False after the engine refused a pattern: Node then finds all of them. */
  readonly usesEngineRegex: boolean
}

export interface PropertyTest {
  readonly compiled: CompiledMatch
  /** SQL of whether the value matches, where it is present and not left to Node. */
  readonly matches: string
  /** SQL of the residual that Node decides, tagged by `residualTags`, '' where nothing is. */
  readonly residual: string
  readonly isPresent: string
}

type Condition = Pick<PropertyCondition, 'operator' | 'value' | 'matchingVersion'>

/** @throws Error for an operator that does not exist; readers of queries refuse those. */
export function compilePropertyTest(
  condition: Condition,
  access: PropertyAccess,
  context: MatchContext,
  params: QueryParams,
): PropertyTest {
  const { operator, value, matchingVersion: propertyMatchingVersion } = condition
  const compiled = compileMatch(operator, value, { timezone: context.timezone, propertyMatchingVersion })
  if (compiled === null) throw new Error(`no operator ${operator}`)
  const { isPresent } = access
  const test = compileTest(condition, access, context, params)
  // The value never matters, so the query need not read it.
  if (test === null) {
    const residual = `if(${access.isUnreadable}, ${access.residualText}, '')`
    return { compiled, isPresent, matches: operator === 'is_set' ? '1' : '0', residual }
  }
  const residual = `multiIf(${access.isUnreadable}, ${access.residualText},
    NOT (${isPresent}), '',
    ${access.type} IN ('Array', 'Object'), if(${access.mayLoseLiteral}, ${access.residualText}, ${access.residualValue}),
    ${test.residual.map(([when, text]) => `${when}, ${text},`).join(' ')} '')`
  return { compiled, isPresent, matches: test.matches, residual }
}

interface Test {
  readonly matches: string
  /** SQL of each case that is left to Node, and of the text from which Node decides it. */
  readonly residual: readonly (readonly [when: string, text: string])[]
}

/** @returns null when the value of the property does not matter. */
function compileTest(
  condition: Condition,
  access: PropertyAccess,
  context: MatchContext,
  params: QueryParams,
): Test | null {
  const { operator, value } = condition
  if (operator === 'is_set' || operator === 'is_not_set' || value === null) return null
  if (hasHalfPair(value) || operator.startsWith('semver_')) {
    return { matches: '0', residual: [...numberResiduals(access), ['1', access.residualValue]] }
  }
  if (operator.startsWith('is_date_')) return compileDateTest(condition, access, context, params)
  const numbers = compileNumberTest(condition, access, params)
  if (numbers !== undefined) return numbers
  return compileTextTest(condition, access, context, params)
}

function isTextSql({ type }: PropertyAccess): string {
  return `${type} = 'String'`
}

/** Fractions and `-0`, which the engine writes differently from us. */
function numberResiduals({
  type,
  text,
  mayLoseLiteral,
  residualText,
  residualDouble,
}: PropertyAccess): Test['residual'] {
  return [
    [`${type} = 'Double'`, residualDouble],
    [`${type} = 'Int64' AND ${text} = '0' AND ${mayLoseLiteral}`, residualText],
  ]
}

function compileTextTest(
  condition: Condition,
  access: PropertyAccess,
  context: MatchContext,
  params: QueryParams,
): Test {
  const { operator, value } = condition
  const { text } = access
  const isNegated = operator.startsWith('not_') || operator === 'is_not'
  const applyNegation = (sql: string) => (isNegated ? `NOT (${sql})` : sql)
  const addFoldedText = () => params.text(asciiFoldedText(value))
  const residual = [...numberResiduals(access)]
  switch (operator) {
    case 'exact':
    case 'is_not': {
      const truth = readWantedTruth(condition)
      if (truth !== null) return { matches: applyNegation(`(lower(${text}) = 'true') = ${truth ? 1 : 0}`), residual }
      const texts = (Array.isArray(value) ? value : [value]).map(foldedText)
      return { matches: applyNegation(`lowerUTF8(${text}) IN (${params.list('String', texts)})`), residual }
    }
    case 'icontains':
    case 'not_icontains':
      return { matches: applyNegation(`position(lower(${text}), ${addFoldedText()}) > 0`), residual }
    case 'icontains_multi':
    case 'not_icontains_multi': {
      const parts = (Array.isArray(value) ? value : [value]).map(asciiFoldedText)
      return { matches: applyNegation(containsAny(`lower(${text})`, parts, params)), residual }
    }
    case 'starts_with':
    case 'not_starts_with':
      return { matches: applyNegation(`startsWith(lower(${text}), ${addFoldedText()})`), residual }
    case 'ends_with':
    case 'not_ends_with':
      return { matches: applyNegation(`endsWith(lower(${text}), ${addFoldedText()})`), residual }
    case 'regex':
    case 'not_regex':
      return compileRegexTest(value, !isNegated, access, context, params)
    default:
      return { matches: '0', residual: [] }
  }
}

/** The most texts that the engine searches for at once. */
const soughtTextsMax = 255

/** Not a parameter for each part: the server takes a thousand of them in a query. */
function containsAny(text: string, parts: readonly string[], params: QueryParams): string {
  if (parts.includes('')) return '1'
  const found = ['0']
  for (let start = 0; start < parts.length; start += soughtTextsMax)
    found.push(`multiSearchAny(${text}, ${params.list('String', parts.slice(start, start + soughtTextsMax))})`)
  return `(${found.join(' OR ')})`
}

/**
 * The truth value that a boolean-like condition value requires; null for a value that is compared as text. As in
 * `match-property.ts`.
 */
function readWantedTruth({ value, matchingVersion }: Condition): boolean | null {
  if (Array.isArray(value) && value.length === 0) return true
  return matchingVersion === 1 && isBooleanLike(value) ? isTruthy(value) : null
}

function isBooleanLike(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isBooleanLike)
  return typeof value === 'boolean' || (typeof value === 'string' && /^(?:true|false)$/i.test(value))
}

function isTruthy(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isTruthy)
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true')
}

/** Whether the value has a lone surrogate, which the engine's texts cannot hold but ours match within pairs. */
function hasHalfPair(value: JsonValue): boolean {
  return /\\ud[89a-f][0-9a-f]{2}/.test(JSON.stringify(value))
}

/**
 * Both engines find the same matches, but their Unicode tables may be of different versions. If a pattern depends on
 * such a table, Node decides the texts that are not ASCII.
 */
function compileRegexTest(
  value: JsonValue,
  wanted: boolean,
  access: PropertyAccess,
  context: MatchContext,
  params: QueryParams,
): Test {
  const regex = compileFlagRegex(textOf(value))
  if (!regex.ok) return { matches: '0', residual: [] }
  const { text } = access
  const { asciiPattern, textCharsMax } = regex.value
  if (asciiPattern === null || !context.usesEngineRegex) {
    return { matches: '0', residual: [...numberResiduals(access), ['1', access.residualValue]] }
  }
  const needsTables = /\\[pPbB]|\(\?[a-zA-Z]*i|0-9A-Za-z_/.test(asciiPattern)
  const isAscii = `length(${text}) = lengthUTF8(${text})`
  const mayBeLong = `length(${text}) > ${textCharsMax}`
  return {
    matches: `length(${text}) <= ${Math.min(subjectBytesMax, textCharsMax)}
      AND match(${text}, ${params.text(`(?-s)${asciiPattern}`)}) = ${wanted ? 1 : 0}`,
    residual: [
      ...numberResiduals(access),
      [
        `length(${text}) <= ${subjectBytesMax} AND NOT (${isAscii})${needsTables ? '' : ` AND ${mayBeLong}`}`,
        access.residualValue,
      ],
      [`position(${text}, char(0)) > 0`, access.residualValue],
    ],
  }
}

/** Undefined for an operator that does not compare numbers. */
function compileNumberTest(
  { operator, value }: Condition,
  access: PropertyAccess,
  params: QueryParams,
): Test | undefined {
  const comparison = comparisons[operator]
  const never: Test = { matches: '0', residual: [] }
  if (comparison !== undefined) {
    const bound = numericValue(value)
    return bound === null
      ? never
      : compileNumberComparison(access, own => `${own} ${comparison} ${params.number(bound)}`)
  }
  if (operator !== 'between' && operator !== 'not_between') return undefined
  if (!Array.isArray(value) || value.length !== 2) return never
  const [min, max] = [numericValue(value[0]!), numericValue(value[1]!)]
  if (min === null || max === null || !(min <= max)) return never
  const wanted = operator === 'between' ? 1 : 0
  return compileNumberComparison(
    access,
    own => `(${own} >= ${params.number(min)} AND ${own} <= ${params.number(max)}) = ${wanted}`,
  )
}

const comparisons: Readonly<Record<string, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

/** Texts that the engine reads as the same numbers. */
const plainNumber = '^[+-]?[0-9]{1,15}([.][0-9]{1,15})?$'

function compileNumberComparison(access: PropertyAccess, holds: (own: string) => string): Test {
  const { type, text, number } = access
  const isNumber = `${type} IN ('Int64', 'UInt64', 'Double')`
  return {
    matches: `multiIf(${isNumber}, ${holds(number)},
      ${isTextSql(access)} AND match(${text}, '${plainNumber}'), ${holds(`ifNull(toFloat64OrNull(${text}), nan)`)}, 0)`,
    // Texts that cannot be numbers are not numbers to Node either, and are not sent there.
    residual: [
      [
        `${isTextSql(access)} AND match(${text}, '^[+-]?[0-9.iInN]') AND NOT match(${text}, '${plainNumber}')`,
        access.residualValue,
      ],
    ],
  }
}

/** The form in which nearly all times are written. */
const utcForm = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]+)?Z$'

function compileDateTest(
  { operator, value }: Condition,
  access: PropertyAccess,
  context: MatchContext,
  params: QueryParams,
): Test {
  const filter = parseDateFilter(value, context.timezone)
  const bound = filter === null || filter.kind === 'fixed' ? filter?.instant : filter.at(context.nowMs)
  if (bound === undefined || bound === null) return { matches: '0', residual: [] }
  const { text, type } = access
  const day = `substring(${text}, 1, 10)`
  const comparison = { is_date_before: '<', is_date_after: '>', is_date_exact: '=' }[operator]
  if (comparison === undefined) return { matches: '0', residual: [] }
  // Such texts are in the order of their times once the fraction has nine digits.
  const fraction = `rightPad(substring(extract(${text}, '[.]([0-9]+)Z$'), 1, 9), 9, '0')`
  const own = `concat(substring(${text}, 1, 19), '.', ${fraction})`
  const isKnownDay = `${day} BETWEEN '1900-01-01' AND '2299-12-31' AND ifNull(toString(toDate32OrNull(${day})) = ${day}, 0)`
  const form = formatUtc(bound)
  const isUtc = form === null ? '0' : `match(${text}, '${utcForm}') AND ${isKnownDay}`
  return {
    matches: form === null ? '0' : `${isTextSql(access)} AND ${isUtc} AND ${own} ${comparison} ${params.text(form)}`,
    residual: [
      // Whole numbers keep their digits in the engine, fractions of seconds may not.
      [`${type} = 'Double'`, access.residualText],
      [`${type} IN ('Int64', 'UInt64')`, access.residualValue],
      [`${isTextSql(access)} AND match(${text}, '^[+-]?[0-9.nNiI]') AND NOT (${isUtc})`, access.residualValue],
    ],
  }
}

/** `2026-01-31T12:00:00.000000000`; null for years that do not have four digits. */
function formatUtc(instant: bigint): string | null {
  const ms = instant / 1_000_000n - (instant % 1_000_000n < 0n ? 1n : 0n)
  const time = new Date(Number(ms))
  const year = time.getUTCFullYear()
  if (!(year >= 0 && year <= 9999)) return null
  const fraction = String(instant - ms * 1_000_000n).padStart(6, '0')
  return `${time.toISOString().slice(0, 23)}${fraction}`
}

/**
 * Whether a residual value matches.
 * @param text as `residual` gave it.
 */
export function matchesResidual(
  text: string,
  key: string,
  { compiled }: Pick<PropertyTest, 'compiled'>,
  nowMs: number,
): ReturnType<CompiledMatch['matches']> {
  const value = readResidual(text, key)
  return value === undefined ? compiled.whenAbsent : compiled.matches(value, nowMs)
}

function readResidual(text: string, key: string): JsonValue | undefined {
  const rest = text.slice(1)
  switch (text[0]) {
    case residualTags.value:
      return parseJson(rest)
    case residualTags.double:
      // The engine omits an empty fraction (`.0`), which our text of a double includes.
      return parseJson(/[.eE]/.test(rest) ? rest : `${rest}.0`)
    default: {
      const properties = rest === '' ? {} : parseJson(rest)
      return isJsonObject(properties) ? ownValue(properties, key) : undefined
    }
  }
}
