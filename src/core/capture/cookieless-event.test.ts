import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findModeDropReason, readVisitor, stripIdentifyingMembers } from './cookieless-event.ts'

describe('the properties of an event that identify its visitor', () => {
  it('are read however they are written, and the last one counts if a name is repeated', () => {
    const { facts } = readVisitor(
      '{"$ip":"1.1.1.1","\\u0024raw_user_agent" : "A \\"B\\" \\u00e9" ,"$host":7,"$timezone":["UTC"],"$ip":"2.2.2.2",' +
        '"$cookieless_extra":null,"deep":{"$host":"x"}}',
    )
    assert.deepEqual(facts, {
      ...{ ip: '2.2.2.2', userAgent: 'A "B" é', host: '', extra: '', timezone: '' },
      isGeoipDisabled: false,
    })
    const disabled = (value: string) => readVisitor(`{"$geoip_disable":${value}}`).facts.isGeoipDisabled
    assert.deepEqual(['true', '1', '"yes"', 'false', '0', 'null', '""'].map(disabled), [
      true,
      true,
      true,
      false,
      false,
      false,
      false,
    ])
  })

  it('are read up to a length that no browser exceeds', () => {
    const long = JSON.stringify('x'.repeat(100_000))
    const { facts } = readVisitor(
      `{"$ip":${long},"$raw_user_agent":${long},"$host":${long},"$cookieless_extra":${long}}`,
    )
    assert.deepEqual(
      [facts.ip, facts.userAgent, facts.host, facts.extra].map(text => text.length),
      Array(4).fill(4_096),
    )
  })

  it('are removed from the text of the event, as are ids, and the rest stays as it was written', () => {
    const { strippedJson } = readVisitor(
      '{"a":1.0,"$ip":"1.1.1.1","\\u0024raw_user_agent":"A","$set":{ "n":1e2,"$raw_user_agent":"A" },' +
        '"$set_once":{"$initial_raw_user_agent":{"b":"}"}},"$cookieless_extra":"x","$session_id":"s","$ip":5,"$device_id":null,' +
        '"$set":"none","big":12345678901234567890}',
    )
    assert.equal(strippedJson, '{"a":1.0,"$set":{ "n":1e2},"$set_once":{},"$set":"none","big":12345678901234567890}')
    assert.equal(stripIdentifyingMembers('{"a":1.0 }'), undefined)
  })
})

it('every cookieless mode drops merges, stateless mode drops $identify, and mode off drops all cookieless events', () => {
  const names = ['$create_alias', '$merge_dangerously', '$identify', 'e']
  const drops = ([0, 1, 2] as const).map(mode => names.map(name => findModeDropReason(name, mode)))
  const [merge, off] = ['cookieless_unsupported_event', 'cookieless_team_disabled']
  assert.deepEqual(drops, [
    [merge, merge, off, off],
    [merge, merge, 'cookieless_stateless_no_identify', null],
    [merge, merge, null, null],
  ])
})
