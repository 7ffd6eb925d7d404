import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { convertRecords, droppedOf, eventsOf } from '../../../../tests/support/convert-records.ts'
import { generic } from './generic.ts'

const base = { event: 'action', distinct_id: 'uid', timestamp: 'ts', uuid: 'row_id' }
const row = { row_id: 'r-1', uid: 'u-1', ts: '2024-05-01T12:00:00Z', action: 'Paid' }

describe('a record with a mapping', () => {
  it('keeps the fields that the mapping does not use, except for empty ones', () => {
    const record = { ...row, amount: 12, note: '', city: '(not set)', nested: { a: null } }
    assert.deepEqual(eventsOf(generic, [record], { mapping: base }), [
      {
        uuid: deriveImportUuid('generic', 'id', 'r-1'),
        event: 'Paid',
        distinct_id: 'u-1',
        timestamp: '2024-05-01T12:00:00.000Z',
        properties: { amount: 12, nested: { a: null } },
      },
    ])
  })

  it('takes its properties from a path, from a list of paths, or from paths with new names', () => {
    const record = { ...row, cart: { total: 12, lines: [{ sku: 'a' }] }, 'unit.price': 3, rest: true }
    assert.deepEqual(propertiesOf(record, { properties: 'cart' }), { total: 12, lines: [{ sku: 'a' }] })
    assert.deepEqual(propertiesOf(record, { properties: ['cart.total', 'unit.price', 'absent'] }), {
      'cart.total': 12,
      'unit.price': 3,
    })
    assert.deepEqual(propertiesOf(record, { properties: { first: 'cart.lines.0.sku' } }), { first: 'a' })
    const text = { ...row, cart: '{"total":9223372036854775807}' }
    assert.equal(JSON.stringify(propertiesOf(text, { properties: 'cart' })), '{"total":9223372036854775807}')
  })

  it('treats the texts listed in the mapping’s `nulls` as absent', () => {
    const record = {
      ...row,
      id: 'NULL',
      user: 'NULL',
      device: 'd-1',
      note: 'NULL',
      sort: 'null',
      inner: { a: 'NULL', b: 1 },
    }
    const mapping = { ...base, distinct_id: ['user', 'device'], uuid: 'id', spread: ['inner'], nulls: ['NULL'] }
    const [event] = eventsOf(generic, [record], { mapping })
    assert.equal(event!.distinct_id, 'd-1')
    const { note, sort, a, b } = event!.properties
    assert.deepEqual([note, sort, a, b], [undefined, 'null', undefined, 1])
    assert.deepEqual(convertRecords(generic, [{ ...record, device: 'NULL' }], { mapping }), [
      { rejected: { reason: 'distinct_id_missing', field: 'user' } },
    ])
  })

  it('lists the fields that are in no part of its event', () => {
    const value = { ...row, cart: { total: 1 }, other: 1, note: 'x' }
    const dropped = (more: JsonObject) => droppedOf(generic, value, { mapping: { ...base, ...more } })
    assert.deepEqual(dropped({}), [])
    assert.deepEqual(dropped({ omit: ['note', 'absent'] }), ['note'])
    assert.deepEqual(dropped({ properties: { total: 'cart.total' }, set: ['note'] }), ['other'])
  })

  it('is refused when its properties are not an object', () => {
    for (const cart of [[1], 'twelve', 12, '[1]', 'null'])
      assert.deepEqual(
        convertRecords(generic, [{ ...row, cart }], { mapping: { ...base, properties: 'cart' } }),
        [{ rejected: { reason: 'properties_not_object', field: 'cart' } }],
        JSON.stringify(cart),
      )
  })

  it('converts texts to the types in the mapping, and keeps texts that do not match, with a note', () => {
    const types = {
      n: 'number',
      big: 'integer',
      yes: 'boolean',
      tags: 'json',
      at: 'timestamp',
      id: 'text',
      bad: 'number',
    }
    const record = { ...row, n: '12.50', big: '9007199254740993', yes: 'True', tags: '["a"]', id: 7, bad: 'x' }
    const [outcome] = convertRecords(generic, [{ ...record, at: '2024-05-01 12:00:00' }], {
      mapping: { ...base, types },
      source_timezone: 'Europe/Berlin',
    })
    assert.ok(outcome !== undefined && 'events' in outcome)
    assert.equal(
      JSON.stringify(outcome.events[0]!.properties),
      '{"n":12.5,"big":9007199254740993,"yes":true,"tags":["a"],"id":"7","bad":"x","at":"2024-05-01T10:00:00.000Z"}',
    )
    assert.deepEqual(outcome.notes, ['type_mismatch:bad'])
  })

  it('reads decimal commas and dates with the year last if the mapping says so', () => {
    const texts = { a: '1.234,50', b: '0,5', c: '-1 234', d: "1'234'567,25", e: '12.5', f: '1,2,3', g: '1.5e3' }
    const types = Object.fromEntries(Object.keys(texts).map(key => [key, 'number']))
    const mapping = { ...base, types: { ...types, on: 'timestamp' }, decimal_separator: ',', date_order: 'dmy' }
    const given = { ...row, [base.timestamp]: '01.09.2024 14:05:06', ...texts, on: '2.9.2024' }
    const [outcome] = convertRecords(generic, [given], { mapping, source_timezone: 'UTC' })
    assert.ok(outcome !== undefined && 'events' in outcome)
    const [event] = outcome.events
    assert.equal(event!.timestamp, '2024-09-01T14:05:06.000Z')
    const numbers = { a: 1234.5, b: 0.5, c: -1234, d: 1234567.25 }
    assert.deepEqual(event!.properties, { ...texts, ...numbers, on: '2024-09-02T00:00:00.000Z' })
    assert.deepEqual(outcome.notes, ['type_mismatch:e', 'type_mismatch:f', 'type_mismatch:g'])
  })

  it('keeps a field that should be spread but is not an object, with a note', () => {
    const spread = (extra: JsonValue) =>
      convertRecords(generic, [{ ...row, extra }], { mapping: { ...base, spread: ['extra'] } })[0]!
    for (const broken of ['{"a":', '[1]', 5] as const) {
      const outcome = spread(broken)
      assert.ok('events' in outcome)
      assert.equal(outcome.events[0]!.properties.extra, broken)
      assert.deepEqual(outcome.notes, ['spread_no_object:extra'])
    }
    for (const fine of ['{"a":1}', { a: 1 }, '', null]) assert.partialDeepStrictEqual(spread(fine), { notes: [] })
  })

  it('notes only once that a field is not of its type, however often the field is used', () => {
    const mapping = { ...base, types: { n: 'number' }, properties: { n: 'n', m: 'n' }, set: { n: 'n' } }
    assert.partialDeepStrictEqual(convertRecords(generic, [{ ...row, n: 'x' }], { mapping }), [
      { notes: ['type_mismatch:n'] },
    ])
  })

  it('can have groups, updates of its person, and a link to its anonymous id', () => {
    const mapping = {
      ...base,
      groups: { company: 'org.id', none: 'absent' },
      set: ['plan'],
      set_once: { first_plan: 'plan' },
      anon_id: 'device',
    }
    const record = { ...row, org: { id: 42 }, plan: 'pro', device: 'd-1' }
    const [link, event] = eventsOf(generic, [record], { mapping })
    assert.equal(link!.event, '$identify')
    assert.equal(link!.uuid, deriveImportUuid('identify', 'generic', 'u-1', 'd-1'))
    assert.deepEqual(event!.properties, {
      org: { id: 42 },
      $groups: { company: '42' },
      $set: { plan: 'pro' },
      $set_once: { first_plan: 'pro' },
    })
    const [anonymous] = eventsOf(generic, [{ ...record, uid: '' }], { mapping })
    assert.equal(anonymous!.distinct_id, 'd-1')
  })

  it('is in no group whose key is neither text nor an integer, with a note unless the key is absent', () => {
    const mapping = { ...base, groups: { company: 'org' } }
    for (const [org, notes] of [
      [true, ['group_key_illegal:org']],
      [{ id: 42 }, ['group_key_illegal:org']],
      ['', []],
      [null, []],
    ] as const) {
      const [converted] = convertRecords(generic, [{ ...row, org }], { mapping })
      assert.ok(converted !== undefined && 'events' in converted)
      assert.deepEqual([converted.notes, converted.events[0]!.properties.$groups], [notes, undefined])
    }
  })

  it('keeps a uuid in lower case, and without an id derives the uuid from its content', () => {
    const uuid = '018F3A10-0000-7000-8000-000000000804'
    assert.equal(eventsOf(generic, [{ ...row, row_id: uuid }], { mapping: base })[0]!.uuid, uuid.toLowerCase())
    const { uuid: _, ...mapping } = base
    const twice = eventsOf(generic, [row, row], { mapping })
    assert.equal(twice[0]!.uuid, twice[1]!.uuid)
    const kept = eventsOf(generic, [row, row], { mapping, keep_identical: true })
    assert.equal(new Set(kept.map(each => each.uuid)).size, 2)
  })

  it('reads a number as a time in the unit that its size implies, or in the configured one', () => {
    const at = (ts: number | string, more: JsonObject = {}) =>
      eventsOf(generic, [{ ...row, ts }], { mapping: { ...base, ...more } })[0]!.timestamp
    for (const ts of [1714564800, 1714564800000, '1714564800000000', parseJson('1714564800000000000') as number])
      assert.equal(at(ts), '2024-05-01T12:00:00.000Z')
    assert.equal(at(99999999999, { unit: 'ms' }), '1973-03-03T09:46:39.999Z')
  })

  it('is skipped unless it matches all filters', () => {
    const isKept = (filters: JsonValue, record: JsonObject = {}) => {
      const mapping = { ...base, filters }
      const [outcome] = convertRecords(generic, [{ ...row, env: 'prod', n: '10', ...record }], { mapping })
      if ('skipped' in outcome!) assert.equal(outcome.skipped, 'filtered')
      return 'events' in outcome!
    }
    const filter = (field: string, op: string, value?: JsonValue) => ({
      field,
      op,
      ...(value !== undefined && { value }),
    })
    const kept: JsonValue[] = [
      [filter('env', 'eq', 'prod'), filter('n', 'gt', 9)],
      [filter('env', 'in', ['dev', 'prod']), filter('gone', 'not_exists')],
      [filter('env', 'is_set'), filter('env', 'is_not', ['dev', 'test'])],
      { env: ['prod', 'dev'], n: 10 },
    ]
    const skipped: JsonValue[] = [
      [filter('env', 'eq', 'prod'), filter('n', 'lte', 9)],
      [filter('env', 'ne', 'prod')],
      [filter('gone', 'exists')],
      { env: 'dev' },
    ]
    assert.deepEqual(
      [kept, skipped].map(all => all.map(each => isKept(each))),
      [Array(4).fill(true), Array(4).fill(false)],
    )
    const [ten, high, near] = ['10.0', '9007199254740993', '9007199254740992'].map(parseJson) as [
      JsonValue,
      JsonValue,
      JsonValue,
    ]
    const compared: [value: JsonValue, op: string, other: JsonValue, isExpected: boolean][] = [
      [ten, 'eq', 10, true],
      [10, 'in', [ten], true],
      ['10', 'eq', ten, true],
      [ten, 'ne', 10, false],
      ['010', 'eq', '10', false],
      [high, 'gt', near, true],
      [high, 'eq', near, false],
      [high, 'gte', high, true],
      [high, 'lt', high, false],
    ]
    for (const [n, op, other, isExpected] of compared)
      assert.equal(isKept([filter('n', op, other)], { n }), isExpected, `${op} ${JSON.stringify(other)}`)
  })

  it('has the constant event name of the mapping if it has no name itself', () => {
    const { event: _, ...mapping } = base
    assert.equal(eventsOf(generic, [row], { mapping: { ...mapping, event_constant: 'Seen' } })[0]!.event, 'Seen')
  })
})

