import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { defineSource } from './define-source.ts'
import type { SourceContext } from './import-source.ts'
import { createSkippedOutcome } from './imported-event.ts'

const context: SourceContext = { nowMs: Date.UTC(2026, 0, 15), holdLiveWindow: false, findFact: () => null }
const uuid = '018f3a10-0000-7000-8000-000000000701'

/** Converts each record to an event with the record's name, and with `from` as the source's name. */
const product = defineSource('product', '', () => ({
  convert({ value: { event, from } }) {
    if (event === undefined) return createSkippedOutcome('filtered')
    const names = { event: String(event), ...(from !== undefined && { sourceName: String(from) }) }
    return { events: [{ uuid, ...names, distinctId: 'ada', timeUs: 0, properties: {} }] }
  },
  factsOf: () => [{ kind: 'k', key: 'a', value: 'b' }],
  timeOf: () => 1,
}))

function namesOf(record: JsonObject, eventNames: JsonObject) {
  const outcome = product
    .prepare({ event_names: eventNames }, context)
    .convert({ value: record, table: null, ordinal: 1 })
  assert.ok('events' in outcome)
  return outcome.events.map(each => [each.event, each.sourceName, each.uuid])
}

describe('event_names', () => {
  it('renames each event once, starting from the name that the source’s mapping gives, and keeps its uuid', () => {
    const names = { 'Page View': '$pageview', $pageview: 'Viewed' }
    assert.deepEqual(namesOf({ event: 'Page View' }, names), [['$pageview', 'Page View', uuid]])
    assert.deepEqual(namesOf({ event: '$pageview', from: 'page' }, names), [['Viewed', 'page', uuid]])
    assert.deepEqual(namesOf({ event: 'toString' }, names), [['toString', undefined, uuid]])
  })

  it('does not affect skipped records, records that only add facts, or the times of records', () => {
    const converter = product.prepare({ event_names: { a: 'b' } }, context)
    const record = { value: {}, table: null, ordinal: 1 }
    assert.deepEqual(converter.convert(record), createSkippedOutcome('filtered'))
    assert.deepEqual(converter.factsOf?.(record), [{ kind: 'k', key: 'a', value: 'b' }])
    assert.equal(converter.timeOf(record), 1)
  })

  const refused: readonly (readonly [string, JsonObject[string], RegExp])[] = [
    ['as no object', ['a'], /^event_names in the configuration of product must be an object$/],
    ['with a new name that is no text', { a: 5 }, /^event_names\.a .* must be text$/],
    ['with an empty new name', { a: ' ' }, /"a": " ", and a name may not be empty$/],
    ['for an empty name', { '': 'a' }, /a name may not be empty$/],
    ['with a new name that is too long', { a: 'x'.repeat(201) }, /a name has 200 characters at most$/],
    [
      'with the name of an event that links persons',
      { a: '$merge_dangerously' },
      /\$merge_dangerously cannot be renamed, nor can/,
    ],
    ['for events that link persons', { $identify: 'a' }, /\$identify cannot be renamed/],
  ]
  for (const [which, eventNames, message] of refused)
    it(`is refused ${which}`, () => {
      assert.throws(() => product.prepare({ event_names: eventNames }, context), { message })
    })
})
