import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { SourceConfig } from './source-config.ts'

const config = (values: JsonObject) => new SourceConfig('mixpanel', values)

describe('the configuration of a source', () => {
  const zone = 'source_timezone'
  const readers: readonly ((from: SourceConfig) => unknown)[] = [
    from => from.flag('a'),
    from => from.text('b'),
    from => from.zone(),
    from => from.time('d'),
    from => from.choice('e', ['one', 'two']),
    from => from.wholeNumber('f'),
    from => from.object('g'),
    from => Object.fromEntries(from.texts('h')),
  ]

  it('returns the values of keys that are set, and defaults for all other keys', () => {
    const [time, g, h] = ['2024-06-01T00:00:00Z', { i: 1 }, { i: 'j' }]
    const set = config({ a: true, b: 'x', [zone]: 'Asia/Kolkata', d: time, e: 'two', f: 3, g, h })
    assert.deepEqual(
      readers.map(read => read(set)),
      [true, 'x', 'Asia/Kolkata', Date.UTC(2024, 5, 1) * 1000, 'two', 3, g, h],
    )
    set.end()
    assert.deepEqual(
      readers.map(read => read(config({}))),
      [false, null, null, null, 'one', null, null, {}],
    )
  })

  it('is refused for a value of the wrong type, naming the key and the expected type', () => {
    const wrong = config({ a: 'yes', b: 5, [zone]: '+02:00', d: 'June', e: 'three', f: 1.5, g: [], h: { i: 1 } })
    const expected = [
      /^a in the configuration of mixpanel must be true or false$/,
      /^b .* must be text$/,
      /^source_timezone .* must be an IANA zone such as Europe\/Berlin, not "\+02:00"$/,
      /^d .* must be a time such as/,
      /^e .* must be one of one, two$/,
      /^f .* must be a whole number$/,
      /^g .* must be an object$/,
      /^h\.i .* must be text$/,
    ]
    for (const [index, read] of readers.entries()) assert.throws(() => read(wrong), { message: expected[index]! })
  })

  it('is refused for a key that the source does not have, and suggests the key that was meant', () => {
    const misspelt = config({ source_timezones: 'UTC' })
    misspelt.zone()
    assert.throws(() => misspelt.end(), { message: /has no key "source_timezones": did you mean source_timezone\?$/ })
    const strange = config({ colour: 'red' })
    strange.zone()
    assert.throws(() => strange.end(), { message: /has no key "colour": its keys are event_names, source_timezone$/ })
  })
})
