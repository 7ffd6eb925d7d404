import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usualOptions } from '#core/imports/import-job.ts'
import { publishImportLinks } from '#core/processing/imports/publish-staging.ts'
import { jobId, projectId, stagingState } from '../../../tests/support/staging-state.ts'
import { createJobBatch } from './job-batch.ts'

test('a retried batch supersedes the overrides that its earlier try published', () => {
  const { loaded } = stagingState({ persons: [{ id: 'ada' }, { id: 'anon' }] })
  const [ada, anon] = loaded.persons
  const job = { id: jobId, projectId, options: usualOptions }
  const link = { importJobId: jobId, distinctId: 'ada', otherId: 'anon', dangerously: false, timestampMs: 3, uuid: 'u' }
  const published = [{ projectId, distinctId: 'anon', personId: anon!.uuid, version: 7 }]
  const { overrides } = publishImportLinks(createJobBatch(job, loaded, published), [{ id: 1, link }])
  assert.deepEqual(
    overrides.map(({ distinctId, personId, version }) => [distinctId, personId, version]),
    [['anon', ada!.uuid, 8]],
  )
})
