import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findAddressBlock, findClientAddress, findGeoipAddress, findSenderNetwork } from './client-address.ts'
import { readVisitorFromHeaders } from './request-visitor.ts'
import { parseTrustedProxies, type TrustedProxies } from './trusted-proxies.ts'

function trusting(setting: string): TrustedProxies {
  const parsed = parseTrustedProxies(setting)
  assert.ok(parsed.ok)
  return parsed.value
}

describe('parseTrustedProxies', () => {
  it('accepts named ranges, addresses and CIDR ranges, and trusts no proxy if the list is empty', () => {
    for (const [setting, trusted, others] of [
      [
        'loopback,private',
        '127.0.0.1 127.8.9.1 ::1 10.1.2.3 172.31.0.1 192.168.0.1 fd00::1 fe80::1',
        '203.0.113.7 172.32.0.1 2001:db8::1 nonsense',
      ],
      [
        ' 203.0.113.7 , 198.51.100.0/24, 2001:db8::/32',
        '203.0.113.7 198.51.100.255 2001:db8:1::1',
        '203.0.113.8 127.0.0.1 2001:db9::1',
      ],
    ] as const) {
      const proxies = trusting(setting)
      for (const address of trusted.split(' ')) assert.equal(proxies.trusts(address), true, address)
      for (const address of [...others.split(' '), '']) assert.equal(proxies.trusts(address), false, address)
    }
    assert.equal(trusting('').trusts('127.0.0.1'), false)
  })
  it('reports the entry that it cannot parse', () => {
    for (const entry of ['localhost', '10.0.0.0/33', '::1/129', '10.0.0.0/', '10.0.0.0/8/8', '__proto__']) {
      assert.deepEqual(parseTrustedProxies(`loopback,${entry}`), { ok: false, error: entry })
    }
  })
})

const loopback = trusting('loopback')

describe('the address of a client', () => {
  it('is that of the connection, and an IPv4 address is never written as IPv6', () => {
    assert.equal(findClientAddress({}, '::ffff:203.0.113.7', loopback), '203.0.113.7')
    assert.equal(findClientAddress({}, 'fe80::1%eth0', loopback), 'fe80::1')
    assert.equal(findClientAddress({}, undefined, loopback), '')
    assert.equal(findGeoipAddress({}, '10.1.2.3'), '10.1.2.3')
    assert.equal(findGeoipAddress({ 'x-forwarded-for': '999.1.1.1' }, undefined), '')
  })
  it('is taken from a forwarding header only if the peer is trusted; for location look-ups, from any peer', () => {
    const headers = { 'x-forwarded-for': '198.51.100.1, 10.0.0.1' }
    for (const read of [
      findClientAddress,
      (...call: Parameters<typeof readVisitorFromHeaders>) => readVisitorFromHeaders(...call).address,
    ]) {
      assert.equal(read(headers, '::ffff:127.0.0.1', loopback), '198.51.100.1')
      assert.equal(read(headers, '::ffff:203.0.113.7', loopback), '203.0.113.7')
      assert.equal(read(headers, undefined, loopback), '')
    }
    assert.equal(findGeoipAddress(headers, '203.0.113.7'), '198.51.100.1')
  })
  it('is the left-most valid entry, without port and brackets, of http_x_forwarded_for or else X-Forwarded-For', () => {
    const headers = { http_x_forwarded_for: 'unknown, 198.51.100.2:8080', 'x-forwarded-for': '198.51.100.1' }
    for (const read of [findGeoipAddress, findClientAddress]) {
      assert.equal(read(headers, '127.0.0.1', loopback), '198.51.100.2')
      assert.equal(read({ ...headers, http_x_forwarded_for: 'unknown' }, '127.0.0.1', loopback), '198.51.100.1')
      assert.equal(read({ 'x-forwarded-for': 'unknown' }, '127.0.0.1', loopback), '127.0.0.1')
      assert.equal(read({ 'x-forwarded-for': ' [2001:db8::1]:80' }, '127.0.0.1', loopback), '2001:db8::1')
    }
  })
  it('identifies the network of a single sender, and the larger block that is usually assigned as a whole', () => {
    for (const [address, network, neighbourhood] of [
      ['10.1.2.3', '10.1.2.3', '10.1.2.0/24'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
      ['2001:0db8:1:2::9', '2001:db8:1:2::/64', '2001:db8:1::/48'],
      ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
      ['::1', '0:0:0:0::/64', '0:0:0::/48'],
      ['2001:db8:1:2:3:4:10.0.0.1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
      ['', '', ''],
    ] as const)
      assert.deepEqual([findSenderNetwork(address), findAddressBlock(address)], [network, neighbourhood])
  })
})

it('a visitor’s host is that of the Origin header, or otherwise of Referer, without the path', () => {
  const hostOf = (headers: Record<string, string>) => readVisitorFromHeaders(headers, '127.0.0.1', loopback).host
  const origin = 'https://shop.example.com:8443'
  const referer = 'https://www.example.org/a?b=https://c.example/#d'
  assert.equal(hostOf({ origin, referer }), origin)
  assert.equal(hostOf({ origin: 'null', referer }), 'https://www.example.org')
  assert.equal(hostOf({ origin: '', referer: 'https://www.example.org?x' }), 'https://www.example.org')
  assert.equal(hostOf({ referer }), 'https://www.example.org')
  assert.equal(hostOf({ origin: 'null' }), '')
  assert.equal(hostOf({}), '')
})
