// The allowed contents of a v0 body: shapes, types of fields, tokens, distinct ids and uuids (docs/wire/ingestion.md 2),
// with bodies as clients write them and the answers that they get.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { startCaptureEdge } from '../support/capture-edge.ts'
import { testToken } from '../support/capture-server.ts'
import { startedForTests } from '../support/started-for-tests.ts'

const edge = startedForTests(startCaptureEdge)

const json = JSON.stringify
const item = { event: 'e', distinct_id: 'u' }
const event = { ...item, api_key: testToken }
const marked = { ...item, historical_migration: true }
/** The body of one event with these fields, which are JSON text. */
const written = (fields: string) => `{"api_key":"${testToken}","event":"e",${fields}}`
const uuid = '0197c5a0-0000-7000-8000-000000000abc'

async function sent(body: string | object, path = '/e/') {
  return edge.send({ path, body: typeof body === 'string' ? body : json(body) })
}

function stores(
  rows: readonly (readonly [what: string, body: string | object, expected: Partial<CapturedEvent>, path?: string])[],
) {
  for (const [what, body, expected, path] of rows) {
    it(`accepts ${what}`, async () => {
      const answer = await sent(body, path)
      assert.equal(answer.status, 200, answer.body)
      assert.equal(answer.events.length, 1)
      const [stored] = answer.events
      for (const [field, value] of Object.entries(expected))
        assert.equal(stored![field as keyof CapturedEvent], value, field)
    })
  }
}

function refuses(
  rows: readonly (readonly [what: string, body: string | object, detail: string, status?: number, path?: string])[],
) {
  for (const [what, body, detail, status = 400, path] of rows) {
    it(`refuses ${what}`, async () => {
      const answer = await sent(body, path)
      const code = detail.startsWith('API key') && status === 401 ? (codes[detail] ?? 'invalid_api_key') : codes[detail]
      assert.deepEqual([answer.status, answer.detail, answer.code], [status, detail, code ?? answer.code])
      assert.deepEqual(answer.events, [])
    })
  }
}

const noShape = 'failed to parse request: data did not match any variant of untagged enum RawRequest'
const noName = 'failed to hydrate events from request: non-engage request missing event name attribute'
const emptyName = 'event submitted with an empty event name'
const noEvent = 'request holds no event'
const noId = 'event submitted without a distinct_id'
const noKey = 'event submitted without an api_key'
const twoKeys = 'batch submitted with inconsistent api_key values'
const badKey = (fault: string) => `API key is not valid: ${fault}`
const unknownKey = 'API key does not belong to any project. Check the project API key in your PostHog project settings'
const halfCharacter = 'failed to parse request: lone surrogate in a unicode escape'
const noBoolean = 'event submitted with invalid cookieless mode'
/** `noName` is also the text for other faults of a batch, whose codes `bad-input.test.ts` compares. */
const codes: Readonly<Record<string, string>> = {
  [noShape]: 'invalid_shape',
  [emptyName]: 'missing_event_name',
  [noEvent]: 'empty_batch',
  [noId]: 'missing_distinct_id',
  [noKey]: 'missing_api_key',
  [twoKeys]: 'inconsistent_api_keys',
  [unknownKey]: 'unknown_api_key',
  [halfCharacter]: 'invalid_json',
  [noBoolean]: 'invalid_cookieless_mode',
}

