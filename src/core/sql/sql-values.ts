// Placeholders: `{name}` as in HogQL, or `{name:Type}` as in ClickHouse. Values are sent along with the query as
// parameters, so that no value becomes SQL.

import { getOwnValue, isRawNumber, type JsonObject, type JsonValue } from '../json.ts'
import { err, ok, type Result } from '../result.ts'
import type { CheckedSql } from './check-sql.ts'
import { isSymbol, type SqlRefusal, type SqlToken } from './sql-tokens.ts'

export type SqlParam = string | number | bigint | boolean | readonly (string | number | bigint | boolean)[]

export interface SqlWithParams {
  /** The SQL, in which every placeholder now has a type. */
  readonly sql: string
  readonly params: Readonly<Record<string, SqlParam>>
}

/** Splits a list, or the characters of a text, into parts that the server accepts as one parameter each. */
export type SplitParam = <Item>(items: Iterable<Item>, charsOf: (item: Item) => number) => Item[][]

/**
 * @param values null: the client sends typed parameters itself, as ClickHouse's own clients do.
 * @param split when absent, each value is one parameter however long it is.
 */
export function bindValues(
  { sql, tokens }: Pick<CheckedSql, 'sql' | 'tokens'>,
  values: JsonObject | null,
  split?: SplitParam,
): Result<SqlWithParams, SqlRefusal> {
  const params: Record<string, SqlParam> = {}
  const typed = new Map<string, TypedParam | null>()
  const joinedOf = new Map<string, string | null>()
  let bound = ''
  let copiedTo = 0
  for (const [index, open] of tokens.entries()) {
    if (!isSymbol(open, '{')) continue
    const [name, after] = [tokens[index + 1], tokens[index + 2]]
    if (name?.kind !== 'word' || after === undefined) continue // a map, {'a': 1}
    const closeAt = findClosingBrace(tokens, index)
    const close = tokens[closeAt]
    if (isSymbol(after, ':') && isSymbol(close, '}')) {
      const typeTokens = tokens.slice(index + 3, closeAt).filter(({ kind }) => kind !== 'symbol')
      if (typeTokens.some(({ text }) => text.toLowerCase() === 'identifier'))
        return err({ at: open.at, detail: 'A placeholder cannot replace a name: write the name itself.' })
      if (values === null) continue
    } else if (!isSymbol(after, '}')) {
      return err({
        at: open.at,
        detail: `{${name.text}…} is not supported: a placeholder is {name} or {name:Type}.`,
      })
    }
    if (values === null)
      return err({ at: open.at, detail: `Write {${name.text}:Type}, with the type of the parameter.` })
    const value = Object.hasOwn(values, name.text) ? getOwnValue(values, name.text)! : undefined
    if (value === undefined) return err({ at: open.at, detail: `Missing value for {${name.text}} in \`values\`.` })
    if (value === null) {
      bound += `${sql.slice(copiedTo, open.at)}NULL`
      copiedTo = close!.end
      continue
    }
    const param = resolveParam(name.text, value)
    if (param === null)
      return err({
        at: open.at,
        detail: `The value of {${name.text}} must be a string, number, true, false, null, or a list of values of one of these types.`,
      })
    const type = isSymbol(after, '}') ? param.type : sql.slice(after.end, close!.at).trim()
    const joined = joinParts(name.text, param.value, type)
    if (joined !== null) {
      bound += `${sql.slice(copiedTo, open.at)}${joined}`
      copiedTo = close!.end
      continue
    }
    params[name.text] = param.value
    if (isSymbol(after, '}')) {
      bound += `${sql.slice(copiedTo, name.end)}:${param.type}`
      copiedTo = name.end
    }
  }
  return ok({ sql: bound + sql.slice(copiedTo), params })

  // Each value is converted once, since a query may use a long value in thousands of places.
  function resolveParam(name: string, value: JsonValue): TypedParam | null {
    const known = typed.get(name)
    const param = known === undefined ? toTypedParam(value) : known
    typed.set(name, param)
    return param
  }

  /** SQL that joins a long value from parts; null for a value that is a single parameter. */
  function joinParts(name: string, value: SqlParam, type: string): string | null {
    const key = `${name}:${type}`
    const known = joinedOf.get(key)
    if (known !== undefined) return known
    const parts = split === undefined ? [value] : splitValue(value, type, split)
    let joined: string | null = null
    if (parts.length > 1) {
      const placeholders = parts.map((part, number) => {
        let partName = `${name}_${number}`
        while (Object.hasOwn(values!, partName) || Object.hasOwn(params, partName)) partName += '_'
        params[partName] = part
        return `{${partName}:${type}}`
      })
      joined = `${type === 'String' ? 'concat' : 'arrayConcat'}(${placeholders.join(', ')})`
    }
    joinedOf.set(key, joined)
    return joined
  }
}

function splitValue(value: SqlParam, type: string, split: SplitParam): readonly SqlParam[] {
  if (typeof value === 'string' && type === 'String')
    return split(value, character => character.length).map(characters => characters.join(''))
  if (!Array.isArray(value) || !type.startsWith('Array(')) return [value]
  return split(value as readonly string[], item => String(item).length + quotesAndCommaChars)
}

const quotesAndCommaChars = 4

/** @returns the index of the next brace after `open`; if that is another opening brace, the first is never closed. */
function findClosingBrace(tokens: readonly SqlToken[], open: number): number {
  let close = open + 1
  while (close < tokens.length && !isSymbol(tokens[close], '}') && !isSymbol(tokens[close], '{')) close++
  return close
}

interface TypedParam {
  readonly type: string
  readonly value: SqlParam
}

function toTypedParam(value: JsonValue): TypedParam | null {
  if (!Array.isArray(value)) return toTypedScalar(value)
  const items = value.map(toTypedScalar)
  if (items.some(item => item === null)) return null
  const type = findCommonType(new Set(items.map(item => item!.type)))
  return type === null ? null : { type: `Array(${type})`, value: items.map(item => item!.value) }
}

/** The common type of a list's values; null when there is none. An empty list may be of any type. */
function findCommonType(types: ReadonlySet<string>): string | null {
  if (types.size <= 1) return [...types][0] ?? 'String'
  const isEach = (...names: readonly string[]) => [...types].every(type => names.includes(type))
  // Int128 can represent all values of Int64 and UInt64; a Float64 would round large values to their neighbours.
  if (isEach('Int64', 'UInt64')) return 'Int128'
  return isEach('Int64', 'UInt64', 'Float64') ? 'Float64' : null
}

function toTypedScalar(value: JsonValue): { type: string; value: string | number | bigint | boolean } | null {
  if (typeof value === 'string') return { type: 'String', value }
  if (typeof value === 'boolean') return { type: 'Bool', value }
  if (typeof value === 'number')
    return { type: Number.isSafeInteger(value) ? 'Int64' : 'Float64', value: Object.is(value, -0) ? 0 : value }
  if (!isRawNumber(value)) return null
  const literal = value.rawJSON
  if (!/^-?\d+$/.test(literal)) return { type: 'Float64', value: Number(literal) }
  const integer = BigInt(literal)
  if (integer >= -(2n ** 63n) && integer < 2n ** 63n) return { type: 'Int64', value: integer }
  return integer > 0n && integer < 2n ** 64n
    ? { type: 'UInt64', value: integer }
    : { type: 'Float64', value: Number(literal) }
}
