import assert from 'node:assert/strict'
import { it } from 'node:test'
import { maxOf, minOf } from './min-max.ts'

it('minimum and maximum are found even in a list that is longer than a function call may have arguments', () => {
  const numbers = Array.from({ length: 300_000 }, (_, index) => (index * 7) % 300_000)
  assert.deepEqual([minOf(numbers), maxOf(numbers)], [0, 299_999])
  assert.deepEqual([minOf([]), maxOf([])], [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
})