describe('a mapping', () => {
  const wrong: readonly (readonly [string, JsonObject, RegExp])[] = [
    ['without an id', { event: 'a', timestamp: 't' }, /distinct_id/],
    ['without an event name', { distinct_id: 'a', timestamp: 't' }, /event_constant/],
    ['with an unknown key', { ...base, evnt: 'a' }, /it has no key "evnt": did you mean event\?/],
    [
      'with an unknown key that resembles none',
      { ...base, colour: 'a' },
      /it has no key "colour": its keys are event, .*timestamp/,
    ],
    [
      'with an unknown key of a filter',
      { ...base, filters: [{ field: 'a', op: 'exists', vlaue: 1 }] },
      /\/filters\/0 has no key "vlaue": did you mean value\?/,
    ],
    [
      'with an unknown key of a new name',
      { ...base, event_names: { A: { event: 'B', renam: {} } } },
      /\/event_names\/A has no key "renam": did you mean rename\?/,
    ],
    ['with an unknown type', { ...base, types: { a: 'decimal' } }, /\/types\/a/],
    ['with a filter without a value', { ...base, filters: [{ field: 'a', op: 'eq' }] }, /needs a value/],
    ['with an offset for a zone', { ...base, source_timezone: '+02:00' }, /source_timezone/],
  ]
  for (const [what, mapping, message] of wrong)
    it(`${what} is refused`, () => {
      assert.throws(
        () => convertRecords(generic, [], { mapping }),
        (error: Error) => error instanceof ImportConfigError && message.test(error.message),
      )
    })

  it('is required for records of the generic source', () => {
    assert.throws(() => convertRecords(generic, [], {}), /needs a mapping.*--mapping FILE/)
  })
})

function propertiesOf(record: JsonObject, more: JsonObject): JsonObject {
  return eventsOf(generic, [record], { mapping: { ...base, ...more } })[0]!.properties
}
