import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parsePublicAddress } from './public-address.ts'

const hex = (text: string) => {
  const bytes = parsePublicAddress(text)
  return bytes === null ? null : Buffer.from(bytes).toString('hex')
}

describe('publicAddress', () => {
  it('returns the bytes of IPv4 and IPv6 addresses', () => {
    assert.equal(hex('81.2.69.142'), '5102458e')
    assert.equal(hex('2a00:1450:4001:81b::200e'), '2a0014504001081b000000000000200e')
    assert.equal(hex('2606:4700:0:0:0:0:0:1111'), '26064700000000000000000000001111')
    assert.equal(hex('2A00::'), '2a000000000000000000000000000000')
    assert.equal(hex('64:ff9b::81.2.69.142'), '0064ff9b00000000000000005102458e')
    assert.equal(hex('2a00::1%eth0'), '2a000000000000000000000000000001')
  })

  it('recognizes IPv4 addresses in IPv6 notation', () => {
    assert.equal(hex('::ffff:81.2.69.142'), '5102458e')
    assert.equal(hex('::FFFF:5102:458e'), '5102458e')
    assert.equal(hex('0:0:0:0:0:ffff:81.2.69.142'), '5102458e')
  })

  it('is null for private, loopback, link-local and other special addresses', () => {
    const special = [
      ...['0.0.0.0', '10.0.0.5', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.8.9.10', '169.254.1.1'],
      ...['172.16.0.1', '172.31.255.255', '192.0.2.7', '192.168.1.1', '198.18.0.1', '198.19.255.255', '203.0.113.7'],
      ...['224.0.0.1', '255.255.255.255', '::', '::1', '::81.2.69.142', '::ffff:10.0.0.5', '::ffff:7f00:1'],
      ...['fc00::1', 'fd12:3456::1', 'fe80::1', 'fe80::1%eth0', 'febf::1', 'fec0::1', 'ff02::1', '2001:db8::1'],
      ...['100::1', '3fff::1', '64:ff9b:1::1'],
    ]
    assert.deepEqual(
      special.filter(text => parsePublicAddress(text) !== null),
      [],
    )
  })

  it('returns bytes for the addresses just outside the special ranges', () => {
    const neighbours = [
      ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
      ...['169.253.255.255', '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255', '198.17.255.255'],
      ...['198.20.0.0', '203.0.112.255', '223.255.255.255', '2001:db7::1', '2001:db9::1', '2002::1', 'fbff::1'],
    ]
    assert.deepEqual(
      neighbours.filter(text => parsePublicAddress(text) === null),
      [],
    )
  })

  it('is null for text that is not an address', () => {
    for (const text of ['', 'localhost', '1.2.3', '1.2.3.4:80', '01.2.3.4', '1.2.3.4, 5.6.7.8', `${'1'.repeat(100)}`])
      assert.equal(parsePublicAddress(text), null)
  })
})
