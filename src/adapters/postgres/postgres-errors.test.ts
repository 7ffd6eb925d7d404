import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import pg from 'pg'
import { PortError } from '#ports/port-error.ts'
import { isConcurrencyRollback, toConnectPortError, toPostgresPortError } from './postgres-errors.ts'

function databaseError(code: string): pg.DatabaseError {
  const error = new pg.DatabaseError('something failed', 10, 'error')
  return Object.assign(error, { code, detail: 'Key (secret)=(hidden) exists', where: 'COPY hidden' })
}

function codeOf(cause: unknown): unknown {
  const error = toPostgresPortError(cause)
  return error instanceof PortError ? error.code : null
}

describe('failures of PostgreSQL', () => {
  it('become PortErrors, selected by their SQLSTATE or its class', () => {
    const expected = {
      '57014': 'timeout',
      '55P03': 'timeout',
      '40001': 'conflict',
      '40P01': 'conflict',
      '23505': 'conflict',
      '53100': 'full',
      '53300': 'unavailable',
      '57P01': 'unavailable',
      '28P01': 'unavailable',
      '3D000': 'unavailable',
      XX001: 'corrupt',
    }
    for (const [sqlState, code] of Object.entries(expected))
      assert.equal(codeOf(databaseError(sqlState)), code, sqlState)
  })

  it('stay unchanged if they are caused by a value or by a bug of the server', () => {
    for (const sqlState of ['22021', '22P02', '42601', '54000']) assert.equal(codeOf(databaseError(sqlState)), null)
    const mistake = new TypeError('undefined is not a function')
    assert.equal(toPostgresPortError(mistake), mistake)
    const known = new PortError('state', 'corrupt')
    assert.equal(toPostgresPortError(known), known)
  })

  it('distinguish an unavailable server from one that takes too long', () => {
    for (const message of [
      'Connection terminated unexpectedly',
      'Client has encountered a connection error and is not queryable',
    ])
      assert.equal(codeOf(new Error(message)), 'unavailable', message)
    for (const message of ['Query read timeout', 'timeout exceeded when trying to connect', 'timeout expired'])
      assert.equal(codeOf(new Error(message)), 'timeout', message)
    assert.equal(codeOf(Object.assign(new Error('connect ECONNREFUSED'), { syscall: 'connect' })), 'unavailable')
    assert.equal(toConnectPortError(new Error('SASL: no password')).code, 'unavailable')
  })

  it('do not put row contents from the server’s message into logs', () => {
    for (const sqlState of ['23505', '22021']) {
      const error = toPostgresPortError(databaseError(sqlState)) as Error
      const shown = JSON.stringify([error, error.cause, String(error), Object.entries(error.cause ?? error)])
      assert.doesNotMatch(shown, /hidden/)
    }
  })

  it('may be retried after a deadlock or a serialization failure, given as the original error or as a PortError', () => {
    assert.ok(isConcurrencyRollback(databaseError('40P01')))
    assert.ok(isConcurrencyRollback(toPostgresPortError(databaseError('40001'))))
    assert.ok(!isConcurrencyRollback(toPostgresPortError(databaseError('23505'))))
    assert.ok(!isConcurrencyRollback(new Error('other')))
  })
})
