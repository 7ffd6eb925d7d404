import assert from 'node:assert/strict'
import { it } from 'node:test'
import { shownVisitor } from './shown-visitor.ts'
import { parseTrustedProxies } from './trusted-proxies.ts'

const loopback = parseTrustedProxies('loopback')
const hostOf = (headers: Record<string, string>) => {
  assert.ok(loopback.ok)
  return shownVisitor(headers, '127.0.0.1', loopback.value).host
}

it('uses the host of Origin, else of Referer, without its path', () => {
  const origin = 'https://shop.example.com:8443'
  const referer = 'https://www.example.org/a?b=https://c.example/#d'
  assert.equal(hostOf({ origin, referer }), origin)
  assert.equal(hostOf({ origin: 'null', referer }), 'https://www.example.org')
  assert.equal(hostOf({ origin: '', referer: 'https://www.example.org?x' }), 'https://www.example.org')
  assert.equal(hostOf({ referer }), 'https://www.example.org')
  assert.equal(hostOf({ origin: 'null' }), '')
  assert.equal(hostOf({}), '')
})

it('believes a forwarded address only from a trusted proxy', () => {
  assert.ok(loopback.ok)
  const headers = { 'x-forwarded-for': '203.0.113.7, 10.0.0.1' }
  assert.equal(shownVisitor(headers, '::ffff:127.0.0.1', loopback.value).address, '203.0.113.7')
  assert.equal(shownVisitor(headers, '::ffff:198.51.100.1', loopback.value).address, '198.51.100.1')
  assert.equal(shownVisitor(headers, undefined, loopback.value).address, '')
})
