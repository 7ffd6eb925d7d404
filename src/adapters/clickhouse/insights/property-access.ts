// SQL that reads a property of a JSON text, or a flag of an event. The engine's reader of JSON differs from ours in
// corners: it cannot read some texts at all (a number beyond 64 bits, half a surrogate pair), writes numbers its own way
// (`1.0` as 1), and takes the first of two equal keys where we take the last. Here is what it reads like we do; for the
// rest, `residualTags` gives what Node has to look at.

import type { QueryParams } from './query-params.ts'

export interface PropertyAccess {
  /** SQL that is true when there is such a property. */
  readonly isPresent: string
  /** SQL of the value's text, in the form of docs/wire/evaluation.md 0. Not valid for values that are left to Node. */
  readonly text: string
  /** The same for breakdowns, where numbers are written by value (`1.0` as 1, `-0.0` as 0); '' when absent or null. */
  readonly shown: string
  /** SQL of the type: `String`, `Int64`, `UInt64`, `Double`, `Bool`, `Null`, `Array` or `Object`. */
  readonly type: string
  /** SQL of the number that a JSON number is. */
  readonly number: string
  /** SQL that is true where the engine's reading cannot be used at all. */
  readonly isUnreadable: string
  /** SQL that is true where a number may have been written in a form that the engine does not keep. */
  readonly mayLoseLiteral: string
  /** SQL of the text from which Node decides: the value as the engine writes it, or the whole JSON text. */
  readonly residualValue: string
  /** The same for a value of type `Double`. */
  readonly residualDouble: string
  readonly residualText: string
}

/** The first character of each text from which Node decides. */
export const residualTags = { value: 'v', double: 'd', text: 't' } as const

/** Names an SQL expression in the query under construction and returns the name; equal expressions share one name. */
export type NameSql = (sql: string) => string

/** @param column SQL of a JSON object's text. */
export function accessJsonProperty(column: string, key: string, params: QueryParams, name: NameSql): PropertyAccess {
  const keyParam = params.text(key)
  const raw = name(`JSONExtractRaw(${column}, ${keyParam})`)
  const type = name(`toString(JSONType(${column}, ${keyParam}))`)
  const string = `JSONExtractString(${column}, ${keyParam})`
  const quoted = params.text(JSON.stringify(key))
  // Nearly every text has the key once, and finding that out is cheap.
  const isRepeated = `(countSubstrings(${column}, ${quoted}) > 1 OR position(${column}, '\\u') > 0)
    AND countEqual(JSONExtractKeys(${column}), ${keyParam}) > 1`
  return {
    isPresent: `${raw} != ''`,
    text: name(`if(${type} = 'String', ${string}, ${raw})`),
    shown: `multiIf(${type} = 'String', ${string}, ${type} = 'Null', '', ${raw} = '-0', '0', ${raw})`,
    type,
    number: `JSONExtractFloat(${column}, ${keyParam})`,
    isUnreadable: name(`if(${raw} = '', NOT isValidJSON(${column}), ${isRepeated})`),
    mayLoseLiteral: `match(${column}, '-0|[0-9][.eE]')`,
    residualValue: `concat('${residualTags.value}', ${raw})`,
    residualDouble: `concat('${residualTags.double}', ${raw})`,
    residualText: `concat('${residualTags.text}', ${column})`,
  }
}

/** The column `flag_set` of an event whose flags are too many for it; no other event has this. */
export const wideFlagSet = '&&'

/**
 * A flag's value, which is always a text.
 * @param flag the property's name, with `$feature/`.
 * @param readsMap whether the values of some events are in the map alone, which takes several times as long to read.
 */
export function accessFlag(flag: string, readsMap: boolean, params: QueryParams, name: NameSql): PropertyAccess {
  const encoded = `concat('&', encodeURLComponent(${params.text(flag)}), '=')`
  const found = `extract(flag_set, concat(regexpQuoteMeta(${encoded}), '([^&]*)&'))`
  const value = `decodeURLComponent(${found})`
  const isPresent = `position(flag_set, ${encoded}) > 0`
  if (!readsMap) return accessText(name(value), isPresent)
  const orInMap = (inSet: string, inMap: string) => `if(flag_set = '${wideFlagSet}', ${inMap}, ${inSet})`
  return accessText(
    name(orInMap(value, `flags[${params.text(flag)}]`)),
    orInMap(isPresent, `mapContains(flags, ${params.text(flag)})`),
  )
}

/** A column, or other SQL, of a text. */
export function accessText(text: string, isPresent: string): PropertyAccess {
  return {
    ...{ isPresent, text, shown: text, type: `'String'`, number: '0.', isUnreadable: '0', mayLoseLiteral: '0' },
    residualValue: `concat('${residualTags.value}', toJSONString(toString(${text})))`,
    residualDouble: `''`,
    residualText: `''`,
  }
}
