import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { PropertyMark, PropertyMarks } from './person.ts'
import { decodePropertyMarks, encodePropertyMarks } from './property-marks-text.ts'

const at = { timestampMs: fc.integer({ min: -1e14, max: 1e14 }), uuid: fc.constantFrom('u1', 'u2') }
const mark = fc.record(
  {
    kind: fc.constantFrom<PropertyMark['kind']>('live_once', 'import_set', 'import_once', 'import_unset'),
    ...at,
    importJobId: fc.nat(3),
    once: fc.record(
      { ...at, value: fc.constantFrom<string | number>('x', 1.5) },
      { requiredKeys: ['timestampMs', 'uuid'] },
    ),
    unset: fc.record(at),
  },
  { requiredKeys: ['kind', 'timestampMs', 'uuid', 'importJobId'] },
)

describe('the stored text of the marks that say how a property was set', () => {
  it('decodes to the same marks, whatever the keys', () => {
    const keys = fc.oneof(fc.constantFrom('__proto__', 'constructor', '$initial_os'), fc.string())
    fc.assert(
      fc.property(fc.array(fc.tuple(keys, mark)), entries => {
        const marks = Object.fromEntries(entries) as PropertyMarks
        const decoded = decodePropertyMarks(encodePropertyMarks(marks))
        const byKey = (each: PropertyMarks) => Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))
        assert.equal(JSON.stringify(byKey(decoded)), JSON.stringify(byKey(marks)))
      }),
    )
  })

  it('contains equal marks of several keys only once', () => {
    const shared: PropertyMark = { kind: 'live_once', timestampMs: 5, uuid: 'u', importJobId: 0 }
    assert.equal(encodePropertyMarks({ a: shared, b: { ...shared }, c: shared }), '[[[0,5,"u",0],["a","b","c"]]]')
    assert.equal(encodePropertyMarks({}), '[]')
  })

  it('is refused by the decoder if it has another shape', () => {
    for (const text of ['{"a":1}', '[1]', '[[[9,1,"u",0],["a"]]]', '[[[0,1,"u",0]]]', 'nothing'])
      assert.throws(() => decodePropertyMarks(text))
  })
})
