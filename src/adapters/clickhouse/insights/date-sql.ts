// SQL that parses a property's value as a date and compares it, with the same results as `core/flags/match/match-date.ts`.

import { parseDateFilter } from '#core/flags/match/match-date.ts'
import type { JsonValue } from '#core/json.ts'
import { bindValueInSql, blanks, buildNumberSql, type PropertyAccess } from './property-access.ts'
import type { QueryParams } from './query-params.ts'

export interface DateContext {
  readonly timezone: string
  /** The time, in epoch ms, from which relative dates such as `-7d` count. */
  readonly nowMs: number
}

const comparisons: Readonly<Record<string, string>> = { is_date_before: '<', is_date_after: '>', is_date_exact: '=' }

/** SQL of 1 or 0. */
export function buildDateComparisonSql(
  operator: string,
  value: JsonValue,
  access: PropertyAccess,
  { timezone, nowMs }: DateContext,
  params: QueryParams,
): string {
  const filter = parseDateFilter(value, timezone)
  const bound = filter?.kind === 'relative' ? filter.at(nowMs) : filter?.instant
  if (bound === undefined || bound === null) return '0'
  return `ifNull(${instantSql(access, timezone, params)} ${comparisons[operator]} toInt128('${bound}'), 0)`
}

/** SQL of epoch nanoseconds; NULL for a value that is not a date. */
function instantSql(access: PropertyAccess, timezone: string, params: QueryParams): string {
  const { type, text, name } = access
  const ofText = bindValueInSql(`extractGroups(${text}, '${dateForm}')`, 'parts', instantOfPartsSql(timezone, params))
  const plain = `'^[+]?([0-9]+)(?:[.]([0-9]*))?$'`
  const seconds = bindValueInSql(
    buildNumberSql(access),
    'own',
    `multiIf(isNaN(own), 0, abs(own) > ${secondsMax}, NULL, own)`,
  )
  const ofNumber = bindValueInSql(
    seconds,
    'seconds',
    bindValueInSql(
      `extractGroups(${text}, ${plain})`,
      'digits',
      `multiIf(isNull(seconds), NULL, seconds < 0, toInt128(floor(seconds)) * 1000000000,
        notEmpty(digits), toInt128OrNull(digits[1]) * 1000000000 + ${fractionSql('digits[2]')},
        toInt128(floor(seconds)) * 1000000000 + toInt128(floor((seconds - floor(seconds)) * 1e9 + 0.5)))`,
    ),
  )
  return name(`if(${type} = 'String' AND match(${text}, '^${blanks}*[0-9]{4}-'), ${ofText}, ${ofNumber})`)
}

const dateForm =
  `^${blanks}*([0-9]{4})(-[0-9]{2}-[0-9]{2})` +
  `(?:[Tt ]([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:[.]([0-9]+))?)?(?: ?((?i:Z|UTC|GMT)|[+-][0-9]{2}(?::?[0-9]{2})?))?)?${blanks}*$`

/** The largest number of seconds, positive or negative, that counts as a date, as in `match-date.ts`. */
const secondsMax = '8.21e12'
const secondsOf400Years = 12_622_780_800

/** SQL of the epoch nanoseconds that `parts` (the groups of `dateForm`) mean; NULL when they are not a date. */
function instantOfPartsSql(timezone: string, params: QueryParams): string {
  // The engine supports the years 1900 to 2299, and the calendar repeats after 400 years.
  const cycles = `intDiv(toInt64OrZero(parts[1]) - 1900 + 2000, 400) - 5`
  const year = `toString(toInt64OrZero(parts[1]) - 400 * (${cycles}))`
  const orZero = (part: string, zero: string) => `if(${part} = '', '${zero}', ${part})`
  const wall = `concat(${year}, parts[2], ' ', ${orZero('parts[3]', '00:00')}, ${orZero('substring(parts[4], 1, 3)', ':00')}, '.000')`
  // Yields NULL for a time that does not exist, such as 30 February or a time that a clock change skips: the engine parses
  // it as another time, whose text differs.
  const secondsIn = (zone: string) =>
    bindValueInSql(`toDateTime64OrNull(wall, 3, ${zone})`, 'time', 'if(toString(time) = wall, toInt64(time), NULL)')
  const offset = bindValueInSql(
    `extractAll(parts[6], '[0-9]{2}')`,
    'digits',
    `if(digits[1] > '23' OR digits[2] > '59', NULL,
      if(startsWith(parts[6], '-'), -60, 60) * (toInt64OrZero(digits[1]) * 60 + toInt64OrZero(digits[2])))`,
  )
  const zoned = `${secondsIn(`'UTC'`)} - ${offset}`
  const local = `if(parts[6] = '', ${secondsIn(params.text(timezone))}, ${zoned})`
  const seconds = bindValueInSql(wall, 'wall', timezone === 'UTC' ? zoned : local)
  return `if(empty(parts), NULL, toInt128(${seconds} + (${cycles}) * ${secondsOf400Years}) * 1000000000
    + ${fractionSql('parts[5]')})`
}

function fractionSql(digits: string): string {
  return `toInt128(rightPad(substring(${digits}, 1, 9), 9, '0'))`
}
