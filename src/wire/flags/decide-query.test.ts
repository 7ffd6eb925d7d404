import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type DecideEndpoint, parseDecideQuery, type RawDecideQuery } from './decide-query.ts'

function shapeOf(endpoint: DecideEndpoint, query: RawDecideQuery): string {
  const parsed = parseDecideQuery(query, endpoint)
  assert.ok(parsed.ok)
  return `${parsed.value.shape}${parsed.value.withConfig ? ' with config' : ''}`
}

describe('parseDecideQuery', () => {
  it('reads the answer format and the configuration option of /flags', () => {
    assert.equal(shapeOf('flags', {}), 'V2 with config')
    assert.equal(shapeOf('flags', { config: 'false' }), 'V1')
    assert.equal(shapeOf('flags', { config: '' }), 'V1 with config')
    assert.equal(shapeOf('flags', { v: '2' }), 'V2')
    assert.equal(shapeOf('flags', { v: '0' }), 'V1')
    assert.equal(shapeOf('flags', { v: '-2' }), 'V1')
    assert.equal(shapeOf('flags', { v: 'abc' }), 'V1')
    assert.equal(shapeOf('flags', { v: '' }), 'V2 with config')
    assert.equal(shapeOf('flags', { version: '+3', config: 'maybe' }), 'V3 with config')
    assert.equal(shapeOf('flags', { v: '4' }), 'V3')
    assert.equal(shapeOf('flags', { v: '99' }), 'V3')
    assert.equal(shapeOf('flags', { v: ['1.19.0', '2'] }), 'V2')
  })

  it('reads the answer format and the configuration option of /decide', () => {
    assert.equal(shapeOf('decide', {}), 'D1 with config')
    assert.equal(shapeOf('decide', { v: '1' }), 'D1 with config')
    assert.equal(shapeOf('decide', { v: '1.8.2' }), 'D2 with config')
    assert.equal(shapeOf('decide', { v: '3', config: '0' }), 'V1')
    assert.equal(shapeOf('decide', { v: '4' }), 'V2 with config')
  })

  it('refuses only a send time that is not an integer', () => {
    assert.equal(parseDecideQuery({ sent_at: 'soon' }, 'flags').ok, false)
    assert.equal(parseDecideQuery({ _: '1.5' }, 'flags').ok, false)
    assert.equal(parseDecideQuery({ _: '1752000000000', ip: '1', lib_version: 'x' }, 'flags').ok, true)
  })
})