describe('v0 capture (body shapes)', () => {
  it('accepts a list, a batch, an event, and an update of a person on /engage', async () => {
    const bodies: [object, number, string?][] = [
      [[event, { ...item, token: testToken }, item], 3],
      [{ api_key: testToken, batch: [item, item] }, 2],
      [{ token: testToken, batch: [item], sent_at: null, historical_migration: null }, 1],
      [{ api_key: testToken, batch: [{ event: '$performance_event' }, item] }, 1],
      [[{ event: '$performance_event' }], 0],
      [{ api_key: 'phx_bad', batch: [{ event: '$performance_event' }] }, 0],
      [{ api_key: testToken, batch: [item] }, 1, '/engage/'],
      [{ ...event, data: [item, item] }, 1],
    ]
    for (const [body, count, path] of bodies) {
      const answer = await sent(body, path)
      assert.deepEqual([answer.status, answer.events.length], [200, count], json(body))
    }
  })
  stores([
    ['a batch before an event', { api_key: testToken, batch: [item], event: 'root' }, { name: 'e' }],
    [
      'a nameless update on /engage',
      { api_key: testToken, distinct_id: 'u', $set: { a: 1 } },
      { name: '$identify', setJson: '{"a":1}' },
      '/engage',
    ],
    ['a named update on /engage', event, { name: 'e' }, '/engage'],
    ['no mark of imports in an item', { api_key: testToken, batch: [marked] }, { historicalMigration: false }],
    ['no mark of imports in an event', { ...marked, api_key: testToken }, { historicalMigration: false }],
  ])
  it('hints that a list under `events` must be sent as `batch`', async () => {
    const { body, code } = await sent({ api_key: testToken, events: [item] })
    assert.equal(code, 'missing_event_name')
    assert.match(JSON.parse(body).hint, /a list of events is in `batch`/)
  })
  refuses([
    ['text', '"text"', noShape],
    ['a number', '5', noShape],
    ['a list of lists', [[event]], noShape],
    ['a list with a nameless item', [event, { distinct_id: 'u' }], noShape],
    ['a list of nameless items on /engage', [{ token: testToken, distinct_id: 'u' }], noShape, 400, '/engage'],
    ['an empty object', '{}', noName],
    ['an empty list', [], noEvent],
    ['an empty batch', { api_key: testToken, batch: [] }, noEvent],
    ['an empty batch before its bad key', { api_key: 'phx_', batch: [] }, noEvent],
    ['an object without a name', { api_key: testToken, distinct_id: 'u' }, noName],
    ['a name that is null', { ...event, event: null }, noName],
    ['a batch without a key', { batch: [item] }, noName],
    ['a batch with a nameless item', { api_key: testToken, batch: [item, { distinct_id: 'u' }] }, noName],
    ['a batch that is an object', { api_key: testToken, batch: { 0: item } }, noName],
    ['a batch with two keys', { api_key: testToken, token: testToken, batch: [item] }, noShape],
    ['a batch with a key that is a number', { api_key: 5, batch: [item] }, noShape],
    ['an empty name', { ...event, event: '' }, emptyName],
    ['an empty name on /engage', { ...event, event: '' }, emptyName, 400, '/engage'],
  ])
})

