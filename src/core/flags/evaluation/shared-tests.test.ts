import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SubjectReader } from './evaluation-subject.ts'
import { SharedTests } from './shared-tests.ts'

function readerFor(shared: SharedTests): SubjectReader {
  return { failure: null, remembered: new Uint8Array(shared.count) } as unknown as SubjectReader
}

test('equal filters are tested once per evaluation, whatever their result', () => {
  for (const answer of [true, false]) {
    const shared = new SharedTests()
    let askedCount = 0
    const make = () => () => {
      askedCount++
      return answer
    }
    const first = shared.testOf(['country', 'exact', ['NO']], make)
    const second = shared.testOf(['country', 'exact', ['NO']], make)
    const reader = readerFor(shared)
    assert.deepEqual([first(reader, []), second(reader, []), first(reader, [])], [answer, answer, answer])
    assert.equal(askedCount, 1)
    first(readerFor(shared), [])
    assert.equal(askedCount, 2, 'the next evaluation tests again')
  }
})

test('filters that differ in key, operator or value are tested separately', () => {
  const shared = new SharedTests()
  const identities = [
    ['age', 'exact', 1],
    ['age', 'exact', '1'],
    ['age', 'is_not', 1],
    ['size', 'exact', 1],
  ]
  const tests = identities.map((identity, index) => shared.testOf(identity, () => () => index % 2 === 0))
  assert.equal(shared.count, 0)
  const reader = readerFor(shared)
  assert.deepEqual(
    tests.map(one => one(reader, [])),
    [true, false, true, false],
  )
})

test('a result that is missing for lack of data is not cached, so that every flag that needs the data fails', () => {
  const shared = new SharedTests()
  const make = () => (reader: SubjectReader) => {
    reader.failure = 'timeout'
    return false
  }
  const first = shared.testOf(['plan', 'exact', 'pro'], make)
  shared.testOf(['plan', 'exact', 'pro'], make)
  const reader = readerFor(shared)
  for (let flag = 0; flag < 2; flag++) {
    reader.failure = null
    first(reader, [])
    assert.equal(reader.failure, 'timeout')
  }
})
