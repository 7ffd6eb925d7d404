// Decides which SQL written by users is run. What a user may read is up to the engine's access rights; this check is
// about functions, which those rights do not cover: `file('…')` in the embedded engine would read any file that the
// process may read, and `eval('…')` would run text that was never checked. So a function must be listed by the engine,
// and must not reach outside the query.

import { ok, type Result } from '../result.ts'
import { type SqlRefusal, type SqlToken, tokenizeSql } from './sql-tokens.ts'

/** The engine's own functions, as `system.functions` lists them. */
export interface SqlFunctions {
  readonly names: ReadonlySet<string>
  /** The functions whose names may be written in any case, listed in lower case. */
  readonly anyCase: ReadonlySet<string>
  readonly aggregates: ReadonlySet<string>
  /** `If`, `Array` … that an aggregate function's name may end with. */
  readonly combinators: readonly string[]
}

export interface CheckedSql {
  /** The SQL without its final semicolon. */
  readonly sql: string
  readonly tokens: readonly SqlToken[]
  /** Whether the outermost query limits its rows. */
  readonly hasLimit: boolean
}

export const sqlLengthMax = 200_000

/** The words that a statement may begin with. `read` is for clients that also list tables and columns. */
const statements = {
  query: new Set(['select', 'with', '(']),
  read: new Set(['select', 'with', '(', 'show', 'describe', 'desc', 'exists']),
} as const

/**
 * Functions that only wait, or that reach outside the query: files, dictionaries, the server, its configuration and
 * network. Lower case.
 */
const outside =
  /^(?:file|catboostevaluate|evalmlmethod|dict(?:get|has|isin).*|joinget.*|region(?:to|in|hierarchy).*|ai(?:classify|generate|embed|extract|translate)|getserversetting|getmergetreesetting|getsetting.*|getmacro|getclienthttpheader|getserverport|tcpport|serveruuid|hostname|fullhostname|fqdn|getoskernelversion|filesystem.*|showcertificate|generateserialid|addressto.*|demangle|logtrace|tid|mergetreepartinfo|ismergetreepartcoveredby|transaction.*|zookeeper.*|hasthreadfuzzer|hascolumnintable|getmaxtablenamelengthfordatabase|sleep|sleepeachrow|globalvariable|uptime|connection_?id|executable|structureto.*|(?:current|enabled|default)(?:profiles|roles)|__.*|_.*)$/

/** Functions with which a query can crash the engine: this one recurses into nested JSON until the stack overflows. */
const fatal = /^jsonmergepatch$/

/** Table functions that generate rows. */
const tableFunctions = new Set(['numbers', 'numbers_mt', 'generateseries', 'generate_series'])

/** Words that are not functions although a parenthesis may follow them. */
const keywordsBeforeParenthesis = new Set(
  `all and any anti array as asof between by case cross cube distinct else end except exists filter from full global group
  grouping having if ilike in inner intersect interval is join lag lateral lead left like limit materialized not null
  nulls offset on or order outer over partition prewhere qualify replace right rollup select semi sets then totals union
  using when where window with within apply columns tuple fill step to rows range ignore respect`
    .split(/\s+/)
    .filter(Boolean),
)

/** Functions that the engine's parser turns into other functions and therefore does not list. Lower case. */
const parsedFunctions = new Set(
  `date_add dateadd date_sub datesub extract ltrim rtrim timestamp_add timestampadd timestamp_sub timestampsub trim untuple`.split(
    ' ',
  ),
)

/** Names of types that take arguments, so that a parenthesis may follow them. Lower case. */
const typeNames = new Set(
  'nullable lowcardinality datetime datetime64 time64 fixedstring decimal decimal32 decimal64 decimal128 decimal256 enum enum8 enum16 variant dynamic json nested'.split(
    ' ',
  ),
)

