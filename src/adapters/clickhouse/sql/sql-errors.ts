// Writes the error messages for failed SQL: the engine's own text, which names the place and the mistake, without the
// internal tables, users and versions.

import { ClickHouseError } from '@clickhouse/client'
import type { SqlFailure } from '#ports/events/sql-queries.ts'
import {
  fillingMessage,
  isAccessDenied,
  isOutOfSharedMemory,
  parseEngineError,
  toStoreError,
} from '../connection/clickhouse-errors.ts'

/** Errors due to the server's own state: the same query may work later. */
const serverCodes: ReadonlySet<string> = new Set(
  '40 246 159 160 202 209 210 243 192 193 194 516 473 394 395 999 1000'.split(' '),
)
const tooLargeCodes: ReadonlySet<string> = new Set(['158', '241', '307', '396', '191'])
const detailLengthMax = 500

/** @throws PortError when the store is at fault; rethrows anything that is not an error of the store. */
export function toSqlFailure(thrown: unknown, database: string): SqlFailure {
  const error = parseEngineError(thrown)
  if (isAccessDenied(error)) return { kind: 'forbidden' }
  if (!(error instanceof ClickHouseError)) throw toStoreError(error, 'write')
  if (isOutOfSharedMemory(error)) throw toStoreError(error, 'read')
  return parseFailure(error.code, error.message, database) ?? throwError(toStoreError(error, 'write'))
}

/** @returns null when the store is at fault. */
function parseFailure(code: string, message: string, database: string): SqlFailure | null {
  if (tooLargeCodes.has(code))
    return {
      kind: 'too_large',
      detail: 'The query exceeds its memory limit. Read a shorter time range, or group by fewer values.',
    }
  // Code 395 (`throwIf`) is the query's own error, unless a view throws it while the mirror is being filled.
  if (serverCodes.has(code) && !(code === '395' && !message.includes(fillingMessage))) return null
  return { kind: 'failed', detail: cleanMessage(message, database) }
}

/** The failure of an incomplete query, which consumes the FORMAT clause that is appended to it. */
export const incompleteQuery: SqlFailure = {
  kind: 'failed',
  detail: 'The query is incomplete: more is expected at its end.',
}

/** Whether the error message is about the appended FORMAT clause instead of the user's own text. */
export function isFormatError(failure: SqlFailure, format: string, sql: string): boolean {
  if (failure.kind !== 'failed') return false
  return failure.detail.includes(format) || (/ identifier ['`]FORMAT['`]/.test(failure.detail) && !/format/i.test(sql))
}

/** Shortens the engine's message to one line, without scopes, internal names and the engine's version. */
function cleanMessage(message: string, database: string): string {
  const text = message
    .replace(/^Code: \d+\. DB::Exception: /, '')
    .split('\n', 1)[0]!
    .replace(/:? (?:in|In) scope .*$/s, '')
    .replace(/: while executing .*$/is, '')
    .replace(/ \(version [^()]*(?:\([^()]*\))?\)\.?/, '')
    .replace(/ ?Stack trace:.*$/s, '')
    .replaceAll(new RegExp(`\\b${database}(?:_sql(?:_job)?)?\\.`, 'g'), '')
    .replaceAll(/\b__table\d+\./g, '')
    .replaceAll(/\bpennon_(?:analyst|views)(?:_job)?\b/g, 'this user')
    .trim()
  return text.length > detailLengthMax ? `${text.slice(0, detailLengthMax)}…` : text
}

function throwError(error: unknown): never {
  throw error
}
