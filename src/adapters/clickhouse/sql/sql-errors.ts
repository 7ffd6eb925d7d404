// The error messages for failed SQL: the engine's own text, which names the place and the mistake, without the tables,
// users and versions behind the views.

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
  // A query may throw by itself (`throwIf`), as the views do while the mirror is filled.
  if (serverCodes.has(code) && !(code === '395' && !message.includes(fillingMessage))) return null
  return { kind: 'failed', detail: cleanMessage(message, database) }
}

/** The failure of a query that consumed the FORMAT clause appended to it. */
export const incompleteQuery: SqlFailure = {
  kind: 'failed',
  detail: 'The query is incomplete: more is expected at its end.',
}

/** Whether a failure is about the appended FORMAT clause instead of the query. */
export function isFormatError(failure: SqlFailure, format: string, sql: string): boolean {
  if (failure.kind !== 'failed') return false
  return failure.detail.includes(format) || (/ identifier ['`]FORMAT['`]/.test(failure.detail) && !/format/i.test(sql))
}

/** One line, without scopes, internal names and the version. */
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
