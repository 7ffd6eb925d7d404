import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { runInNewContext } from 'node:vm'
import { encodeRemoteConfig, encodeRemoteConfigScript, looksLikeProjectToken, offConfig } from './remote-config.ts'

describe('encodeRemoteConfigScript', () => {
  it('passes every value on unchanged, and no value can end the surrounding script element', () => {
    const config = {
      text: '</script><script>alert(1)</script>',
      comment: '<!-- -->',
      'a line\u2028and\u2029another': 'x',
      quoted: '"\\\'`$',
      nothing: null,
    }
    const script = encodeRemoteConfigScript('phc_a', JSON.stringify(config))
    assert.doesNotMatch(script, /[<>\u2028\u2029]/)
    assert.equal(script.split('\n').length, 2)
    const window: { _POSTHOG_REMOTE_CONFIG?: Record<string, unknown> } = {}
    runInNewContext(script, { window })
    assert.deepEqual(JSON.parse(JSON.stringify(window._POSTHOG_REMOTE_CONFIG)), { phc_a: { config, siteApps: [] } })
  })

  it('does not change the configuration of another project on the page', () => {
    const window: { _POSTHOG_REMOTE_CONFIG?: Record<string, { config: { token: string } }> } = {}
    for (const token of ['one', 'two']) {
      runInNewContext(encodeRemoteConfigScript(token, encodeRemoteConfig(token, offConfig)), { window })
    }
    assert.equal(window._POSTHOG_REMOTE_CONFIG?.one?.config.token, 'one')
    assert.equal(window._POSTHOG_REMOTE_CONFIG?.two?.config.token, 'two')
  })
})

describe('looksLikeProjectToken', () => {
  it('accepts 1 to 200 letters, digits, dashes and underscores', () => {
    for (const token of ['phc_Az09-', 'a', 'a'.repeat(200)]) assert.ok(looksLikeProjectToken(token))
    for (const token of ['', 'a'.repeat(201), 'a/b', 'é', 'a\n']) assert.ok(!looksLikeProjectToken(token), token)
  })
})
