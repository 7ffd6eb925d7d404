import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aCapturedEvent, aCapturedReject } from '../../../tests/support/values.ts'
import { type JsonValue, parseJson } from '../json.ts'
import { LiveEvent, type LiveFilter, matchesLiveFilter, propertiesLookedIntoMax } from './live-filter.ts'

const everything: LiveFilter = {
  events: null,
  distinctIds: null,
  lanes: new Set(['main', 'historical']),
  imports: true,
  properties: [],
  rejected: true,
}

function matches(over: Partial<LiveFilter>, event: Parameters<typeof aCapturedEvent>[1] = {}) {
  return new LiveEvent(aCapturedEvent(1, event)).matches({ ...everything, ...over })
}

/** Whether an event with these properties passes a filter for `key` equal to `value`, both as JSON text. */
function holds(propertiesJson: string, value: string, key = 'k') {
  return matches({ properties: [{ key, value: parseJson(value) as JsonValue }] }, { propertiesJson }) === 'yes'
}

describe('a filter of the live view', () => {
  it('accepts an event whose name, distinct id and lane are among the requested ones', () => {
    assert.equal(matches({}), 'yes')
    assert.equal(matches({ events: new Set(['$pageview', 'b']) }), 'yes')
    assert.equal(matches({ events: new Set(['b']) }), 'no')
    assert.equal(matches({ distinctIds: new Set(['person-1']) }), 'yes')
    assert.equal(matches({ distinctIds: new Set(['person-2']) }), 'no')
    assert.equal(matches({ lanes: new Set(['ai']) }), 'no')
    assert.equal(matches({ events: new Set(['$pageview']), distinctIds: new Set(['person-2']) }), 'no')
  })

  it('accepts imports only on request, whatever their lane', () => {
    const imported = { lane: 'ai', historicalMigration: true } as const
    const live: Partial<LiveFilter> = { lanes: new Set(['main', 'ai']), imports: false }
    assert.equal(matches(live, imported), 'no')
    assert.equal(matches(live, { lane: 'ai' }), 'yes')
    assert.equal(matches({ ...live, imports: true }, imported), 'yes')
    assert.ok(!matchesLiveFilter({ ...everything, ...live }, aCapturedReject(imported)))
    assert.ok(matchesLiveFilter({ ...everything, ...live, imports: true }, aCapturedReject(imported)))
  })

  it('compares properties in the same way as lists of stored events do', () => {
    for (const [stored, asked] of [
      ['"pro"', '"pro"'],
      ['1', '1.0'],
      ['1.0', '1'],
      ['"1"', '1'],
      ['true', 'true'],
      ['true', '"true"'],
      ['null', '"null"'],
      ['[1, 2]', '[1,2]'],
      ['{"b": 1, "a": 2}', '{"a":2,"b":1}'],
      ['9007199254740993', '9007199254740993'],
    ] as const)
      assert.ok(holds(`{"x": 1, "k": ${stored}}`, asked), `${stored} and ${asked}`)
    for (const [stored, asked] of [
      ['"pro"', '"Pro"'],
      ['1', '2'],
      ['9007199254740993', '9007199254740992'],
      ['{}', '"k"'],
    ] as const)
      assert.ok(!holds(`{"k": ${stored}}`, asked), `${stored} and ${asked}`)
  })

  it('checks only own keys of the properties, however they are spelt, and nothing inherited from a prototype', () => {
    assert.ok(holds('{"\\u006b": 1}', '1'))
    assert.ok(!holds('{"other": {"k": 1}}', '1'))
    assert.ok(!holds('{"a": "constructor"}', '1', 'constructor'))
    assert.ok(holds('{"__proto__": 1}', '1', '__proto__'))
    assert.ok(holds('{"a\\"b": 1}', '1', 'a"b'))
    assert.ok(!holds('no JSON "k"', '1'))
  })

  it('with several properties requires all of them', () => {
    const properties = [
      { key: 'a', value: 1 },
      { key: 'b', value: 2 },
    ]
    assert.equal(matches({ properties }, { propertiesJson: '{"a":1,"b":2}' }), 'yes')
    assert.equal(matches({ properties }, { propertiesJson: '{"a":1,"b":3}' }), 'no')
  })

  it('does not search properties that are too long, and says so if the match depends on them', () => {
    const propertiesJson = JSON.stringify({ k: 1, pad: 'x'.repeat(propertiesLookedIntoMax) })
    const properties = [{ key: 'k', value: 1 }]
    assert.equal(matches({ properties }, { propertiesJson }), 'too_large')
    assert.equal(matches({ properties, events: new Set(['b']) }, { propertiesJson }), 'no')
    assert.equal(matches({}, { propertiesJson }), 'yes')
  })

  it('accepts a reject whose known fields match, and no reject at all if rejects are not requested', () => {
    const rejected = (over: Partial<LiveFilter>, reject = {}) =>
      matchesLiveFilter({ ...everything, ...over }, aCapturedReject({ name: '', distinctId: '', ...reject }))
    assert.ok(rejected({}))
    assert.ok(!rejected({ rejected: false }))
    assert.ok(!rejected({ lanes: new Set(['ai']) }))
    assert.ok(rejected({ events: new Set(['a']), distinctIds: new Set(['ada']) }))
    assert.ok(rejected({ events: new Set(['a']) }, { name: 'a' }))
    assert.ok(!rejected({ events: new Set(['a']) }, { name: 'b' }))
    assert.ok(!rejected({ distinctIds: new Set(['ada']) }, { distinctId: 'bob' }))
  })
})
