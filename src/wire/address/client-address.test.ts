import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { geoipAddress, neighbourhoodOf, networkOf } from './client-address.ts'

describe('geoipAddress', () => {
  it('takes the left-most entry that parses, without port and brackets', () => {
    assert.equal(geoipAddress({ 'x-forwarded-for': 'unknown, 81.2.69.142:4711, 10.0.0.1' }, '127.0.0.1'), '81.2.69.142')
    assert.equal(geoipAddress({ 'x-forwarded-for': ' [2001:db8::1]:80' }, '127.0.0.1'), '2001:db8::1')
  })

  it('believes HTTP_X_FORWARDED_FOR before X-Forwarded-For', () => {
    const headers = { http_x_forwarded_for: '81.2.69.142', 'x-forwarded-for': '8.8.8.8' }
    assert.equal(geoipAddress(headers, '127.0.0.1'), '81.2.69.142')
    assert.equal(geoipAddress({ ...headers, http_x_forwarded_for: 'nonsense' }, '127.0.0.1'), '8.8.8.8')
  })

  it('falls back to the connection, and to nothing', () => {
    assert.equal(geoipAddress({}, '10.1.2.3'), '10.1.2.3')
    assert.equal(geoipAddress({ 'x-forwarded-for': '999.1.1.1' }, undefined), '')
  })
})

describe('networkOf', () => {
  it('is an IPv4 address, or one customer’s IPv6 prefix, however it is written', () => {
    for (const [address, network] of [
      ['10.1.2.3', '10.1.2.3'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:0db8:1:2::9', '2001:db8:1:2::/64'],
      ['2001:db8::1', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['2001:db8:1:2:3:4:10.0.0.1', '2001:db8:1:2::/64'],
      ['', ''],
    ] as const)
      assert.equal(networkOf(address), network)
  })
})

describe('neighbourhoodOf', () => {
  it('is the block that is usually assigned together, for IPv4 and IPv6', () => {
    for (const [address, neighbourhood] of [
      ['10.1.2.3', '10.1.2.0/24'],
      ['2001:0db8:1:2::9', '2001:db8:1::/48'],
      ['2001:db8::1', '2001:db8:0::/48'],
      ['', ''],
    ] as const)
      assert.equal(neighbourhoodOf(address), neighbourhood)
  })
})
