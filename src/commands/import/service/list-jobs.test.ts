import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeState } from './list-jobs.ts'

it('the list of import jobs shows what is paused, and since when an importer has not reported', () => {
  const nowMs = Date.parse('2026-01-15T12:00:00Z')
  const describe = (state: string, isPaused: boolean, updatedAt = '2026-01-15T11:59:00.000Z') =>
    describeState({ state, isPaused, updatedAt }, nowMs)
  assert.equal(describe('sending', false), 'sending')
  assert.equal(describe('sending', true), 'paused')
  assert.equal(describe('verifying', true), 'not verified')
  const longAgo = '2026-01-14T10:20:30.000Z'
  assert.equal(describe('sending', false, longAgo), 'sending, no report since 2026-01-14 10:20')
  assert.equal(describe('sending', true, longAgo), 'paused')
  for (const state of ['planned', 'pending', 'published', 'failed']) assert.equal(describe(state, true, longAgo), state)
})
