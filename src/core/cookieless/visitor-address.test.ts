import assert from 'node:assert/strict'
import { it } from 'node:test'
import { normalizeVisitorAddress } from './visitor-address.ts'

it('an IP address is normalized to a single spelling', () => {
  for (const [text, expected] of [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    ['::1', '::1'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['a]:80/', 'a]:80/'],
    ['nowhere', 'nowhere'],
  ] as const)
    assert.equal(normalizeVisitorAddress(text), expected, text)
})
