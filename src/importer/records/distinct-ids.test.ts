import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseJson } from '#core/json.ts'
import { illegalForMixpanel, requireDistinctId, toEventIdText, toIdText, toLegalId } from './distinct-ids.ts'
import { RecordReject } from './imported-event.ts'

describe('an id as text', () => {
  // The third is written as JavaScript would write its double, so the parser keeps a plain number.
  const literals = ['7', '-12', '7325461098234567000', '8123456789012345678', '18446744073709551616']
  it('keeps every digit', () => {
    for (const literal of literals) assert.equal(toIdText(parseJson(literal)), literal)
  })

  it('is null for a value that cannot be an id', () => {
    for (const literal of ['1.5', '1e30', 'true', 'null', '[]', '{}']) assert.equal(toIdText(parseJson(literal)), null)
  })
})

describe('a distinct id', () => {
  const placeholders = [
    ...['', ' ', '(not set)', '(not provided)', 'Anonymous', 'GUEST', 'undefined', 'null', '0', 'NaN'],
    ...['[object Object]', 'False'],
  ]
  it('is never a placeholder', () => {
    for (const text of placeholders) assert.equal(toLegalId(text), null, JSON.stringify(text))
  })

  it('may differ from a placeholder only in case, or contain a placeholder', () => {
    assert.deepEqual(
      ['NULL', 'nan', '00', 'guest-1'].map(text => toLegalId(text)),
      ['NULL', 'nan', '00', 'guest-1'],
    )
  })

  it('is never one that Mixpanel refuses, in records from Mixpanel', () => {
    assert.equal(toLegalId('N/A', illegalForMixpanel), null)
    assert.equal(toLegalId('N/A'), 'N/A')
  })

  it('has at most 200 characters, counted as code points', () => {
    for (const character of ['x', '😀']) {
      const longest = character.repeat(200)
      assert.equal(requireDistinctId(longest), longest)
      const tooLong = new RecordReject('distinct_id_too_long', 'distinct_id')
      assert.throws(() => requireDistinctId(`${longest}x`, 'id'), tooLong)
    }
    assert.throws(() => requireDistinctId(null, 'id'), new RecordReject('distinct_id_missing', 'id'))
  })
})

describe('the id of an event', () => {
  it('is null for an empty value', () => {
    for (const value of [undefined, null, '', ' ', '(not set)', {}]) assert.equal(toEventIdText(value), null)
    assert.deepEqual(['0', 'null', 7].map(toEventIdText), ['0', 'null', '7'])
  })
})
