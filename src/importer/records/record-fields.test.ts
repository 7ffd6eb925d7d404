import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RecordReject } from './imported-event.ts'
import { eventName } from './record-fields.ts'

describe('the name of an event', () => {
  it('is refused as missing when it is absent or blank', () => {
    for (const value of [undefined, null, '', '  ', '\t'])
      assert.throws(() => eventName(value, 'event'), new RecordReject('event_missing', 'event'))
    assert.equal(eventName(' Paid ', 'event'), ' Paid ')
  })

  it('has 200 characters at most, counted as code points', () => {
    for (const character of ['x', '😀']) {
      const longest = character.repeat(200)
      assert.equal(eventName(longest, 'event'), longest)
      const tooLong = new RecordReject('event_name_too_long', 'event')
      assert.throws(() => eventName(`${longest}x`, 'event'), tooLong)
      assert.throws(() => eventName(character.repeat(500), 'event'), tooLong)
    }
  })
})
