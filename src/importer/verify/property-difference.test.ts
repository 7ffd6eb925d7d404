import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { addMarkerProperties } from '../send/encode-event.ts'
import { findPropertyDifference } from './property-difference.ts'

const marks = { source: 'generic', jobId: '7' }

function difference(properties: JsonObject, stored: JsonObject, event = 'Paid'): string | null {
  const sent = { uuid: '0b9d1f9e-6a51-5f0a-9a55-0d2c0e2a3b4c', event, distinctId: 'u', timeUs: 0, properties }
  return findPropertyDifference(sent, { ...addMarkerProperties({ ...sent, properties: {} }, marks), ...stored }, marks)
}

describe('the properties of a stored event', () => {
  it('are compared one by one', () => {
    assert.equal(difference({ a: 1, b: [1] }, { b: [1], a: 1, $ip: 'x' }), null)
    assert.equal(difference({ a: 1 }, {}), 'the property a is missing')
    assert.equal(difference({ a: 1 }, { a: 2 }), 'the property a is 2')
    assert.equal(difference({ a: 'x' }, { a: 'X' }), 'the property a is "X"')
  })

  it('may have additions in $set and $set_once, but only from the event itself and with a person profile', () => {
    const sent = { $set: { a: 1 }, $set_once: { b: 1 } }
    assert.equal(difference(sent, sent), null)
    const $initial_browser = 'x'
    const lifted = { $browser: 'x', $set: { $browser: 'x', a: 1 }, $set_once: { $initial_browser, b: 1 } }
    assert.equal(difference({ ...sent, $browser: 'x' }, lifted), null)
    assert.match(difference(sent, { ...sent, $set: { a: 1, c: 1 } })!, /^the property \$set is /)
    assert.equal(difference(sent, { ...sent, $set: { a: 1, $geoip_country_code: 'NO' } }), null)
    assert.equal(
      difference({ $ai_model: 'm', $os: 'x', $set: { a: 1 } }, { $ai_model: 'm', $os: 'x' }, '$ai_generation'),
      null,
    )
    assert.equal(difference(sent, { $set: { a: 2 }, $set_once: { b: 1 } }), 'the property $set is {"a":2}')
    assert.equal(difference(sent, { $set: {}, $set_once: { b: 1 } }), 'the property $set is {}')
    assert.equal(difference(sent, {}), 'the property $set is missing')
    assert.equal(difference({ ...sent, $process_person_profile: false }, { $process_person_profile: false }), null)
  })

  it('do not include those that become columns and those that the service never stores', () => {
    assert.equal(difference({ $elements: [], $elements_chain: 'a', $group_0: 'x', distinct_id: 'u' }, {}), null)
    assert.equal(difference({ $process_person_profile: true, $ip: '192.0.2.1' }, {}), null)
    assert.equal(difference({ $ip: '192.0.2.1' }, { $ip: '192.0.2.2' }), 'the property $ip is "192.0.2.2"')
    const call = { $feature_flag: 'f', $feature_flag_response: true, n: 1 }
    assert.equal(difference(call, { $feature_flag: 'f', $feature_flag_response: true }, '$feature_flag_called'), null)
    assert.match(difference(call, { n: 1, $feature_flag: 'f' }, '$feature_flag_called')!, /response is missing/)
    assert.match(
      difference({ ...call, $feature_flag_response: 'v' }, call, '$feature_flag_called')!,
      /response is true/,
    )
    assert.equal(difference({ $ai_gateway_x: 1 }, {}, '$ai_generation'), null)
    assert.match(difference({ $ai_gateway_x: 1 }, {})!, /missing/)
  })

  it('have the session id in lower case', () => {
    assert.equal(difference({ $session_id: 'ABC' }, { $session_id: 'abc' }), null)
    assert.equal(difference({ $session_id: 'ABC' }, { $session_id: 'abd' }), 'the property $session_id is "abd"')
  })
})