describe('v0 capture (event fields)', () => {
  stores([
    ['no properties', event, { propertiesJson: '{}' }],
    [
      'PHP’s empty lists',
      { ...event, properties: [], $set: [], $set_once: [] },
      { propertiesJson: '{}', setJson: null, setOnceJson: null },
    ],
    ['fields that are null', { ...event, $set: null, timestamp: null, offset: null }, { setJson: null }],
    ['the largest offset', written('"distinct_id":"u","offset":9223372036854775807'), { timestampMs: 0 }],
    ['the smallest offset', written('"distinct_id":"u","offset":-9223372036854775808'), {}],
    [
      'offsets under a key in escapes',
      written('"distinct_id":"u","\\u006fffset":1000'),
      { timestampMs: Date.parse('2025-07-01T10:59:59Z') },
    ],
    ['a uuid', { ...event, uuid }, { uuid }],
    ['a uuid without dashes', { ...event, uuid: uuid.replaceAll('-', '') }, { uuid }],
    ['a uuid in braces', { ...event, uuid: `{${uuid}}` }, { uuid }],
    ['a uuid as a URN', { ...event, uuid: `urn:uuid:${uuid}` }, { uuid }],
    ['an old message id that is a uuid', { ...event, uuid: '', messageId: uuid }, { uuid }],
    ['an old message id that is none', { ...event, uuid: null, messageId: 'msg-1' }, {}],
    ['the nil uuid', { ...event, uuid: '00000000-0000-0000-0000-000000000000' }, {}],
    [
      'NUL in properties',
      written('"distinct_id":"u","properties":{"a":"\\u0000"}'),
      { propertiesJson: '{"a":"\\u0000"}' },
    ],
    ['whole characters in escapes', written('"distinct_id":"u","properties":{"a":"\\ud83d\\ude00\\\\ud800"}'), {}],
    [
      'the last of repeated properties',
      written('"distinct_id":"u","properties":{"a":1},"properties":{"b":2}'),
      { propertiesJson: '{"b":2}' },
    ],
    ['a name of 200 astral characters', { ...event, event: '😀'.repeat(201) }, { name: '😀'.repeat(200) }],
  ])
  const fields = ['null', '[1]', '"{}"', '5', 'true'].map(value => `"properties":${value}`)
  const bad = [
    ...fields,
    ...['1', '1.5', 'true', '{}', '[]'].map(value => `"timestamp":${value}`),
    ...['1.5', '1.0', '1e3', '-0.0', '"5"', '9223372036854775808', '-9223372036854775809', '1e400'].map(
      value => `"offset":${value}`,
    ),
    ...['[1]', '"a"', '1', 'false'].flatMap(value => [`"$set":${value}`, `"$set_once":${value}`]),
    ...['"x"', '5', `" ${uuid}"`, `"{${uuid}"`, `"${uuid.slice(1)}"`].map(value => `"uuid":${value}`),
    ...[`"token":"${testToken}"`, '"$token":null', '"api_key":5'],
    '"$distinct_id":"v"',
    '"$distinct_id":null',
  ]
  refuses(bad.map(field => [field, written(`"distinct_id":"u",${field}`), noShape] as const))
  refuses([
    [
      'an offset with a point in a batch',
      `{"api_key":"${testToken}","batch":[{"event":"e","distinct_id":"u","offset":1.0}]}`,
      noName,
    ],
    ['a cookieless mode that is text', { ...event, properties: { $cookieless_mode: 'true' } }, noBoolean],
    ['a cookieless mode that is null', { ...event, properties: { $cookieless_mode: null } }, noBoolean],
  ])
  it('generates a version 7 uuid from the time of the event, or from 1970 for earlier times', async () => {
    for (const [timestamp, expectedMs] of [
      ['2025-07-01T10:00:00.123Z', Date.parse('2025-07-01T10:00:00.123Z')],
      ['1969-12-31T23:59:59Z', 0],
    ] as const) {
      const [stored] = (await sent({ ...event, timestamp, uuid: null })).events
      assert.equal(Number.parseInt(stored!.uuid.replaceAll('-', '').slice(0, 12), 16), expectedMs)
      assert.match(stored!.uuid, /^.{14}7.{4}[89ab]/)
    }
  })
})

