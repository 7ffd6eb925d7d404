// SQL that reads a property of a JSON text, or a flag of an event, with the engine's own functions. The differences from
// our own parser are listed in docs/wire/private-api.md 11.1.

import type { QueryParams } from './query-params.ts'

export interface PropertyAccess {
  /** SQL that is true when the property exists. */
  readonly isPresent: string
  /** SQL of the value's text, in the form of docs/wire/evaluation.md 0. */
  readonly text: string
  /** SQL of the text in breakdowns, where equal numbers have one text (`1.0` as 1, `-0.0` as 0); '' when absent or null. */
  readonly shown: string
  /** SQL of the type: `String`, `Int64`, `UInt64`, `Double`, `Bool`, `Null`, `Array` or `Object`. */
  readonly type: string
  /** SQL of the value of a JSON number. */
  readonly number: string
  readonly name: NameSql
}

/** Names an SQL expression in the query under construction and returns the name; equal expressions share one name. */
export type NameSql = (sql: string) => string

/** @param column SQL of a JSON object's text. */
export function buildJsonPropertyAccess(
  column: string,
  key: string,
  params: QueryParams,
  name: NameSql,
): PropertyAccess {
  const keyParam = params.text(key)
  const raw = name(`JSONExtractRaw(${column}, ${keyParam})`)
  const type = name(`toString(JSONType(${column}, ${keyParam}))`)
  const string = `JSONExtractString(${column}, ${keyParam})`
  return {
    isPresent: `${raw} != ''`,
    text: name(`if(${type} = 'String', ${string}, ${raw})`),
    shown: `multiIf(${type} = 'String', ${string}, ${type} = 'Null', '', ${raw} = '-0', '0', ${raw})`,
    type,
    number: `JSONExtractFloat(${column}, ${keyParam})`,
    name,
  }
}

/** The value of the column `flag_set` for an event with too many flags for that column; no other event has this value. */
export const wideFlagSet = '&&'

/**
 * Accesses a flag's value, which is always a text.
 * @param flag the property's name, with `$feature/`.
 * @param readsMap whether to read also the map `flags`, which alone has the value for some events; it takes several times
 * as long to read.
 */
export function buildFlagAccess(flag: string, readsMap: boolean, params: QueryParams, name: NameSql): PropertyAccess {
  const encoded = `concat('&', encodeURLComponent(${params.text(flag)}), '=')`
  const found = `extract(flag_set, concat(regexpQuoteMeta(${encoded}), '([^&]*)&'))`
  const value = `decodeURLComponent(${found})`
  const isPresent = `position(flag_set, ${encoded}) > 0`
  if (!readsMap) return buildTextAccess(name(value), isPresent, name)
  const orInMap = (inSet: string, inMap: string) => `if(flag_set = '${wideFlagSet}', ${inMap}, ${inSet})`
  return buildTextAccess(
    name(orInMap(value, `flags[${params.text(flag)}]`)),
    orInMap(isPresent, `mapContains(flags, ${params.text(flag)})`),
    name,
  )
}

/** Accesses a text. @param text a column or other SQL. */
export function buildTextAccess(text: string, isPresent: string, name: NameSql): PropertyAccess {
  return { isPresent, text, shown: text, type: `'String'`, number: '0.', name }
}

/**
 * Gives a value a name within one SQL expression, so that the value is computed once. An alias would be computed wherever
 * it is used.
 */
export function bindValueInSql(value: string, name: string, sql: string): string {
  return `arrayMap(${name} -> ${sql}, [${value}])[1]`
}

/**
 * A character class of the blanks that may surround a date or a version: the characters that JavaScript's `trim` removes.
 */
export const blanks =
  '[\\\\t-\\\\r \\\\x{a0}\\\\x{1680}\\\\x{2000}-\\\\x{200a}\\\\x{2028}\\\\x{2029}\\\\x{202f}\\\\x{205f}\\\\x{3000}\\\\x{feff}]'

/** Texts of numbers short enough that the engine reads them exactly. */
const plainNumber = '^[+-]?[0-9]{1,15}([.][0-9]{1,15})?$'
/** All texts that count as numbers. Source: docs/wire/evaluation.md 5.9. */
const numberForm = '^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$'
const numberWord = '^[+-]?(?i:inf|infinity|nan)$'

/** SQL of a double: the value of a JSON number, or of a text that means a number; NULL for anything else. */
export function buildNumberSql({ type, text, number, name }: PropertyAccess): string {
  // The engine parses long numbers exactly only in JSON, so this writes a JSON number, which must begin and end with a
  // digit.
  const json = `replaceRegexpOne(replaceRegexpOne(${text}, '^[+]?(-?)', '\\\\10'),
    '^(-?)0*([0-9]+)(?:[.]([0-9]*))?([eE].*)?$', '\\\\1\\\\2.\\\\30\\\\4')`
  const inexact = `toFloat64OrNull(trim(LEADING '+' FROM ${text}))`
  const exact = bindValueInSql(json, 'json', `if(JSONType(json) = 'Double', JSONExtractFloat(json), ${inexact})`)
  return name(`multiIf(${type} IN ('Int64', 'UInt64', 'Double'), toNullable(${number}), ${type} != 'String', NULL,
    match(${text}, '${plainNumber}'), ${inexact}, match(${text}, '${numberForm}'), ${exact},
    match(${text}, '${numberWord}'),
      multiIf(match(${text}, '[aA]'), nan, startsWith(${text}, '-'), -inf, inf), NULL)`)
}
