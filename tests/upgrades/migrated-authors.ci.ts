// The migration to the activity log: labels of keys become authors without an id, and each version of a flag an entry.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { activityKinds } from '#core/activity.ts'
import { computeAuthorNumber } from '#core/author.ts'
import { testMigration } from './test-migration.ts'
import { unpackedFolder } from './unpacked-folder.ts'

const oddLabels = ['', `it's "quoted" \\ \\" {"id":1}`, 'tab\tbell\u0007del\u007f', 'é\u2028😀', '\\u0041/</script>']
const authorOf = (label: string) => ({ id: null, label })

testMigration('the migration to the activity log', 20, migrated => {
  it('migrated labels become authors without an id, whatever characters they have, and null stays null', async t => {
    const labels = [...oddLabels, null]
    const times = { created_at: 1, updated_at: 2 }
    const { store, query } = await migrated(
      t,
      labels.flatMap((label, index) => {
        const id = index + 1
        const item = { id, project_id: 1, name: 'n', created_by: label, ...times }
        return [
          ['feature_flag', flagRow(id, label)],
          ['cohort', { ...item, description: '', is_static: 0, filters: '{}', deleted: 0, version: 1 }],
          ['survey', { ...item, id: `s${id}`, type: 'popover', content: '{}', archived: 0 }],
          ['experiment', { ...item, feature_flag_id: id, owns_flag: 1, content: '{}', archived: 0, deleted: 0 }],
          ['import_job', { ...item, source: '', state: 'planned', options: '{}', plan: '{}', progress: '{}' }],
          ['person_erasure', erasureRow(id, label)],
        ] as const
      }),
    )
    const expected = labels.map(label => (label === null ? null : authorOf(label)))
    for (const table of ['feature_flag', 'cohort', 'survey', 'experiment', 'import_job']) {
      const stored = await query(`SELECT created_by FROM ${table} ORDER BY id`)
      assert.deepEqual(
        stored.map(row => JSON.parse(String(row.created_by))),
        expected,
        table,
      )
    }
    const requested = await query('SELECT requested_by FROM person_erasure ORDER BY id')
    assert.deepEqual(
      requested.map(row => JSON.parse(String(row.requested_by))),
      expected,
    )

    // A filter by author compares texts, so they must be as the store writes them.
    for (const [index, label] of oddLabels.entries()) {
      const createdBy = [authorOf(label)]
      const { results } = await store.listResources('survey', 1, { limit: 9, offset: 0, createdBy })
      assert.deepEqual(
        results.map(survey => [survey.id, survey.createdBy]),
        [[`s${index + 1}`, createdBy[0]]],
      )
    }
  })

  it('each migrated flag version becomes an activity entry, and the entries are in order of time', async t => {
    const label = oddLabels[1]!
    const version = (flagId: number, version: number, changedBy: string | null, atMs: number, deleted = false) =>
      [
        'feature_flag_version',
        {
          ...{ flag_id: flagId, version, project_id: 1, changed_by: changedBy, created_at: atMs },
          snapshot: JSON.stringify({
            ...{ id: flagId, key: `flag-${flagId}`, filters: { payloads: { true: '{"deleted":true,"version":2,}' } } },
            ...{ deleted, version, hasExperiment: false, createdBy: flagId === 1 ? label : null },
          }),
        },
      ] as const
    const { store } = await migrated(t, [
      ['feature_flag', flagRow(1, label)],
      ['feature_flag', flagRow(2, null)],
      version(1, 1, label, 10),
      version(1, 2, 'ci', 30),
      version(2, 1, null, 20),
      version(2, 2, 'ci', 40, true),
      version(2, 3, 'ci', 50),
    ])
    const { results } = await store.listActivity({ projectId: 1, kinds: activityKinds, limit: 9 })
    const entry = { projectId: 1, kind: 'feature_flag', changes: [] }
    assert.deepEqual(
      results.map(({ id: _, ...shown }) => shown),
      [
        {
          ...{ ...entry, itemId: '2', itemName: 'flag-2', activity: 'updated', version: 3 },
          ...{ by: authorOf('ci'), atMs: 50 },
        },
        {
          ...{ ...entry, itemId: '2', itemName: 'flag-2', activity: 'deleted', version: 2 },
          ...{ by: authorOf('ci'), atMs: 40 },
        },
        {
          ...{ ...entry, itemId: '1', itemName: 'flag-1', activity: 'updated', version: 2 },
          ...{ by: authorOf('ci'), atMs: 30 },
        },
        { ...entry, itemId: '2', itemName: 'flag-2', activity: 'created', version: 1, by: null, atMs: 20 },
        {
          ...{ ...entry, itemId: '1', itemName: 'flag-1', activity: 'created', version: 1 },
          ...{ by: authorOf(label), atMs: 10 },
        },
      ],
    )
    const by = [authorOf(label)]
    assert.equal(
      (await store.listActivity({ projectId: 1, kinds: activityKinds, by: by.map(computeAuthorNumber), limit: 9 }))
        .results.length,
      1,
    )

    const old = await store.findFlagVersion(1, 1, 1)
    assert.deepEqual([old?.changedBy, old?.flag.createdBy], [by[0], by[0]])
    assert.deepEqual((await store.findFlag(1, '1'))?.createdBy, by[0])
    assert.equal((await store.findFlagVersion(1, 2, 1))?.flag.createdBy, null)
  })
})

it('the flag in a data folder of the first schema gets its activity entry', async t => {
  const dataFolder = unpackedFolder(t, 'baseline')
  assert.equal((await migrateSqlite(dataFolder)).from, 20)
  const store = openSqliteManagementStore({ dataFolder, access: 'write' })
  t.after(() => store.close())
  const [flag] = (await store.listFlags(1, { limit: 9, offset: 0 })).results
  const { results } = await store.listActivity({ projectId: 1, kinds: activityKinds, limit: 9 })
  assert.deepEqual(
    results.map(({ itemName, activity, by, atMs }) => [itemName, activity, by, atMs]),
    [['for-pros', 'created', flag!.createdBy, flag!.createdAtMs]],
  )
  assert.equal(flag!.createdBy?.id, null)
  const [cohort] = (await store.listCohorts(1, { limit: 9, offset: 0 })).results
  assert.deepEqual(cohort!.createdBy, flag!.createdBy)
})

function flagRow(id: number, createdBy: string | null): object {
  return {
    ...{
      id,
      project_id: 1,
      key: `flag-${id}`,
      name: '',
      filters: '{}',
      active: 1,
      archived: 0,
      deleted: 0,
      version: 1,
    },
    ...{ ensure_experience_continuity: 0, evaluation_runtime: 'all', evaluation_contexts: '[]', tags: '[]' },
    ...{ has_encrypted_payloads: 0, is_remote_configuration: 0, has_experiment: 0 },
    ...{ created_at: 1, updated_at: 2, conditions_since: 1, created_by: createdBy },
  }
}

function erasureRow(id: number, requestedBy: string | null): object {
  return {
    ...{ id, project_id: 1, erasures: 1, mirror_version: 0, requested_at: 1, requested_by: requestedBy },
    ...{ keeps_person: 0, deletes_events: 0, deletes_recordings: 0, log_id: '', log_ends: '{}', done_at: 2 },
  }
}