describe('v0 capture (project keys)', () => {
  const withKey = (api_key: unknown) => ({ ...item, api_key })
  const keyInside = { ...item, properties: { token: testToken } }
  stores([
    ['$token', { ...item, $token: testToken }, {}],
    ['a key of an item under data', { data: [{ ...item, token: testToken }] }, {}],
    ['a key among an item’s properties', { batch: [{ ...item, properties: { token: testToken } }] }, {}],
    ['a key of the query', item, {}, `/e/?token=${testToken}`],
    ['an item’s key before the query’s', { batch: [event] }, {}, '/e/?token=phc_b'],
    ['the key among the properties before the query’s', keyInside, {}, '/e/?token=phc_b'],
    ['a form’s key before the query’s', `data=${json(item)}&token=${testToken}`, {}, '/e/?token=phc_b'],
    [
      'a key among the properties where the field is null',
      { ...item, token: null, properties: { token: testToken } },
      { propertiesJson: json({ token: testToken }) },
    ],
  ])
  refuses([
    ['no key', item, noKey, 401],
    ['null', withKey(null), noKey, 401],
    ['a number among the properties', { ...item, properties: { token: 5 } }, noKey, 401],
    ['an unknown key of 64 bytes', withKey('a'.repeat(64)), unknownKey, 401],
    ['a key that is not ASCII', withKey('é'), badKey('not_ascii'), 401],
    ['a personal key', withKey('phx_a'), badKey('personal_api_key'), 401],
    ['__proto__', withKey('__proto__'), unknownKey, 401],
    ['two keys', [event, { ...item, token: 'phc_b' }], twoKeys, 401],
    ['two keys, one among the properties', [event, { ...item, properties: { token: 'phc_b' } }], twoKeys, 401],
    ['an unknown key before a bad event', { api_key: 'phc_b', batch: [{ event: '' }] }, unknownKey, 401],
  ])
  it('answers an unknown key with PostHog’s text and a hint where to find the keys of this instance', async () => {
    const { body } = await sent(withKey('phc_b'))
    assert.match(JSON.parse(body).hint, /GET \/api\/projects\/ on this Pennon/)
  })
})

describe('v0 capture (distinct ids)', () => {
  const ids: readonly (readonly [literal: string, distinctId: string])[] = [
    ['23', '23'],
    ['-1', '-1'],
    ['23.4', '23.4'],
    ['23.0', '23.0'],
    ['1e2', '100.0'],
    ['true', 'true'],
    ['9007199254740993', '9007199254740993'],
    ['18446744073709551615', '18446744073709551615'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['["a", 1.0, null]', '["a",1.0,null]'],
    ['{"b":1,"a":{"d":"é","c":[]}}', '{"a":{"c":[],"d":"é"},"b":1}'],
    ['[]', '[]'],
    ['" a\\t"', ' a\t'],
    ['"\\u0000"', '\ufffd'],
    ['"a\\u0000b"', 'a\ufffdb'],
    [json('x'.repeat(201)), 'x'.repeat(200)],
    [json('x'.repeat(200)), 'x'.repeat(200)],
    [json('😀'.repeat(201)), '😀'.repeat(200)],
    [json(`${'x'.repeat(199)}😀😀`), `${'x'.repeat(199)}😀`],
    ['1e400', '1e400'],
    ['-1E+401', '-1E+401'],
  ]
  const inside: readonly (readonly [properties: string, distinctId: string])[] = [
    ['{"distinct_id":null,"$distinct_id":"aliased"}', 'aliased'],
    ['{"distinct_id":"inside","$distinct_id":"aliased"}', 'inside'],
    ['{"distinct_id":12345678901234567891}', '12345678901234567891'],
    ['{"é":1,"distinct_id":12345678901234567891}', '12345678901234567891'],
    ['{"distinct_id":[1e400]}', '[1e400]'],
    ['{"distinct_id":1,"a":{"distinct_id":2},"distinct_id" : 1.50 }', '1.5'],
  ]
  const fields = [
    ...ids.map(([literal, distinctId]) => [`"distinct_id":${literal}`, distinctId] as const),
    ...inside.map(([properties, distinctId]) => [`"properties":${properties}`, distinctId] as const),
  ]
  stores(fields.map(([field, distinctId]) => [field.slice(0, 60), written(field), { distinctId }] as const))
  refuses([
    ['none', written('"properties":{}'), noId],
    ['null twice', written('"distinct_id":null,"properties":{"distinct_id":null}'), noId],
    ['nothing, which does not fall through', written('"distinct_id":"","properties":{"distinct_id":"p"}'), noId],
    ['blanks', written('"distinct_id":" \\t\\n\\u00a0\\u3000"'), noId],
    ['half a character', written('"distinct_id":"\\ud800"'), halfCharacter],
    ['the second half of one', written('"distinct_id":"u","properties":{"a":["\\udc00"]}'), halfCharacter],
  ])
})
