import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ClickHouseError } from '@clickhouse/client'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { storeError } from './clickhouse-errors.ts'

const refusal = (code: string) => new ClickHouseError({ message: 'refused', code })

describe('failures of the event store', () => {
  it('are those of a read that asks for too much', () => {
    for (const [code, portCode] of [
      ['159', 'timeout'],
      ['241', 'full'],
      ['396', 'full'],
    ] as const) {
      const error = storeError(refusal(code), 'read')
      assert.ok(error instanceof QueryTooLargeError)
      assert.equal(error.code, portCode)
    }
    const tooLong = Object.assign(new Error('Cannot create a string'), { code: 'ERR_STRING_TOO_LONG' })
    assert.ok(storeError(tooLong, 'read') instanceof QueryTooLargeError)
  })

  it('are not a read that waits for others, nor a write that finds no memory', () => {
    for (const [code, during, portCode] of [
      ['202', 'read', 'full'],
      ['243', 'read', 'full'],
      ['241', 'write', 'unavailable'],
    ] as const) {
      const error = storeError(refusal(code), during)
      assert.ok(error instanceof PortError && !(error instanceof QueryTooLargeError))
      assert.equal(error.code, portCode)
    }
  })
})
