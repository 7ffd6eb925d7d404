import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  assertKnownFields,
  CannotRun,
  exactDifferences,
  instantDifferences,
  parseVectorFile,
  subsetDifferences,
} from './compare.ts'

describe('comparing an answer with a test vector', () => {
  it('reports the path and both values', () => {
    assert.deepEqual(exactDifferences({ a: [1, { b: true }] }, { a: [1, { b: false }] }, 'body'), [
      'body.a[1].b: is false instead of true',
    ])
  })

  it('rejects missing and additional fields', () => {
    assert.deepEqual(exactDifferences({ a: 1 }, { b: 2 }, 'body'), [
      'body.a: is absent instead of 1',
      'body.b: is there (2)',
    ])
    assert.deepEqual(exactDifferences([1], [1, 2], 'body'), ['body: is [1,2] instead of [1]'])
    assert.equal(exactDifferences(null, undefined, 'body').length, 1)
    assert.equal(exactDifferences(1, '1', 'body').length, 1)
  })

  it('allows additional fields in a `subset`, but only at its first level', () => {
    assert.deepEqual(subsetDifferences({ a: 1 }, { a: 1, b: 2 }, 'properties'), [])
    assert.equal(subsetDifferences({ a: { b: 1 } }, { a: { b: 1, c: 2 } }, 'properties').length, 1)
  })

  it('accepts any value of its kind for a placeholder', () => {
    const expected = { id: '<uuid>', at: '<integer milliseconds>' }
    assert.deepEqual(exactDifferences(expected, { id: '0197c5a0-0000-7000-8000-000000000001', at: 5 }, 'body'), [])
    assert.equal(exactDifferences(expected, { id: 'no', at: 5.5 }, 'body').length, 2)
  })

  it('compares times as instants, in any notation', () => {
    assert.deepEqual(instantDifferences('2025-07-01T11:00:00Z', '2025-07-01T13:00:00.000+02:00', 'timestamp'), [])
    assert.equal(instantDifferences('2025-07-01T11:00:00Z', undefined, 'timestamp').length, 1)
  })

  it('sends number literals as in the file, and compares their values', () => {
    const vector = parseVectorFile('{"n": 1.0, "m": 1e2, "i": 7}')
    assert.equal(JSON.stringify(vector), '{"n":1.0,"m":1e2,"i":7}')
    assert.deepEqual(exactDifferences(vector, { n: 1, m: 100, i: 7 }, 'body'), [])
  })

  it('rejects a field of a test vector that no comparison reads, and reports the field’s name', () => {
    assert.throws(
      () => assertKnownFields({ a: 1, b: 2 }, 'expect', ['a']),
      (error: Error) => {
        return error instanceof CannotRun && error.message.includes('expect') && error.message.endsWith(': b')
      },
    )
  })
})
