import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildAddress, toApiError } from './client.ts'

describe('buildAddress', () => {
  it('escapes what stands in the path, and leaves out fields of the query without a value', () => {
    const path = { project_id: 1, flag_id: 'a/b?c' }
    assert.equal(buildAddress('/api/{project_id}/flags/{flag_id}/', path), '/api/1/flags/a%2Fb%3Fc/')
    assert.equal(
      buildAddress('/api/flags/', {}, { limit: 5, search: 'a&b', active: false, type: undefined }),
      '/api/flags/?limit=5&search=a%26b&active=false',
    )
  })
})

describe('toApiError', () => {
  it('takes code, sentence and field from the answer, and the time of a further try', () => {
    const headers = new Headers({ 'retry-after': '7', 'x-request-id': 'r1' })
    const body = JSON.stringify({ type: 'validation_error', code: 'invalid_input', detail: 'No.', attr: 'key' })
    const { message, code, attr, status, retryAtMs, details } = toApiError({ status: 429, headers }, body)
    assert.deepEqual([message, code, attr, status], ['No.', 'invalid_input', 'key', 429])
    assert.ok(Math.abs(retryAtMs! - Date.now() - 7_000) < 5_000)
    assert.match(details, /^request r1, status 429, \d{4}-/)
  })

  it('says the status where the answer is not one of Pennon’s', () => {
    for (const body of ['', '<html>', '[]', '{"detail":{}}', 'null']) {
      const { message, code, retryAtMs } = toApiError({ status: 502, headers: new Headers() }, body)
      assert.deepEqual([message, code, retryAtMs], ['The server answered with status 502.', 'status_502', undefined])
    }
  })
})
