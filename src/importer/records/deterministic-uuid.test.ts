import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { uuidV5 } from '#core/events/uuid-v5.ts'
import { type JsonObject, parseJson, parseJsonWithDoubles } from '#core/json.ts'
import { toCanonicalJson } from './canonical-json.ts'
import {
  deriveContentUuid,
  deriveImportUuid,
  deriveMixpanelUuid,
  deriveSessionUuid,
  hashCanonicalContent,
} from './deterministic-uuid.ts'

const bytesOf = (uuid: string) => Buffer.from(uuid.replaceAll('-', ''), 'hex')

describe('the uuid of an imported event', () => {
  it('is derived from a root uuid, which is derived from the name historical-import.v1', () => {
    const dns = bytesOf('6ba7b810-9dad-11d1-80b4-00c04fd430c8')
    const root = bytesOf(uuidV5(dns, 'historical-import.v1'))
    assert.equal(deriveImportUuid('heap', 'pageviews', '42'), uuidV5(root, 'heap\npageviews\n42'))
  })

  it('equals the uuid that PostHog derives from a Mixpanel $insert_id', () => {
    assert.equal(deriveMixpanelUuid('ins-0001'), uuidV5(Buffer.from('posthog_mixpanel'), 'ins-0001'))
    assert.equal(deriveMixpanelUuid('ins-0001'), 'c438ff46-f75b-5901-8dc6-c68078337757')
  })

  it('depends on the content of a record, not on its formatting', () => {
    const uuidOf = (text: string) => deriveContentUuid('generic', parseJson(text) as JsonObject)
    const uuid = uuidOf('{"a":1,"b":{"c":[true,null],"d":"é"}}')
    assert.equal(uuidOf('{ "b" : {"d":"\\u00e9","c":[true,null]}, "a" : 1.0 }'), uuid)
    assert.notEqual(uuidOf('{"a":1,"b":{"c":[null,true],"d":"é"}}'), uuid)
    assert.notEqual(deriveContentUuid('posthog', { a: 1 }), deriveContentUuid('generic', { a: 1 }))
  })

  it('differs for ids that differ only in a digit that a double cannot represent', () => {
    const uuidOf = (id: string) => deriveContentUuid('generic', parseJson(`{"id":${id}}`) as JsonObject)
    assert.notEqual(uuidOf('9007199254740993'), uuidOf('9007199254740992'))
    assert.equal(uuidOf('9007199254740992'), deriveContentUuid('generic', { id: 2 ** 53 }))
  })
})

describe('canonical JSON', () => {
  it('follows RFC 8785', () => {
    const text =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\nA\'B\\"\\\\\\"/","literals":[null,true,false]}'
    assert.equal(
      toCanonicalJson(parseJson(text)),
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\"/"}',
    )
    // Keys are sorted by UTF-16 units, not by code points.
    assert.equal(
      toCanonicalJson({ '\ufb33': 1, '\u{1f600}': 2, '1': 3, '\r': 4 }),
      '{"\\r":4,"1":3,"\u{1f600}":2,"\ufb33":1}',
    )
    assert.equal(toCanonicalJson(parseJson('[-0,-0.0,1.0]')), '[0,0,1]')
  })

  it('is the same for any order of keys, and parses to the same value', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), record => {
        const reversed = Object.fromEntries(Object.entries(record).toReversed())
        const text = toCanonicalJson(record as JsonObject)
        assert.equal(toCanonicalJson(reversed as JsonObject), text)
        assert.deepEqual(parseJsonWithDoubles(text), parseJsonWithDoubles(JSON.stringify(record)))
      }),
    )
  })

  it('is the input of content hashes', () => {
    assert.equal(hashCanonicalContent({}), hash('sha256', '{}'))
    assert.equal(hashCanonicalContent({ b: 1, a: 2 }), hash('sha256', '{"a":2,"b":1}'))
  })
})

describe('the uuid of a session', () => {
  it('is a version 7 whose time is the start of the session', () => {
    const uuid = deriveSessionUuid(1_714_564_790_000, 'amplitude', 'session', 'd-210', '1714564790000')
    assert.equal(uuid, '018f3406-76f0-7f6e-9163-62e17dea2366')
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.string(), (startMs, id) => {
        const made = deriveSessionUuid(startMs, 'matomo', 'session', id)
        assert.match(made, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        assert.equal(bytesOf(made).readUIntBE(0, 6), startMs)
        assert.equal(made, deriveSessionUuid(startMs, 'matomo', 'session', id))
      }),
    )
    assert.equal(deriveSessionUuid(-5, 'ga4', 'session', 'a'), deriveSessionUuid(0, 'ga4', 'session', 'a'))
    assert.notEqual(deriveSessionUuid(5, 'ga4', 'session', 'a'), deriveSessionUuid(5, 'ga4', 'session', 'b'))
  })
})
