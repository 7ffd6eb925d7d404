import assert from 'node:assert/strict'
import { it } from 'node:test'
import { shareOf } from './nightly.ts'

it('all shares of the nightly tests together contain every case exactly once, whatever the seed', () => {
  const isNightly = process.env.TESTS_NIGHTLY === '1'
  const cases = Array.from({ length: 11 }, (_, n) => n)
  const shares = [0, 1, 2, 3].map(turn => shareOf(cases, 4, turn))
  if (isNightly) return assert.deepEqual(shares, [cases, cases, cases, cases])
  assert.deepEqual(
    shares.flat().toSorted((left, right) => left - right),
    cases,
  )
  assert.ok(shares.every(({ length }) => length === 2 || length === 3))
})
