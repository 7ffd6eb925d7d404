// SQL of comparing versions, equal to `core/flags/match/match-semver.ts`. A version becomes a text that sorts like it:
// three numbers of 20 digits, then `~` for a release or `-` and the identifiers of a pre-release, then those of the build.

import { readVersionTest, type Semver, type SemverOperator } from '#core/flags/match/match-semver.ts'
import { blanks, type PropertyAccess, withValue } from './property-access.ts'
import type { QueryParams } from './query-params.ts'

const numberDigits = 20
const numbersLength = 3 * numberDigits

/** SQL of 1 or 0. */
export function compareVersionSql(
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
  if (test.kind === 'order') return `(${own} != '' AND ${own} ${test.comparison} ${params.text(sortText(test.filter))})`
  if (test.kind === 'numbers') return `(startsWith(${own}, ${params.text(numbersText(test.numbers))}) AND ${isRelease})`
  const { filter, end } = test
  const from = params.text(numbersText([filter.major, filter.minor, filter.patch]))
  return `(${ownNumbers} < ${params.text(numbersText([end.major, end.minor, end.patch]))}
    AND (${ownNumbers} > ${from} AND ${isRelease}
      OR ${ownNumbers} = ${from} AND ${own} >= ${params.text(sortText({ ...filter, build: [] }))}))`
}

function sortText({ major, minor, patch, prerelease, build }: Semver): string {
  const tail = prerelease.length === 0 ? '~' : `-${identifiersText(prerelease)}`
  return `${numbersText([major, minor, patch])}${tail}\x01${identifiersText(build)}`
}

function numbersText(numbers: readonly bigint[]): string {
  return numbers.map(number => String(number).padStart(numberDigits, '0')).join('')
}

/** Numbers come before texts, in the order of their size; leading zeros break ties. */
function identifiersText(identifiers: readonly string[]): string {
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

/** '' for a text that is no version. */
function versionSql({ text, name }: PropertyAccess): string {
  const isValid = `notEmpty(parts) AND lengthUTF8(${text}) <= 1000 AND arrayAll(digits -> length(digits) <= ${numberDigits}, numbers)
    AND arrayAll(digits -> leftPad(digits, ${numberDigits}, '0') <= '18446744073709551615', numbers)
    AND NOT match(parts[4], '(^|[.])0[0-9]+([.]|$)')`
  const key = `concat(arrayStringConcat(arrayMap(digits -> leftPad(digits, ${numberDigits}, '0'), numbers)),
    if(parts[4] = '', '~', concat('-', ${identifiersSql('parts[4]')})), '\\x01', ${identifiersSql('parts[5]')})`
  const numbers = `arrayMap(digits -> trim(LEADING '0' FROM digits), arraySlice(parts, 1, 3))`
  const own = withValue(numbers, 'numbers', `if(${isValid}, ${key}, '')`)
  return name(withValue(`extractGroups(${text}, '${versionForm}')`, 'parts', own))
}

function identifiersSql(text: string): string {
  const digits = `trim(LEADING '0' FROM part)`
  const length = (sql: string) => `leftPad(toString(length(${sql})), 4, '0')`
  return `arrayStringConcat(arrayMap(part -> if(match(part, '^[0-9]+$'),
    concat('0', ${length(digits)}, ${digits}, ${length('part')}), concat('1', part)),
    if(${text} = '', [], splitByChar('.', ${text}))), '\\x02')`
}
