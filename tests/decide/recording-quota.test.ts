// What answers say about recording while the project's quota of recordings is used up, and once it no longer is.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { noQuotas } from '#core/project.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { aProject } from '../support/values.ts'

it('the remote configuration turns recording off, with the reason, until the quota has capacity again', async t => {
  let isOver = false
  const isOverRecordingQuota = () => isOver
  const project = aProject({
    apiToken: 'phc_test',
    clientSettings: { session_recording_opt_in: true },
    quotas: { ...noQuotas, recordings: 5 },
  })
  const server = await startDecideServer(t, { flags: [], project, isOverRecordingQuota })
  const told = async () => {
    const evaluated = (await server.post('/decide?v=3', { api_key: 'phc_test', distinct_id: 'ada' })).json
    const remote = await server.call('/array/phc_test/config', {})
    return {
      evaluated: [evaluated.sessionRecording !== false, evaluated.quotaLimited],
      remote: [remote.json.sessionRecording !== false, remote.json.quotaLimited],
      etag: remote.headers.get('etag'),
    }
  }
  const before = await told()
  assert.deepEqual(
    [before.evaluated, before.remote],
    [
      [true, undefined],
      [true, undefined],
    ],
  )
  isOver = true
  const over = await told()
  assert.deepEqual(
    [over.evaluated, over.remote],
    [
      [false, ['recordings']],
      [false, ['recordings']],
    ],
  )
  assert.notEqual(over.etag, before.etag)
  isOver = false
  assert.deepEqual(await told(), before)
})