/** @param kind the statements that are allowed: see `statements`. */
export function checkSql(
  sql: string,
  functions: SqlFunctions,
  kind: keyof typeof statements,
): Result<CheckedSql, SqlRefusal> {
  if (sql.length > sqlLengthMax)
    return refuseSql(null, `The query has ${sql.length} characters; at most ${sqlLengthMax} are allowed.`)
  const read = tokenizeSql(sql)
  if (!read.ok) return read
  const tokens = read.value
  let end = sql.length
  while (tokens.at(-1)?.text === ';' && tokens.at(-1)!.kind === 'symbol') end = tokens.pop()!.at
  const first = tokens[0]
  if (first === undefined) return refuseSql(null, 'The query is empty.')
  if (first.kind === 'quoted' || !statements[kind].has(first.text.toLowerCase()))
    return refuseSql(first.at, 'Only queries are run here: SELECT …, or WITH … SELECT ….')
  let depth = 0
  let hasLimit = false
  for (const [index, token] of tokens.entries()) {
    const { text, at } = token
    const next = tokens[index + 1]
    if (token.kind === 'symbol') {
      if (text === ';') return refuseSql(at, 'Send only one query per request.')
      if (text === '(') depth++
      if (text === ')') depth--
    }
    if (token.kind !== 'word' && token.kind !== 'quoted') continue
    const lower = text.toLowerCase()
    if ((outside.test(lower) && !isColumn(tokens, index)) || fatal.test(lower))
      return refuseSql(at, `${text} is not allowed.`)
    // Refuses changes of settings: the engine itself refuses them only at the end of a query, not inside one.
    if (token.kind === 'word' && lower === 'settings' && !isSettingsTable(tokens, index) && !isShowSettings(tokens))
      return refuseSql(at, 'SETTINGS is not allowed. Put a name `settings` in backticks.')
    if (token.kind === 'word' && depth === 0 && lower === 'limit' && !isLimitBy(tokens, index)) hasLimit = true
    if (next?.kind !== 'symbol' || next.text !== '(') continue
    if (token.kind === 'word' && (keywordsBeforeParenthesis.has(lower) || typeNames.has(lower))) continue
    if (token.kind === 'word' && tokens[index - 1]?.kind === 'symbol' && tokens[index - 1]!.text === ':') continue
    if (token.kind === 'word' && parsedFunctions.has(lower)) continue
    // `DESCRIBE (SELECT …)` is not a call; the query inside is checked like any query.
    if (index === 0 && (lower === 'describe' || lower === 'desc')) continue
    if (isFunction(text, functions) || tableFunctions.has(lower)) continue
    if (lower === 'values' && holdsOnlyLiterals(tokens, index + 1) && isTuple(tokens, index + 2)) continue
    return refuseSql(at, `${text}(…) is not allowed: not one of the ClickHouse functions that queries may use.`)
  }
  return ok({ sql: sql.slice(0, end), tokens, hasLimit })
}

/** Whether the word belongs to `system.settings`, which drivers read when they connect. */
function isSettingsTable(tokens: CheckedSql['tokens'], index: number): boolean {
  const [database, dot] = [tokens[index - 2], tokens[index - 1]]
  return dot?.kind === 'symbol' && dot.text === '.' && database?.kind === 'word' && database.text === 'system'
}

/** Whether the query is `SHOW SETTINGS LIKE 'max%'` and nothing else; clients send this, too. */
function isShowSettings(tokens: CheckedSql['tokens']): boolean {
  const [show, settings, like, pattern] = tokens.map(({ kind, text }) => (kind === 'word' ? text.toLowerCase() : kind))
  const isOnAll = like === undefined || ((like === 'like' || like === 'ilike') && pattern === 'string')
  return show === 'show' && settings === 'settings' && isOnAll && tokens.length <= 4
}

/**
 * Whether a query names the engine's own tables, which reveal where it stores its files and the definitions of the
 * views.
 */
export function mentionsSystemTables({ tokens }: Pick<CheckedSql, 'tokens'>): boolean {
  return tokens.some(
    ({ kind, text }, index) =>
      (kind === 'word' || kind === 'quoted') &&
      systemDatabases.has(text.toLowerCase()) &&
      tokens[index + 1]?.kind === 'symbol' &&
      tokens[index + 1]!.text === '.',
  )
}

