import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeServiceState } from './query-service-job.ts'

it('the status of an import shows why the service waits, and since when', () => {
  const failure = {
    code: 'event_store_unavailable',
    message: 'the event store cannot be reached',
    since: '2026-11-01T00:00:00.000Z',
  }
  const state = { id: '7', state: 'discarding', step: 'undo', publishedAt: null, discardedAt: null }
  assert.equal(
    describeServiceState({ ...state, failure }),
    'Import job 7 in the service: discarding (undo). Stalled since 2026-11-01T00:00:00.000Z, retrying automatically: ' +
      'the event store cannot be reached (event_store_unavailable).',
  )
  assert.equal(describeServiceState({ ...state, failure: null }), 'Import job 7 in the service: discarding (undo).')
})
