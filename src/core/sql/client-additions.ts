// Removes what ClickHouse clients add to a query by default, before the query is checked: the schema before the name of a
// view, settings, and EXPLAIN. They are not simply refused, because a client whose setting is refused does not connect at
// all.

import { isSymbol, type SqlToken, tokenizeSql } from './sql-tokens.ts'

/** Schemas to remove: drivers without a configured database send `default`, users write `pennon`. */
const schemas = new Set(['default', 'pennon'])
const views = new Set(['events', 'persons', 'groups', 'flag_calls'])

const noPlan = "SELECT 'Plans are not shown here; the query was not run.' AS explain"

/** @returns the text unchanged when it cannot be split into tokens; the check of the query then reports why. */
export function stripClientAdditions(sql: string): string {
  const read = tokenizeSql(sql)
  if (!read.ok) return sql
  const tokens = read.value
  if (isWord(tokens[0], 'explain')) return noPlan
  let plain = ''
  let copiedTo = 0
  const removeRange = (from: number, to: number) => {
    plain += sql.slice(copiedTo, from)
    copiedTo = to
  }
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!
    if (isSymbol(tokens[index - 1], '.')) continue
    if (isSchemaOfView(tokens, index)) removeRange(token.at, tokens[index + 2]!.at)
    if (isWord(tokens[0], 'show') && isInSchema(tokens, index)) removeRange(token.at, tokens[index + 1]!.end)
    const settingsEnd = isWord(token, 'settings') ? findSettingsEnd(tokens, index) : index
    if (settingsEnd === index) continue
    removeRange(token.at, tokens[settingsEnd - 1]!.end)
    index = settingsEnd - 1
  }
  return plain + sql.slice(copiedTo)
}

function isSchemaOfView(tokens: readonly SqlToken[], index: number): boolean {
  const [schema, dot, view] = tokens.slice(index, index + 3)
  return isName(schema, schemas) && isSymbol(dot, '.') && isName(view, views)
}

/** Whether `FROM pennon` begins here, without the name of a view after it. */
function isInSchema(tokens: readonly SqlToken[], index: number): boolean {
  const [from, schema, dot] = tokens.slice(index, index + 3)
  return (isWord(from, 'from') || isWord(from, 'in')) && isName(schema, schemas) && !isSymbol(dot, '.')
}

/**
 * @returns the index after `SETTINGS a = 1, b = 'x'`; the index of `SETTINGS` itself when no such list begins there.
 */
function findSettingsEnd(tokens: readonly SqlToken[], start: number): number {
  let index = start
  do {
    if (tokens[index + 1]?.kind !== 'word' || !isSymbol(tokens[index + 2], '=')) return start
    const valueStart = index + 3
    index = valueStart
    while (isPartOfValue(tokens[index])) index++
    if (index === valueStart) return start
  } while (isSymbol(tokens[index], ','))
  return index
}

/** Whether a token belongs to a setting's value: a text, a word such as `true`, or a character of a number: `-1.5e3`. */
function isPartOfValue(token: SqlToken | undefined): boolean {
  if (token === undefined) return false
  if (token.kind === 'symbol') return /^[\d.+-]$/.test(token.text)
  return (
    token.kind === 'string' || (token.kind === 'word' && !/^(?:format|union|intersect|except|into)$/i.test(token.text))
  )
}

function isName(token: SqlToken | undefined, names: ReadonlySet<string>): boolean {
  return (token?.kind === 'word' || token?.kind === 'quoted') && names.has(token.text)
}

function isWord(token: SqlToken | undefined, word: string): boolean {
  return token?.kind === 'word' && token.text.toLowerCase() === word
}
