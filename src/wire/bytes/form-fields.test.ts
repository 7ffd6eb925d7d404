import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { takesAtMost } from '../../../tests/support/cpu-time.ts'
import { isRepeatedField, readFormField } from './form-fields.ts'

describe('the fields of a form', () => {
  it('are found at the start and after an ampersand, and decoded', () => {
    assert.equal(readFormField('data=a%2Bb+c&ip=1', 'data'), 'a+b c')
    assert.equal(readFormField('ip=1&data=%zz', 'data'), '%zz')
    assert.equal(readFormField('ip=1&data=a=b', 'data'), 'a=b')
    assert.equal(readFormField('data=', 'data'), '')
    assert.equal(readFormField('metadata=1&ip=data=', 'data'), null)
  })

  it('are reported when they are repeated', () => {
    assert.equal(isRepeatedField('data=1&data=2', 'data'), true)
    assert.equal(isRepeatedField('ip=1&data=1&data=2', 'data'), true)
    assert.equal(isRepeatedField('data=&ip=1', 'data'), false)
    assert.equal(isRepeatedField('ip=1', 'data'), false)
  })

  it('are found quickly among hundreds of thousands of other fields', () => {
    const form = `${'a&'.repeat(300_000)}data=x`
    assert.equal(readFormField(form, 'data'), 'x')
    assert.equal(readFormField(form, 'token'), null)
    const find = () => void readFormField(form, 'data')
    const pass = () => void form.replaceAll('&', '=')
    // A full parser takes hundreds of times as long as one pass.
    assert.ok(takesAtMost(10, find, pass))
  })

  it('are decoded from their value alone, after plus signs, which would slow the parser down, are replaced', t => {
    const given: string[] = []
    class Parser extends URLSearchParams {
      constructor(init?: ConstructorParameters<typeof URLSearchParams>[0]) {
        super(init)
        given.push(String(init))
      }
    }
    t.mock.property(globalThis, 'URLSearchParams', Parser)
    assert.equal(readFormField('a=1&data=+%2B++&b=2', 'data'), ' +  ')
    assert.deepEqual(given, ['v= %2B  '])
  })

  it('are decoded in the same way as in every browser', () => {
    const pieces = fc.array(fc.oneof(fc.constantFrom('+', '%', '%2B', '%e2%82%ac', '%ff', ' ', '=', 'é'), fc.string()))
    fc.assert(
      fc.property(pieces, parts => {
        const value = parts.join('').replaceAll('&', '')
        assert.equal(readFormField(`data=${value}`, 'data'), new URLSearchParams(`data=${value}`).get('data'))
      }),
    )
  })
})
