import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isRecordedPage, parseRecordingHost } from './recording-domains.ts'

describe('parseRecordingHost', () => {
  it('reads the host of an address, a pattern or a bare name', () => {
    assert.equal(parseRecordingHost('https://App.Example.com:8443/path?x=1'), 'app.example.com')
    assert.equal(parseRecordingHost('https://*.example.com'), '*.example.com')
    assert.equal(parseRecordingHost('example.com'), 'example.com')
    assert.equal(parseRecordingHost('http://localhost:3000'), 'localhost')
    for (const nothing of ['', 'https://', 'https://exa mple.com', '://x'])
      assert.equal(parseRecordingHost(nothing), null)
  })
})

describe('isRecordedPage', () => {
  const of = (domains: readonly string[], origin?: string, referer?: string) =>
    isRecordedPage(domains, { origin, referer })

  it('allows every page when no domain is named', () => {
    assert.equal(of([]), true)
    assert.equal(of([], 'https://anything.example'), true)
  })

  it('compares whole hosts, ignoring scheme, port and path', () => {
    const domains = ['shop.example']
    assert.equal(of(domains, 'http://shop.example:8080'), true)
    assert.equal(of(domains, undefined, 'https://SHOP.example/basket'), true)
    assert.equal(of(domains, 'https://evil.example', 'https://shop.example/'), true, 'one of the two headers is enough')
    for (const other of ['https://www.shop.example', 'https://shop.example.evil.example', 'null', 'shop.example'])
      assert.equal(of(domains, other), false, other)
    assert.equal(of(domains), false)
  })

  it('lets * match any text, including the dots around it', () => {
    assert.equal(of(['*.shop.example'], 'https://a.b.shop.example'), true)
    assert.equal(of(['*.shop.example'], 'https://shop.example'), false)
    assert.equal(of(['app-*.eu*.example'], 'https://app-7.eu-west.example'), true)
    assert.equal(of(['app-*.eu*.example'], 'https://app-7.us.example'), false)
    assert.equal(of(['a*a'], 'https://a'), false, 'two letters are needed')
    assert.equal(of(['*'], 'https://anything.example'), true)
  })

  it('allows mobile apps, which have no page', () => {
    assert.equal(isRecordedPage(['shop.example'], { 'user-agent': 'posthog-ios/3.2 (iPhone)' }), true)
    assert.equal(isRecordedPage(['shop.example'], { 'user-agent': 'Mozilla/5.0' }), false)
  })
})
