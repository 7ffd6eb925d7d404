// Which texts can be the distinct id of a person. Source: docs/wire/import.md §1.0.

import { isRawNumber, type JsonValue } from '#core/json.ts'
import { RecordReject } from './imported-event.ts'
import { isEmptyValue, isLongerThan } from './record-fields.ts'

/** In characters, as the service counts them. */
const distinctIdLengthMax = 200

const illegalInAnyCase = new Set(
  'anonymous guest distinctid distinct_id id not_authenticated email undefined true false'.split(' '),
)
const illegalAsWritten = new Set(['[object Object]', 'NaN', 'None', 'none', 'null', '0'])
/** Nearly all ids have another length, and need no comparing. */
const illegalLengths = new Set([...illegalInAnyCase, ...illegalAsWritten].map(({ length }) => length))
/** What Mixpanel's own import refuses too. */
export const illegalForMixpanel: ReadonlySet<string> = new Set(
  '00000000-0000-0000-0000-000000000000 anon nil n/a na unknown <nil> -1 [] {}'.split(' '),
)

export interface IdCandidate {
  readonly value: JsonValue | undefined
  /** The path of the field in the source record. */
  readonly field: string
}

/** @returns the id as text: texts as they are, integers as decimal digits; null for everything else. */
export function idText(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value
  // A number beyond 2^53 that is none of the kept literals is exactly what was written: see `numberOrLiteral`.
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : null
  return isRawNumber(value) && /^-?\d+$/.test(value.rawJSON) ? value.rawJSON : null
}

/**
 * The id that a source gave an event, as text.
 * @returns null where it says nothing: a uuid made of that would make one event of all that have none.
 */
export function eventIdText(value: JsonValue | undefined): string | null {
  return isEmptyValue(value) ? null : idText(value)
}

export function isIllegalId(id: string, alsoIllegal?: ReadonlySet<string>): boolean {
  return (
    isEmptyValue(id) ||
    (illegalLengths.has(id.length) && (illegalAsWritten.has(id) || illegalInAnyCase.has(id.toLowerCase()))) ||
    (alsoIllegal?.has(id.toLowerCase()) ?? false)
  )
}

/** @returns the id, or null when it is absent or a text that means nobody. */
export function legalId(value: JsonValue | undefined, alsoIllegal?: ReadonlySet<string>): string | null {
  const id = idText(value)
  return id === null || isIllegalId(id, alsoIllegal) ? null : id
}

/**
 * The first legal candidate.
 * @param field what a reject names when no candidate is there at all.
 * @throws RecordReject `distinct_id_missing`, `distinct_id_too_long`.
 */
export function chooseId(candidates: readonly IdCandidate[], field: string, alsoIllegal?: ReadonlySet<string>): string {
  for (const { value } of candidates) {
    const id = legalId(value, alsoIllegal)
    if (id !== null) return checkedId(id)
  }
  throw new RecordReject('distinct_id_missing', field)
}

/** Whether the service would cut the id. */
export function isIdTooLong(id: string): boolean {
  return isLongerThan(id, distinctIdLengthMax)
}

/** @throws RecordReject `distinct_id_too_long`. */
export function checkedId(id: string): string {
  if (isIdTooLong(id)) throw new RecordReject('distinct_id_too_long', 'distinct_id')
  return id
}
