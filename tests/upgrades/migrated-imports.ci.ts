// The migration to undoing by events: what undoing still needs of the old records is kept.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { ImportJobState } from '#core/imports/import-job.ts'
import { testMigration } from './test-migration.ts'

function jobRow(id: number, state: ImportJobState, step: string | null, over: object = {}) {
  return [
    'import_job',
    {
      ...{ id, public_id: 2 ** 40 + id, project_id: 1, name: 'n', source: '', state, step, stored_rows: 0 },
      ...{ options: '{}', plan: '{}', progress: '{}', created_at: 1, updated_at: 40, ...over },
    },
  ] as const
}

function imageRow(id: number, kind: string, subject: string, before: unknown, after: unknown) {
  const images = { before_image: JSON.stringify(before), after_image: JSON.stringify(after) }
  return ['import_image', { import_job_id: id, kind, subject, project_id: 1, ...images }] as const
}

testMigration('the migration to undoing by events', 21, migrated => {
  it('a migration keeps the flag and cohort assignments and group types of import jobs', async t => {
    const own = { hashKeys: [['flag', `it's "é"`]] as const, cohortIds: [3] }
    const taken = { hashKeys: [], cohortIds: [3] }
    const { store, query } = await migrated(t, [
      jobRow(2, 'published', null, { published_at: 30 }),
      imageRow(2, 'person', 'u', null, { uuid: 'u' }),
      imageRow(2, 'assignments', 'u', { personUuid: 'u', ...own }, { personUuid: 'survivor', ...taken }),
      imageRow(2, 'group_type', '0', null, { name: 'org' }),
      imageRow(2, 'group_type', '4', { name: 'team' }, { name: 'team' }),
    ])
    assert.deepEqual(await store.findAssignments(2, ['u', 'survivor']), [
      { importJobId: 2, uuid: 'u', own, survivorUuid: 'survivor', taken },
    ])
    assert.deepEqual(await store.listNamedGroupTypes(2), [
      { importJobId: 2, typeIndex: 0, name: 'org', isAdded: true },
      { importJobId: 2, typeIndex: 4, name: 'team', isAdded: false },
    ])
    await assert.rejects(query('SELECT * FROM import_image'))
  })

  it('each migrated import job has the time at which its publishing began', async t => {
    const day = { public_id: null, implicit_day: '2026-11-01', published_at: 30 }
    const { store } = await migrated(t, [
      jobRow(2, 'published', null, { published_at: 30 }),
      imageRow(2, 'publish_start', '', { atMs: 20 }, null),
      jobRow(3, 'published', null, { published_at: 30 }),
      jobRow(4, 'publishing', 'persons'),
      jobRow(5, 'publishing', 'draining'),
      jobRow(6, 'pending', null),
      jobRow(7, 'published', null, day),
    ])
    const jobs = await Promise.all([2, 3, 4, 5, 6, 7].map(id => store.findImportJob(id)))
    assert.deepEqual(
      jobs.map(job => job!.publishBeganAtMs),
      [20, 30, 40, null, null, null],
    )
  })

  it('a partly undone job continues with a step that still exists, and reports that the rest is not undone', async t => {
    const published = { published_at: 30 }
    const steps = ['draining', 'rows', 'undo_merges', 'undo_persons', 'undo_groups', 'clearing']
    const { store } = await migrated(t, [
      ...steps.map((step, index) => jobRow(2 + index, 'discarding', step, published)),
      jobRow(8, 'discarding', 'rows'),
    ])
    const jobs = await store.listImportWork()
    const shown = jobs.map(async ({ id, step }) => [
      step,
      (await store.listImportNotes(id)).map(({ reason }) => reason),
    ])
    const left = ['undo', ['undo_left:history_is_incomplete']]
    assert.deepEqual(await Promise.all(shown), [
      ['draining', []],
      ...[left, left, left, left],
      ['clearing', []],
      ['rows', []],
    ])
  })
})
