// What clients are told of recording while the project's quota of recordings is used up, and once it is not any more.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openInstalledScripts } from '#adapters/posthog-js/installed-scripts.ts'
import { emptyDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { noQuotas } from '#core/project.ts'
import { remoteConfigRoutes } from '#http/handlers/remote-config.ts'
import { startDecideServer } from '../support/decide-server.ts'
import { aProject } from '../support/state-builders.ts'

it('pages are told to record nothing, and why, until the quota has room again', async t => {
  let isOver = false
  const isOverRecordingQuota = () => isOver
  const project = aProject({
    apiToken: 'phc_test',
    clientSettings: { session_recording_opt_in: true },
    quotas: { ...noQuotas, recordings: 5 },
  })
  const compiled = compileProject(emptyDefinitions(project, 1))
  const server = await startDecideServer(t, {
    flags: [],
    project,
    isOverRecordingQuota,
    otherRoutes: ({ clock }) =>
      remoteConfigRoutes({ findProject: () => compiled, scripts: openInstalledScripts(), isOverRecordingQuota, clock }),
  })
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
