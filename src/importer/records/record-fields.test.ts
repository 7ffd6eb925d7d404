import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RecordReject } from './imported-event.ts'
import { readEventName } from './record-fields.ts'

describe('the name of an event', () => {
  it('is refused as missing when it is absent or blank', () => {
    for (const value of [undefined, null, '', '  ', '\t'])
      assert.throws(() => readEventName(value, 'event'), new RecordReject('event_missing', 'event'))
    assert.equal(readEventName(' Paid ', 'event'), ' Paid ')
  })

  it('has 200 characters at most, counted as code points', () => {
    for (const character of ['x', '😀']) {
      const longest = character.repeat(200)
      assert.equal(readEventName(longest, 'event'), longest)
      const tooLong = new RecordReject('event_name_too_long', 'event')
      assert.throws(() => readEventName(`${longest}x`, 'event'), tooLong)
      assert.throws(() => readEventName(character.repeat(500), 'event'), tooLong)
    }
  })
})
