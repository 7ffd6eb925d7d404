// Conditions that several lists of the private API use.

import { type RawBuilder, sql } from 'kysely'
import type { Author } from '#core/author.ts'
import type { TextParts } from '#core/flags/match/property-text-parts.ts'
import { toAuthorText } from './rows.ts'

/**
 * Whether `column` contains `text` literally, ignoring case. The engine folds the case of both sides, so letters that it
 * does not fold (in SQLite, letters beyond ASCII) still match themselves.
 */
export function containsTextSql(column: string, text: string): RawBuilder<boolean> {
  const pattern = `%${escapePattern(text)}%`
  return sql<boolean>`lower(${sql.ref(column)}) LIKE lower(${pattern}) ESCAPE '\\'`
}

/**
 * Whether `column`, a JSON text, may contain the parts of one of the alternatives. Also true for texts with a `\u` escape,
 * which may hide a part.
 */
export function mayContainPartsSql(column: string, alternatives: readonly TextParts[]): RawBuilder<boolean> {
  const patterns = alternatives.map(parts => `%${parts.map(escapePattern).join('%')}%`)
  const found = patterns.map(pattern => sql`lower(${sql.ref(column)}) LIKE ${pattern} ESCAPE '\\'`)
  return sql<boolean>`(${sql.join(found, sql` OR `)} OR ${sql.ref(column)} LIKE ${`%${escapePattern('\\u')}%`} ESCAPE '\\')`
}

/** False for an empty list, for which SQL has no syntax. */
export function isInListSql(column: string, values: readonly string[]): RawBuilder<boolean> {
  return values.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`${sql.ref(column)} IN (${sql.join(values)})`
}

/** @param column an author column, with texts written by `toAuthorText`. */
export function isAuthorOneOfSql(column: string, authors: readonly Author[]): RawBuilder<boolean> {
  return isInListSql(
    column,
    authors.map(author => toAuthorText(author)!),
  )
}

function escapePattern(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