/**
 * The first of these tables that a query may read; null if it reads none. A column of the same name counts as the table
 * where the text alone cannot tell them apart.
 */
export function findTableRead<Table extends string>(
  { tokens }: Pick<CheckedSql, 'tokens'>,
  tables: readonly Table[],
): Table | null {
  const isRead = (table: Table) =>
    tokens.some(
      ({ kind, text }, index) =>
        (kind === 'word' || kind === 'quoted') && text === table && mayStandForTable(tokens[index - 1]),
    )
  return tables.find(isRead) ?? null
}

/** Whether a name after this token may be a table. After any other token it is a column, an alias or a syntax error. */
function mayStandForTable(before: SqlToken | undefined): boolean {
  if (before?.kind === 'symbol') return /^[.,(]$/.test(before.text)
  return before?.kind === 'word' && wordsBeforeTable.has(before.text.toLowerCase())
}

const wordsBeforeTable = new Set(['from', 'join', 'in', 'table', 'describe', 'desc', 'exists', 'lateral'])

const systemDatabases = new Set(['system', 'information_schema'])

function refuseSql(at: number | null, detail: string): Result<never, SqlRefusal> {
  return { ok: false, error: { at, detail } }
}

/** Whether a name that begins with `_` is a column: such a name is refused only where it is called. */
function isColumn(tokens: readonly SqlToken[], index: number): boolean {
  const { text } = tokens[index]!
  const next = tokens[index + 1]
  return text.startsWith('_') && !(next?.kind === 'symbol' && next.text === '(')
}

/** Whether the parenthesis at `open` holds only literals, so that nothing in it can be combined into a text. */
function holdsOnlyLiterals(tokens: readonly SqlToken[], open: number): boolean {
  let depth = 0
  for (let index = open; index < tokens.length; index++) {
    const { kind, text } = tokens[index]!
    if (kind === 'symbol' ? !/^[\d.,()+-]$/.test(text) : kind !== 'string' && !/^(?:null|true|false)$/i.test(text))
      return false
    if (text === '(') depth++
    if (text === ')' && --depth === 0) return true
  }
  return false
}

/**
 * Whether the argument that begins at `open` is a tuple of at least two elements, and nothing else. `VALUES ((1, 2), …)`
 * has rows; but if the first argument of `VALUES` were a text, however composed, it would be read as a structure, whose
 * defaults may call any function.
 */
function isTuple(tokens: readonly SqlToken[], open: number): boolean {
  let depth = 0
  let hasComma = false
  for (let index = open; index < tokens.length; index++) {
    const { kind, text } = tokens[index]!
    if (kind === 'symbol' && text === '(') depth++
    if (kind === 'symbol' && text === ')') depth--
    if (depth === 1 && kind === 'symbol' && text === ',') hasComma = true
    if (depth > 0) continue
    const next = tokens[index + 1]
    return hasComma && next?.kind === 'symbol' && (next.text === ',' || next.text === ')')
  }
  return false
}

/** `LIMIT 1 BY x` does not limit the rows: it returns one row for each value of x. */
function isLimitBy(tokens: readonly SqlToken[], index: number): boolean {
  for (const token of tokens.slice(index + 1, index + 6)) {
    if (token.kind === 'word') return token.text.toLowerCase() === 'by'
    if (token.kind === 'symbol' && token.text === ')') return false
  }
  return false
}

function isFunction(name: string, functions: SqlFunctions): boolean {
  if (functions.names.has(name) || functions.anyCase.has(name.toLowerCase())) return true
  return isAggregate(name, functions, 4)
}

function isAggregate(name: string, functions: SqlFunctions, combinatorsLeft: number): boolean {
  if (functions.aggregates.has(name) || functions.anyCase.has(name.toLowerCase())) return true
  if (combinatorsLeft === 0) return false
  return functions.combinators.some(
    combinator =>
      name.endsWith(combinator) && isAggregate(name.slice(0, -combinator.length), functions, combinatorsLeft - 1),
  )
}
