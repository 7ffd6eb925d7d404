import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startManagement } from '../support/management-api.ts'

// Behind a proxy that forwards one part of a site, `next` has to be a URL that the client can reach.

const list = '/api/projects/?limit=1'
const query = '/api/projects/?limit=1&offset=1'

async function withTwoProjects(...options: Parameters<typeof startManagement>) {
  const api = await startManagement(...options)
  await api.post('/api/projects/', { name: 'Second' })
  const next = async (headers: Record<string, string> = {}) => (await api.call('GET', list, { headers })).body.next
  return { api, next }
}

describe('the address of the next page', () => {
  it('is based on the request', async t => {
    const { api, next } = await withTwoProjects(t)
    assert.equal(await next(), api.url + query)
    assert.equal(await next({ 'x-forwarded-proto': 'https' }), api.url.replace('http:', 'https:') + query)
  })

  it('has the host and the prefix that a trusted proxy names', async t => {
    const { api, next } = await withTwoProjects(t)
    assert.equal(await next({ 'x-forwarded-prefix': '/pennon' }), `${api.url}/pennon${query}`)
    assert.equal(await next({ 'x-forwarded-prefix': '/a/b-c/, /other' }), `${api.url}/a/b-c${query}`)
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'shop.example',
      'x-forwarded-prefix': '/flags',
    }
    assert.equal(await next(forwarded), `https://shop.example/flags${query}`)
    for (const prefix of ['//evil.example', 'evil', '/a?b', '/a b', '/a/../b#', '/', '/<script>', '/'.repeat(40)])
      assert.equal(await next({ 'x-forwarded-prefix': prefix }), api.url + query, prefix)
    assert.equal(await next({ 'x-forwarded-host': 'evil.example/path' }), api.url + query)
  })

  it('ignores forwarding headers of untrusted senders', async t => {
    const { api, next } = await withTwoProjects(t, { trustedProxies: '10.0.0.0/8' })
    const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-prefix': '/evil' }
    assert.equal(await next(forwarded), api.url + query)
  })

  it('starts with PENNON_PUBLIC_URL, whatever the request says', async t => {
    const { next } = await withTwoProjects(t, { publicUrl: 'https://shop.example/flags' })
    assert.equal(await next(), `https://shop.example/flags${query}`)
    const forwarded = { 'x-forwarded-host': 'other.example', 'x-forwarded-prefix': '/other', host: 'third.example' }
    assert.equal(await next(forwarded), `https://shop.example/flags${query}`)
  })
})
