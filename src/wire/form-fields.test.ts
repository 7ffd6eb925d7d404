import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formField, isRepeatedField } from './form-fields.ts'

describe('fields of a form', () => {
  it('are found at the start and behind an ampersand, and decoded', () => {
    assert.equal(formField('data=a%2Bb+c&ip=1', 'data'), 'a+b c')
    assert.equal(formField('ip=1&data=%zz', 'data'), '%zz')
    assert.equal(formField('ip=1&data=a=b', 'data'), 'a=b')
    assert.equal(formField('data=', 'data'), '')
    assert.equal(formField('metadata=1&ip=data=', 'data'), null)
  })

  it('are told apart from repeated ones', () => {
    assert.equal(isRepeatedField('data=1&data=2', 'data'), true)
    assert.equal(isRepeatedField('ip=1&data=1&data=2', 'data'), true)
    assert.equal(isRepeatedField('data=&ip=1', 'data'), false)
    assert.equal(isRepeatedField('ip=1', 'data'), false)
  })

  it('are found in time among a million others', () => {
    const form = `${'a&'.repeat(1_000_000)}data=x`
    const startedAt = performance.now()
    assert.equal(formField(form, 'data'), 'x')
    assert.equal(formField(form, 'token'), null)
    assert.ok(performance.now() - startedAt < 500, 'a parser of the whole takes tens of seconds')
  })
})
