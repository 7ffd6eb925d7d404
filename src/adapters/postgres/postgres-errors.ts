// Translates failures of PostgreSQL and its driver into PortErrors. Drops what the errors say about rows (`detail`,
// `where`), because that is people's data, and errors are logged.

import pg from 'pg'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'

/**
 * The PortError's code for each SQLSTATE, or for a class of SQLSTATEs, which is the first two characters.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const codes: Readonly<Record<string, PortErrorCode>> = {
  '57014': 'timeout', // statement_timeout, or cancelled by an operator
  '55P03': 'timeout', // lock_timeout
  '25P03': 'timeout', // idle in a transaction for too long
  '40': 'conflict', // serialization failure, deadlock: rolled back
  '40003': 'unavailable', // it is unknown whether the statement was completed
  '23': 'conflict', // a constraint
  '53100': 'full',
  '53': 'unavailable', // too many connections, out of memory
  '08': 'unavailable',
  '28': 'unavailable', // authentication failed
  '3D': 'unavailable', // no such database
  '25006': 'unavailable', // read-only: a former primary
  '42501': 'unavailable', // no rights on a table
  '42P01': 'unavailable', // no such table: a replica that lags behind
  '57': 'unavailable', // shutting down, starting up
  '58': 'unavailable', // the server's own disk
  XX: 'corrupt',
}

/** Matches the driver's messages for time-outs, which have no error code. */
const driverTimeouts = /timeout expired|timeout exceeded|Query read timeout|connection timeout/
const driverEnds = /Connection terminated|not queryable|after calling end|has been discarded|driver has already/

/**
 * A PortError for a failure of PostgreSQL or of the connection; anything else is returned as it is: our own bugs, and a
 * value that PostgreSQL does not accept.
 */
export function toPostgresPortError(cause: unknown): unknown {
  if (cause instanceof PortError || !(cause instanceof Error)) return cause
  if (cause instanceof pg.DatabaseError) {
    const code = codes[cause.code ?? ''] ?? codes[cause.code?.slice(0, 2) ?? '']
    const bare = Object.assign(new Error(cause.message), { code: cause.code })
    return code === undefined ? bare : new PortError('state', code, bare)
  }
  if (driverTimeouts.test(cause.message)) return new PortError('state', 'timeout', cause)
  const isNetworkError = 'syscall' in cause || cause instanceof AggregateError
  if (isNetworkError || driverEnds.test(cause.message)) return new PortError('state', 'unavailable', cause)
  return cause
}

/** The PortError for any failure to get a session, which means that the state cannot be reached. */
export function toConnectPortError(cause: unknown): PortError {
  const known = toPostgresPortError(cause)
  return known instanceof PortError ? known : new PortError('state', 'unavailable', known)
}

/** Whether a transaction was rolled back because of a concurrent transaction: it may succeed when it is repeated. */
export function isConcurrencyRollback(cause: unknown): boolean {
  const code = readSqlState(cause)
  return code === '40001' || code === '40P01'
}

/** The SQLSTATE of a driver error, also if the error is inside a PortError. */
export function readSqlState(cause: unknown): string | undefined {
  const origin = cause instanceof PortError ? cause.cause : cause
  return origin instanceof Error && 'code' in origin && typeof origin.code === 'string' ? origin.code : undefined
}
