import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClickHouseError } from '@clickhouse/client'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { toSqlFailure } from '../sql/sql-errors.ts'
import { requiresEndpointReload, toStoreError } from './clickhouse-errors.ts'

const refusal = (code: string) => new ClickHouseError({ message: 'refused', code })

describe('failures of the event store', () => {
  it('count as a query that is too large when a read exceeds its own limits', () => {
    for (const [code, portCode] of [
      ['159', 'timeout'],
      ['241', 'full'],
      ['396', 'full'],
    ] as const) {
      const error = toStoreError(refusal(code), 'read')
      assert.ok(error instanceof QueryTooLargeError)
      assert.equal(error.code, portCode)
    }
    const tooLong = Object.assign(new Error('Cannot create a string'), { code: 'ERR_STRING_TOO_LONG' })
    assert.ok(toStoreError(tooLong, 'read') instanceof QueryTooLargeError)
  })

  it('count as a full store when the shared memory is used up', () => {
    const exceeded = (whose: string) =>
      new ClickHouseError({ message: `${whose} memory limit exceeded: would`, code: '241' })
    assert.ok(toStoreError(exceeded('Query'), 'read') instanceof QueryTooLargeError)
    for (const whose of ['User', '(total)']) {
      const error = toStoreError(exceeded(whose), 'read')
      assert.ok(error instanceof PortError && !(error instanceof QueryTooLargeError), whose)
      assert.equal(error.code, 'full')
    }
  })

  it('do not count as broken connections when a library within the engine failed', () => {
    const version = '(version 26.7.2.1)'
    for (const text of [
      `std::exception. Code: 1001, type: std::runtime_error, e.what() = failed alloc while reading ${version}`,
      `Poco::Exception. Code: 1000, e.code() = 0, Exception ${version}`,
    ])
      assert.equal(requiresEndpointReload(new Error(text)), false)
    assert.deepEqual(
      toSqlFailure(new Error(`std::exception. Code: 1001, type: std::runtime_error, e.what() = no ${version}`), 'p'),
      {
        kind: 'failed',
        detail: 'no',
      },
    )
    assert.equal(requiresEndpointReload(new Error('socket hang up')), true)
  })

  it('do not count as a query that is too large if other queries use the memory, or if a write gets no memory', () => {
    for (const [code, during, portCode] of [
      ['202', 'read', 'full'],
      ['243', 'read', 'full'],
      ['241', 'write', 'unavailable'],
    ] as const) {
      const error = toStoreError(refusal(code), during)
      assert.ok(error instanceof PortError && !(error instanceof QueryTooLargeError))
      assert.equal(error.code, portCode)
    }
  })
})
