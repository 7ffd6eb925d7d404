import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stripVisitorsFromBody } from './cookieless-body.ts'

const telling = { $ip: '1.1.1.1', $raw_user_agent: 'A', $initial_raw_user_agent: 'A', $cookieless_extra: 'x' }
const properties = { n: 1, $cookieless_mode: true, ...telling, $set: { ...telling, plan: 'pro' }, $set_once: telling }
const item = { event: 'e', properties, $set: telling, $set_once: { ...telling, from: 'ad' } }
const stripped = {
  event: 'e',
  properties: { n: 1, $cookieless_mode: true, $set: { plan: 'pro' }, $set_once: {} },
  $set: {},
  $set_once: { from: 'ad' },
}
const ordinary = { event: 'e', properties: { ...telling, $cookieless_mode: false } }

describe('a refused body for the reject store', () => {
  it('loses the identifying properties of its cookieless events in every body shape; other events are unchanged', () => {
    const optional = { event: 'e', options: { cookieless_mode: '1' }, properties: telling }
    for (const [sent, expected] of [
      [item, stripped],
      [
        [ordinary, item],
        [ordinary, stripped],
      ],
      [
        { api_key: 'k', batch: [item, ordinary] },
        { api_key: 'k', batch: [stripped, ordinary] },
      ],
      [
        { api_key: 'k', data: [item] },
        { api_key: 'k', data: [stripped] },
      ],
      [{ batch: [optional] }, { batch: [{ ...optional, properties: {} }] }],
      [
        { ...item, properties: { ...properties, $cookieless_mode: 'yes' } },
        { ...stripped, properties: { ...stripped.properties, $cookieless_mode: 'yes' } },
      ],
    ])
      assert.deepEqual(JSON.parse(stripVisitorsFromBody(JSON.stringify(sent))!), expected)
  })

  it('loses its identifying properties even if no events can be read, and however the keys are spelt', () => {
    const shown = { event: 'e', $cookieless_mode: true, ...telling }
    for (const sent of [
      { batch: [[item]] },
      [[[item]]],
      { batch: item },
      { batch: [{ event: 'e', properties: [shown] }] },
      { batch: [shown] },
      { ...item, ...telling },
    ]) {
      const text = JSON.stringify(sent)
      assert.doesNotMatch(stripVisitorsFromBody(text)!, /1\.1\.1\.1|"A"/, text)
      const escaped = text.replaceAll('$cookieless_mode', '$cookieless\\u005Fmode').replaceAll('$ip', '\\u0024ip')
      assert.doesNotMatch(stripVisitorsFromBody(escaped)!, /1\.1\.1\.1|"A"/, escaped)
    }
  })

  it('keeps the number literals of events that are not cookieless', () => {
    const text = '[{"properties":{"$cookieless_mode":true,"$ip":"1"}},{"a":1.0,"b":12345678901234567890}]'
    assert.equal(
      stripVisitorsFromBody(text),
      '[{"properties":{"$cookieless_mode":true}},{"a":1.0,"b":12345678901234567890}]',
    )
  })

  it('is null when it has no cookieless data to remove', () => {
    for (const text of [
      JSON.stringify(ordinary),
      '{"a":1.0}',
      '{',
      '{"text":"\\u0061"',
      '"cookieless_mode"',
      '{"options":{"cookieless_mode":null}}',
    ])
      assert.equal(stripVisitorsFromBody(text), null, text)
  })

  it('is empty when it mentions cookieless mode and cannot be parsed', () => {
    assert.equal(stripVisitorsFromBody('{"$cookieless_mode":true,"$ip":"1.1.1.1"'), '')
  })

  it('is empty when it mentions cookieless mode and is too long to be parsed in time', () => {
    const long = (mode: string) =>
      JSON.stringify({ event: 'e', properties: { $ip: '1.1.1.1', [mode]: true, x: filler } })
    const filler = 'x'.repeat(300_000)
    assert.equal(stripVisitorsFromBody(long('$cookieless_mode')), '')
    assert.equal(stripVisitorsFromBody(long('$cookieless_mode').replace('_mode', '\\u005fmode')), '')
    assert.equal(stripVisitorsFromBody(long('$other')), null)
  })
})
