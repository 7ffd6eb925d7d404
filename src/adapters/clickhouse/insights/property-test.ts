// SQL of a condition on one property. It has the same result as `core/flags/match` for every value that the engine parses
// as we do.

import { toAsciiFoldedText, toFoldedText } from '#core/flags/match/fold-text.ts'
import { compilePropertyMatch, toNumber } from '#core/flags/match/match-property.ts'
import { readVersionTest, type Semver, type SemverOperator, semverOperators } from '#core/flags/match/match-semver.ts'
import { compileFlagRegex, subjectBytesMax } from '#core/flags/match/regex-dialect.ts'
import type { PropertyCondition } from '#core/insights/conditions.ts'
import { type JsonValue, toComparableText } from '#core/json.ts'
import { UnsupportedPattern } from '#ports/events/insight-queries.ts'
import { buildDateComparisonSql, type DateContext } from './date-sql.ts'
import { bindValueInSql, blanks, buildNumberSql, type PropertyAccess } from './property-access.ts'
import type { QueryParams } from './query-params.ts'

type Condition = Pick<PropertyCondition, 'operator' | 'value' | 'matchingVersion'>

/**
 * SQL of a condition, which is 1 or 0. @throws UnsupportedPattern; also throws for an unknown operator, which the parsing
 * of queries should have refused.
 */
export function buildPropertyTestSql(
  condition: Condition,
  access: PropertyAccess,
  context: DateContext,
  params: QueryParams,
): string {
  return `if(${access.isPresent}, toUInt8(${matchSql(condition, access, context, params)}), ${matchesWhenAbsent(condition) ? 1 : 0})`
}

/** Whether a condition holds where the property is absent. */
export function matchesWhenAbsent({ operator, value, matchingVersion: propertyMatchingVersion }: Condition): boolean {
  const compiled = compilePropertyMatch(operator, value, { timezone: 'UTC', propertyMatchingVersion })
  if (compiled === null) throw new Error(`no operator ${operator}`)
  return compiled.whenAbsent
}

function matchSql(condition: Condition, access: PropertyAccess, context: DateContext, params: QueryParams): string {
  const { operator, value } = condition
  // Half of a surrogate pair, which JavaScript could find inside a text, cannot be sent to the engine.
  if (!toComparableText(value).isWellFormed()) throw new UnsupportedPattern()
  if (operator === 'is_set') return '1'
  if (operator === 'is_not_set' || value === null) return '0'
  const semver = semverOperators.find(name => name === operator)
  if (semver !== undefined) return compareVersionSql(semver, toComparableText(value), access, params)
  if (operator.startsWith('is_date_')) return buildDateComparisonSql(operator, value, access, context, params)
  return compareNumberSql(condition, access, params) ?? compareTextSql(condition, access, params)
}

function compareTextSql(condition: Condition, { text, type }: PropertyAccess, params: QueryParams): string {
  const { operator, value } = condition
  const isNegated = operator.startsWith('not_') || operator === 'is_not'
  const applyNegation = (sql: string) => (isNegated ? `NOT (${sql})` : sql)
  const addFoldedText = () => params.text(toAsciiFoldedText(value))
  switch (operator) {
    case 'exact':
    case 'is_not': {
      const truth = readWantedTruth(condition)
      if (truth !== null) return applyNegation(`${isTruthySql(text, type)} = ${truth ? 1 : 0}`)
      const texts = (Array.isArray(value) ? value : [value]).map(toFoldedText)
      return applyNegation(`lowerUTF8(${text}) IN (${params.list('String', texts)})`)
    }
    case 'icontains':
    case 'not_icontains':
      return applyNegation(`position(lower(${text}), ${addFoldedText()}) > 0`)
    case 'icontains_multi':
    case 'not_icontains_multi': {
      const parts = (Array.isArray(value) ? value : [value]).map(toAsciiFoldedText)
      return applyNegation(containsAnySql(`lower(${text})`, parts, params))
    }
    case 'starts_with':
    case 'not_starts_with':
      return applyNegation(`startsWith(lower(${text}), ${addFoldedText()})`)
    case 'ends_with':
    case 'not_ends_with':
      return applyNegation(`endsWith(lower(${text}), ${addFoldedText()})`)
    case 'regex':
    case 'not_regex':
      return matchRegexSql(toComparableText(value), !isNegated, text, params)
    default:
      throw new Error(`no SQL for the operator ${operator}`)
  }
}

