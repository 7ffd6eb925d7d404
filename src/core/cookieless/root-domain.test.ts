import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findRootDomain } from './root-domain.ts'

it('the root domain is the domain that a host shares with its subdomains', () => {
  for (const [host, root] of [
    ['https://shop.example.co.uk/basket?a=b', 'example.co.uk'],
    ['SHOP.example.com', 'example.com'],
    ['team.github.io', 'github.io'],
    ['a.b.unlisted', 'b.unlisted'],
    ['www.example.com:8443', 'example.com:8443'],
    ['https://www.example.com:443', 'example.com'],
    ['example.com:443', 'example.com:443'],
    ['localhost:3000', '127.0.0.1:3000'],
    ['10.0.0.1:80', '10.0.0.1'],
    ['2001:0db8::0001', '[2001:db8::1]'],
    ['co.uk', 'co.uk'],
    ['intranet', 'intranet'],
    ['www.bücher.de', 'xn--bcher-kva.de'],
    ['', ''],
    ['no host at all', 'no host at all'],
    ['http://', 'http://'],
    ['file:///etc/hosts', 'file:///etc/hosts'],
  ] as const) {
    assert.equal(findRootDomain(host), root, host)
    assert.equal(findRootDomain(host), root, `${host}, remembered`)
  }
})
