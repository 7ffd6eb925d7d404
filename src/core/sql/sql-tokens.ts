// Splits ClickHouse SQL into tokens, precisely enough to know which text is code. A check that reads the text differently
// from the engine protects nothing, so anything that the check and the engine could read differently is refused: heredocs,
// nested comments, quotes outside ASCII, names with escapes.

import { err, ok, type Result } from '../result.ts'

export interface SqlToken {
  /** `word`: a bare name or keyword; `quoted`: a name in backticks or double quotes; `symbol`: one character. */
  readonly kind: 'word' | 'quoted' | 'string' | 'symbol'
  /** A quoted name without its quotes; any other token as written. */
  readonly text: string
  /** The token's start and end, in UTF-16 units. */
  readonly at: number
  readonly end: number
}

export function isSymbol(token: SqlToken | undefined, text: string): boolean {
  return token?.kind === 'symbol' && token.text === text
}

export interface SqlRefusal {
  readonly detail: string
  /** The position in the text, in UTF-16 units; null for the whole text. */
  readonly at: number | null
}

const wordStart = /[A-Za-z_]/
const wordPart = /[A-Za-z0-9_$]/
/** Typographic quotes, which the engine reads as quotes, and NUL, where it stops reading. */
const misleading = /[\0\u2018\u2019\u201c\u201d]/

/** Returns the SQL's tokens, without comments and white space. */
export function tokenizeSql(sql: string): Result<SqlToken[], SqlRefusal> {
  const tokens: SqlToken[] = []
  const refuse = (at: number, detail: string) => err({ at, detail })
  for (let at = 0; at < sql.length; ) {
    const char = sql[at]!
    const start = at
    if (misleading.test(char)) return refuse(at, 'Typographic quotes and NUL are not allowed; use \' or ".')
    if (/\s/.test(char)) {
      at++
    } else if (char === '#') {
      return refuse(at, 'Comments must start with --, not with #.')
    } else if (sql.startsWith('--', at)) {
      const newline = sql.indexOf('\n', at)
      const comment = newline < 0 ? sql.length : newline + 1
      if (misleading.test(sql.slice(at, comment)))
        return refuse(at, 'Comments must not contain typographic quotes or NUL.')
      at = comment
    } else if (sql.startsWith('//', at)) {
      return refuse(at, 'Comments must start with --, not with //.')
    } else if (sql.startsWith('/*', at)) {
      const close = sql.indexOf('*/', at + 2)
      if (close < 0) return refuse(at, 'Unterminated comment.')
      if (sql.slice(at + 2, close).includes('/*')) return refuse(at, 'Comments cannot be nested.')
      at = close + 2
    } else if (char === "'") {
      at = findQuotedEnd(sql, at, "'")
      if (at < 0) return refuse(start, 'Unterminated string.')
      tokens.push({ kind: 'string', text: sql.slice(start, at), at: start, end: at })
    } else if (char === '`' || char === '"') {
      at = findQuotedEnd(sql, at, char)
      if (at < 0) return refuse(start, 'Unterminated quoted name.')
      const text = sql.slice(start + 1, at - 1)
      if (text.includes('\\')) return refuse(start, 'Quoted names must not contain a backslash.')
      tokens.push({ kind: 'quoted', text: text.replaceAll(char + char, char), at: start, end: at })
    } else if (char === '$') {
      return refuse(at, 'Put names with $ in backticks (`$browser`); $…$ is not a string.')
    } else if (wordStart.test(char)) {
      do at++
      while (at < sql.length && wordPart.test(sql[at]!))
      if (sql[at] === "'" && /^[xb]$/i.test(sql.slice(start, at)))
        return refuse(start, "x'…' and b'…' are not allowed; use unhex('…') or unbin('…').")
      tokens.push({ kind: 'word', text: sql.slice(start, at), at: start, end: at })
    } else {
      at++
      tokens.push({ kind: 'symbol', text: char, at: start, end: at })
    }
  }
  return ok(tokens)
}

/** @returns the index after the closing quote; -1 without a closing quote. Within the text, a quote is written \' or ''. */
function findQuotedEnd(sql: string, start: number, quote: string): number {
  for (let at = start + 1; at < sql.length; at++) {
    if (sql[at] === '\\') at++
    else if (sql[at] === quote) {
      if (sql[at + 1] !== quote) return at + 1
      at++
    }
  }
  return -1
}