/** The most strings that the engine searches for at once. */
const soughtTextsMax = 255

/** Sends the strings as lists, since the server accepts only a thousand parameters in a query. */
function containsAnySql(text: string, parts: readonly string[], params: QueryParams): string {
  if (parts.includes('')) return '1'
  const found = ['0']
  for (let start = 0; start < parts.length; start += soughtTextsMax)
    found.push(`multiSearchAny(${text}, ${params.list('String', parts.slice(start, start + soughtTextsMax))})`)
  return `(${found.join(' OR ')})`
}

/**
 * The truth value that a boolean-like condition value requires; null for a value that is compared as text. Decides this in
 * the same way as `match-property.ts`.
 */
function readWantedTruth({ value, matchingVersion }: Condition): boolean | null {
  if (Array.isArray(value) && value.length === 0) return true
  return matchingVersion === 1 && isBooleanLike(value) ? isTruthy(value) : null
}

/** SQL that is 1 for a true value. A list is true when every element, also of nested lists, is true. */
function isTruthySql(text: string, type: string): string {
  return `(lower(${text}) = 'true' OR ${type} = 'Array' AND match(${text}, '^(?i:[][,]|true|"true")*$'))`
}

function isBooleanLike(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isBooleanLike)
  return typeof value === 'boolean' || (typeof value === 'string' && /^(?:true|false)$/i.test(value))
}

function isTruthy(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.every(isTruthy)
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true')
}

/**
 * SQL that is 1 or 0. If the pattern or the text exceeds the limits for flags, the result is 0 for both values of `wanted`.
 */
function matchRegexSql(pattern: string, wanted: boolean, text: string, params: QueryParams): string {
  const regex = compileFlagRegex(pattern)
  if (!regex.ok) return '0'
  const { re2Pattern, textCharsMax } = regex.value
  const isShort = [`length(${text}) <= ${subjectBytesMax}`]
  if (textCharsMax < subjectBytesMax)
    isShort.push(`lengthUTF8(${text}) + countMatches(${text}, '[\\\\x{10000}-\\\\x{10FFFF}]') <= ${textCharsMax}`)
  return `${isShort.join(' AND ')} AND match(${text}, ${params.text(`(?-s)${re2Pattern}`)}) = ${wanted ? 1 : 0}`
}

/** SQL of a comparison of numbers; undefined for an operator that does not compare numbers. */
function compareNumberSql(
  { operator, value }: Condition,
  access: PropertyAccess,
  params: QueryParams,
): string | undefined {
  const comparison = comparisons[operator]
  if (comparison !== undefined) {
    const bound = toNumber(value)
    return bound === null ? '0' : `ifNull(${buildNumberSql(access)} ${comparison} ${params.number(bound)}, 0)`
  }
  if (operator !== 'between' && operator !== 'not_between') return undefined
  if (!Array.isArray(value) || value.length !== 2) return '0'
  const [min, max] = [toNumber(value[0]!), toNumber(value[1]!)]
  if (min === null || max === null || !(min <= max)) return '0'
  const own = buildNumberSql(access)
  const isWithin = `(${own} >= ${params.number(min)} AND ${own} <= ${params.number(max)})`
  return `ifNull(NOT isNaN(${own}) AND ${isWithin} = ${operator === 'between' ? 1 : 0}, 0)`
}

const comparisons: Readonly<Record<string, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

const numberDigits = 20
const numbersLength = 3 * numberDigits

/**
 * SQL of a comparison of versions, which is 1 or 0 with the same results as `core/flags/match/match-semver.ts`. A version
 * becomes a text that sorts like it: three numbers of 20 digits, then `~` for a release or `-` and the identifiers of a
 * pre-release, then those of the build.
 */
