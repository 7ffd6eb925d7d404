// Which texts can be the distinct id of a person. Source: docs/wire/import.md §1.0.

import { isRawNumber, type JsonValue } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { isEmptyValue, isLongerThanCharacters } from './record-fields.ts'

/** The longest distinct id that can be sent, in characters as the service counts them. */
const distinctIdLengthMax = 200

const illegalInAnyCase = new Set(
  'anonymous guest distinctid distinct_id id not_authenticated email undefined true false'.split(' '),
)
const illegalAsWritten = new Set(['[object Object]', 'NaN', 'None', 'none', 'null', '0'])
/** Nearly all ids have a length that no illegal id has, so they skip the comparison of texts. */
const illegalLengths = new Set([...illegalInAnyCase, ...illegalAsWritten].map(({ length }) => length))
/** Ids that Mixpanel's own import refuses too. */
export const illegalForMixpanel: ReadonlySet<string> = new Set(
  '00000000-0000-0000-0000-000000000000 anon nil n/a na unknown <nil> -1 [] {}'.split(' '),
)

/** @returns a text unchanged, an integer as its decimal digits; null for everything else. */
export function toIdText(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value
  // Even beyond 2^53, a plain number is exact: inexact numbers are kept as literals (see `parseNumberOrLiteral`).
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : null
  return isRawNumber(value) && /^-?\d+$/.test(value.rawJSON) ? value.rawJSON : null
}

/**
 * The source's id of an event, as text.
 * @returns null for an empty value: a uuid derived from it would merge all events without an id into one.
 */
export function toEventIdText(value: JsonValue | undefined): string | null {
  return isEmptyValue(value) ? null : toIdText(value)
}

export function isIllegalId(id: string, alsoIllegal?: ReadonlySet<string>): boolean {
  return (
    isEmptyValue(id) ||
    (illegalLengths.has(id.length) && (illegalAsWritten.has(id) || illegalInAnyCase.has(id.toLowerCase()))) ||
    (alsoIllegal?.has(id.toLowerCase()) ?? false)
  )
}

/** @returns the id; null when it is absent or a placeholder such as `anonymous`. */
export function toLegalId(value: JsonValue | undefined, alsoIllegal?: ReadonlySet<string>): string | null {
  const id = toIdText(value)
  return id === null || isIllegalId(id, alsoIllegal) ? null : id
}

/**
 * @param field the field that the reject names when there is no id.
 * @throws RecordReject `distinct_id_missing`, `distinct_id_too_long`.
 */
export function requireDistinctId(id: string | null, field = 'distinct_id'): string {
  if (id === null) throw new RecordReject('distinct_id_missing', field)
  return checkIdLength(id)
}

/** Whether the service would truncate the id. */
export function isIdTooLong(id: string): boolean {
  return isLongerThanCharacters(id, distinctIdLengthMax)
}

/** @throws RecordReject `distinct_id_too_long`. */
export function checkIdLength(id: string): string {
  if (isIdTooLong(id)) throw new RecordReject('distinct_id_too_long', 'distinct_id')
  return id
}
