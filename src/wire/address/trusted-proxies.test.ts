import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clientAddress } from './client-address.ts'
import { parseTrustedProxies, type TrustedProxies } from './trusted-proxies.ts'

function trusting(setting: string): TrustedProxies {
  const parsed = parseTrustedProxies(setting)
  assert.ok(parsed.ok)
  return parsed.value
}

describe('parseTrustedProxies', () => {
  it('knows loopback and private peers by name', () => {
    const proxies = trusting('loopback,private')
    for (const address of [
      '127.0.0.1',
      '127.8.9.1',
      '::1',
      '10.1.2.3',
      '172.31.0.1',
      '192.168.0.1',
      'fd00::1',
      'fe80::1',
    ]) {
      assert.equal(proxies.trusts(address), true, address)
    }
    for (const address of ['203.0.113.7', '172.32.0.1', '2001:db8::1', '', 'nonsense']) {
      assert.equal(proxies.trusts(address), false, address)
    }
  })
  it('accepts addresses and ranges, and trusts no peer when empty', () => {
    const proxies = trusting(' 203.0.113.7 , 198.51.100.0/24, 2001:db8::/32')
    for (const address of ['203.0.113.7', '198.51.100.255', '2001:db8:1::1'])
      assert.equal(proxies.trusts(address), true)
    for (const address of ['203.0.113.8', '127.0.0.1', '2001:db9::1']) assert.equal(proxies.trusts(address), false)
    assert.equal(trusting('').trusts('127.0.0.1'), false)
  })
  it('names the entry that it does not understand', () => {
    for (const entry of ['localhost', '10.0.0.0/33', '::1/129', '10.0.0.0/', '10.0.0.0/8/8', '__proto__']) {
      assert.deepEqual(parseTrustedProxies(`loopback,${entry}`), { ok: false, error: entry })
    }
  })
})

describe('clientAddress', () => {
  const proxies = trusting('loopback')
  it('is the peer, IPv4 never written as IPv6', () => {
    assert.equal(clientAddress({}, '::ffff:203.0.113.7', proxies), '203.0.113.7')
    assert.equal(clientAddress({}, 'fe80::1%eth0', proxies), 'fe80::1')
    assert.equal(clientAddress({}, undefined, proxies), '')
  })
  it('believes a forwarding header only from a trusted peer', () => {
    const headers = { 'x-forwarded-for': '198.51.100.1, 10.0.0.1' }
    assert.equal(clientAddress(headers, '::ffff:127.0.0.1', proxies), '198.51.100.1')
    assert.equal(clientAddress(headers, '203.0.113.7', proxies), '203.0.113.7')
  })
  it('takes the literally named header first, and the left-most entry that parses', () => {
    const headers = { http_x_forwarded_for: 'unknown, 198.51.100.2:8080', 'x-forwarded-for': '198.51.100.1' }
    assert.equal(clientAddress(headers, '127.0.0.1', proxies), '198.51.100.2')
    assert.equal(clientAddress({ ...headers, http_x_forwarded_for: 'unknown' }, '127.0.0.1', proxies), '198.51.100.1')
    assert.equal(clientAddress({ 'x-forwarded-for': 'unknown' }, '127.0.0.1', proxies), '127.0.0.1')
    assert.equal(clientAddress({ 'x-forwarded-for': '[2001:db8::1]:80' }, '127.0.0.1', proxies), '2001:db8::1')
  })
})
