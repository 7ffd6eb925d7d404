import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isWebAddress } from './web-address.ts'

it('only web addresses may become links', () => {
  for (const text of ['https://example.com/a?b#c', 'http://localhost:8000']) assert.ok(isWebAddress(text), text)
  for (const text of ['javascript:alert(1)', ' java\nscript:alert(1)', 'data:text/html,x', '/ui/', 'example.com', ''])
    assert.ok(!isWebAddress(text), text)
})