function compareVersionSql(
  operator: SemverOperator,
  filterText: string,
  access: PropertyAccess,
  params: QueryParams,
): string {
  const test = readVersionTest(operator, filterText)
  if (test === null) return '0'
  const own = versionSql(access)
  const ownNumbers = `substring(${own}, 1, ${numbersLength})`
  const isRelease = `substring(${own}, ${numbersLength + 1}, 1) = '~'`
  if (test.kind === 'order')
    return `(${own} != '' AND ${own} ${test.comparison} ${params.text(toSortableVersion(test.filter))})`
  if (test.kind === 'numbers')
    return `(startsWith(${own}, ${params.text(toSortableNumbers(test.numbers))}) AND ${isRelease})`
  const { filter, end } = test
  const from = params.text(toSortableNumbers([filter.major, filter.minor, filter.patch]))
  return `(${ownNumbers} < ${params.text(toSortableNumbers([end.major, end.minor, end.patch]))}
    AND (${ownNumbers} > ${from} AND ${isRelease}
      OR ${ownNumbers} = ${from} AND ${own} >= ${params.text(toSortableVersion({ ...filter, build: [] }))}))`
}

function toSortableVersion({ major, minor, patch, prerelease, build }: Semver): string {
  const tail = prerelease.length === 0 ? '~' : `-${toSortableIdentifiers(prerelease)}`
  return `${toSortableNumbers([major, minor, patch])}${tail}\x01${toSortableIdentifiers(build)}`
}

function toSortableNumbers(numbers: readonly bigint[]): string {
  return numbers.map(number => String(number).padStart(numberDigits, '0')).join('')
}

/** Writes the identifiers as a text that sorts like them: numbers before texts and by size; leading zeros break ties. */
function toSortableIdentifiers(identifiers: readonly string[]): string {
  return identifiers
    .map(text => {
      if (!/^[0-9]+$/.test(text)) return `1${text}`
      const digits = text.replace(/^0+/, '')
      return `0${String(digits.length).padStart(4, '0')}${digits}${String(text.length).padStart(4, '0')}`
    })
    .join('\x02')
}

const identifiers = '[0-9A-Za-z-]+(?:[.][0-9A-Za-z-]+)*'
const versionForm =
  `^v?${blanks}*([0-9]{1,40})(?:[.]([0-9]{1,40}))?(?:[.]([0-9]{1,40}))?` +
  `(?:-(${identifiers}))?(?:[+](${identifiers}))?${blanks}*$`

/** SQL of a version as a text that sorts like it; '' for a text that is not a version. */
function versionSql({ text, name }: PropertyAccess): string {
  const isValid = `notEmpty(parts) AND lengthUTF8(${text}) <= 1000 AND arrayAll(digits -> length(digits) <= ${numberDigits}, numbers)
    AND arrayAll(digits -> leftPad(digits, ${numberDigits}, '0') <= '18446744073709551615', numbers)
    AND NOT match(parts[4], '(^|[.])0[0-9]+([.]|$)')`
  const key = `concat(arrayStringConcat(arrayMap(digits -> leftPad(digits, ${numberDigits}, '0'), numbers)),
    if(parts[4] = '', '~', concat('-', ${identifiersSql('parts[4]')})), '\\x01', ${identifiersSql('parts[5]')})`
  const numbers = `arrayMap(digits -> trim(LEADING '0' FROM digits), arraySlice(parts, 1, 3))`
  const own = bindValueInSql(numbers, 'numbers', `if(${isValid}, ${key}, '')`)
  return name(bindValueInSql(`extractGroups(${text}, '${versionForm}')`, 'parts', own))
}

function identifiersSql(text: string): string {
  const digits = `trim(LEADING '0' FROM part)`
  const length = (sql: string) => `leftPad(toString(length(${sql})), 4, '0')`
  return `arrayStringConcat(arrayMap(part -> if(match(part, '^[0-9]+$'),
    concat('0', ${length(digits)}, ${digits}, ${length('part')}), concat('1', part)),
    if(${text} = '', [], splitByChar('.', ${text}))), '\\x02')`
}
