import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { SourceConfig } from './source-config.ts'

const config = (values: JsonObject) => new SourceConfig('mixpanel', values)

describe('the configuration of a source', () => {
  it('returns the values of keys that are set, and defaults for the others', () => {
    const set = config({
      a: true,
      b: 'x',
      c: 'Asia/Kolkata',
      d: '2024-06-01T00:00:00Z',
      e: 'two',
      f: 3,
      g: { h: 'i' },
    })
    assert.deepEqual(
      [
        set.flag('a'),
        set.text('b'),
        set.zone('c'),
        set.time('d'),
        set.choice('e', ['one', 'two']),
        set.wholeNumber('f'),
      ],
      [true, 'x', 'Asia/Kolkata', Date.UTC(2024, 5, 1) * 1000, 'two', 3],
    )
    assert.deepEqual([set.object('g'), [...set.texts('g')]], [{ h: 'i' }, [['h', 'i']]])
    set.end()
    const none = config({})
    assert.deepEqual(
      [none.flag('a'), none.text('b'), none.zone(), none.time('d'), none.choice('e', ['one', 'two'])],
      [false, null, null, null, 'one'],
    )
    assert.deepEqual([none.wholeNumber('f'), none.object('g'), none.texts('g').size], [null, null, 0])
  })

  it('is refused for a value of the wrong type, naming the key and the expected type', () => {
    const wrong = config({ a: 'yes', b: 5, c: '+02:00', d: 'June', e: 'three', f: 1.5, g: [], h: { i: 1 } })
    const messages = [
      () => wrong.flag('a'),
      () => wrong.text('b'),
      () => wrong.zone('c'),
      () => wrong.time('d'),
      () => wrong.choice('e', ['one', 'two']),
      () => wrong.wholeNumber('f'),
      () => wrong.object('g'),
      () => wrong.texts('h'),
    ]
    const expected = [
      /^a in the configuration of mixpanel must be true or false$/,
      /^b .* must be text$/,
      /^c .* must be an IANA zone such as Europe\/Berlin, not "\+02:00"$/,
      /^d .* must be a time such as/,
      /^e .* must be one of one, two$/,
      /^f .* must be a whole number$/,
      /^g .* must be an object$/,
      /^h\.i .* must be text$/,
    ]
    for (const [index, read] of messages.entries()) assert.throws(read, { message: expected[index]! })
  })

  it('is refused for a key that the source does not have, with the key that was meant', () => {
    const misspelt = config({ source_timezones: 'UTC' })
    misspelt.zone()
    assert.throws(() => misspelt.end(), { message: /has no key "source_timezones": did you mean source_timezone\?$/ })
    const strange = config({ colour: 'red' })
    strange.zone()
    assert.throws(() => strange.end(), { message: /has no key "colour": its keys are event_names, source_timezone$/ })
  })
})
