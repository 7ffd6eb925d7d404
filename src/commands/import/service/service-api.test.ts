import assert from 'node:assert/strict'
import { it } from 'node:test'
import { endedMessage } from './service-api.ts'

it('a job accepts events until it is published, discarded or failed; then the message says what to do', () => {
  for (const state of ['planned', 'rehearsed', 'approved', 'sending', 'verifying', 'pending'])
    assert.equal(endedMessage(state, 'history'), null)
  for (const state of ['publishing', 'published', 'failed'])
    assert.match(endedMessage(state, 'history')!, /nothing more is sent\. To undo it: pennon import discard history$/)
  for (const state of ['discarding', 'discarded'])
    assert.match(endedMessage(state, 'history')!, /nothing more is sent\. To import again, .* pennon import plan$/)
})
