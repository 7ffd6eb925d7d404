import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildTailAddress, type TailOptions } from './tail-address.ts'

const here = { instance: null, host: '127.0.0.1', port: 8000, adminPort: null }
const nothing: TailOptions = { project: '@current', rejected: true }

function viewOf(options: Partial<TailOptions>, place: Parameters<typeof buildTailAddress>[1] = here): URL {
  const address = buildTailAddress({ ...nothing, ...options }, place)
  assert.ok(address.ok, address.ok ? '' : address.error)
  return address.value.view
}

function paramsOf(options: Partial<TailOptions>): [string, string][] {
  return [...viewOf(options).searchParams]
}

describe('the address of a live view', () => {
  it('comes from the settings, or from --host', () => {
    const path = '/api/projects/%40current/events/live/?'
    assert.equal(viewOf({}).href, `http://127.0.0.1:8000${path}`)
    assert.equal(viewOf({}, { ...here, host: '0.0.0.0', adminPort: 9000 }).href, `http://127.0.0.1:9000${path}`)
    assert.equal(viewOf({}, { ...here, host: '::1' }).href, `http://[::1]:8000${path}`)
    assert.equal(viewOf({ host: 'https://pennon.example/x/' }).href, `https://pennon.example/x${path}`)
    assert.equal(viewOf({ project: 'a/b' }).pathname, '/api/projects/a%2Fb/events/live/')
  })

  it('has the command’s options as query parameters', () => {
    assert.deepEqual(paramsOf({ event: ['a', 'b,c'], distinctId: ['ada'] }), [
      ['event', 'a'],
      ['event', 'b,c'],
      ['distinct_id', 'ada'],
    ])
    assert.deepEqual(paramsOf({ rejected: false }), [['rejected', 'false']])
    const [[name, json] = [], ...others] = paramsOf({ property: ['plan=pro', 'a=b=c', 'empty='] })
    assert.deepEqual([name, others], ['properties', []])
    assert.deepEqual(JSON.parse(json!), [
      { key: 'plan', value: 'pro' },
      { key: 'a', value: 'b=c' },
      { key: 'empty', value: '' },
    ])
  })

  it('includes imports, also together with other lanes', () => {
    assert.deepEqual(paramsOf({ historical: true }), [['historical', 'true']])
    assert.deepEqual(paramsOf({ lane: ['ai,main'], historical: true }), [
      ['lane', 'ai,main'],
      ['lane', 'historical'],
    ])
  })

  it('is refused if an option would be silently ignored', () => {
    for (const [options, reason] of [
      [{ event: [''] }, /--event/],
      [{ distinctId: [''] }, /--distinct-id/],
      [{ lane: [''] }, /--lane/],
      [{ property: ['plan'] }, /--property must be key=value/],
      [{ property: ['=pro'] }, /--property must be key=value/],
      [{ host: 'ftp://pennon.example' }, /--host/],
    ] as const) {
      const address = buildTailAddress({ ...nothing, ...options }, here)
      assert.ok(!address.ok)
      assert.match(address.error, reason)
    }
  })
})
