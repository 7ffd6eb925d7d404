// Which statements the queries of the state run, and by which indexes SQLite finds their rows.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { createActivityQueries } from '#adapters/sql/accounting/activity-queries.ts'
import { createImportWorkQueries } from '#adapters/sql/imports/import-work-queries.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { erasePersonRows } from '#adapters/sql/persons/erase-persons.ts'
import { activityKinds } from '#core/activity.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { aChange } from '../../../tests/support/values.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'

test('a page of the activity log is read through an index, and the entries of one item through an index on items', async t => {
  const { texts, db, planOf } = await openTraced(t)
  const queries = createActivityQueries(db)
  const item = { kind: 'cohort', projectId: 1, itemId: '7', itemName: 'Beta' } as const
  await queries.recordActivity({ ...item, activity: 'created', changes: [] }, aChange())

  for (const [query, index] of [
    [{}, 'activity_log_project'],
    [{ kinds: ['cohort'], belowId: 5 }, 'activity_log_project'],
    [{ itemId: '7' }, 'activity_log_item'],
    [{ itemId: '7', kinds: ['cohort'], belowId: 5 }, 'activity_log_item'],
  ] as const) {
    texts.length = 0
    await queries.listActivity({ projectId: 1, kinds: activityKinds, limit: 9, ...query })
    const plan = texts.flatMap(planOf)
    assert.match(plan[0]!, new RegExp(`^SEARCH activity_log USING (COVERING )?INDEX ${index} `))
    assert.ok(!plan.some(detail => detail.startsWith('SCAN activity_log') && !detail.includes(index)), plan.join(', '))
    assert.ok(!plan.some(detail => detail.includes('TEMP B-TREE')), plan.join(', '))
  }
})

test('an erasure finds rows only by keys, and keeps the assignments of other persons', async t => {
  const { texts, database, db, planOf } = await openTraced(t)
  database.exec(`
    INSERT INTO project (id, uuid, name, api_token, timezone, anonymize_ips, geoip_enabled, property_matching_version, quotas,
      client_settings, ingestion_settings, created_at, deleted, revision)
      VALUES (1, '', '', '', 'UTC', 0, 0, 1, '{}', '{}', '{}', 0, 0, 0);
    INSERT INTO person VALUES (7, 1, 'uuid-7', '{}', '', 0, 0, 0, 0);
    INSERT INTO person_distinct_id VALUES (1, '0', 7, 0)`)
  const assignments = database.prepare(`INSERT INTO import_assignments VALUES (?, ?, '', '{}', '{}')`)
  for (const [id, state] of [
    [2, 'published'],
    [3, 'receiving'],
  ]) {
    database
      .prepare(
        `INSERT INTO import_job (id, project_id, name, source, state, options, plan, progress, created_at, updated_at)
          VALUES (?, 1, '', '', ?, '{}', '{}', '{}', 0, 0)`,
      )
      .run(id, state)
    for (const uuid of ['uuid-7', personUuid(1, '0'), 'uuid-8']) assignments.run(id, uuid)
    for (const [from, to] of ['0a', 'a0', 'ab'])
      database.prepare(`INSERT INTO import_link VALUES (NULL, ?, ?, ?, 0, 0, 'u')`).run(id, from, to)
  }

  texts.length = 0
  const erasure = {
    ...{ projectId: 1, personIds: [7], logId: 'log', endOffsets: { main: 5, historical: 0 } },
    ...{ keepsPerson: false, deletesEvents: true, deletesRecordings: true },
  }
  const { erasedCount } = await db.transaction().execute(trx => erasePersonRows(trx, erasure, aChange()))
  assert.equal(erasedCount, 1)
  const run = texts.filter(text => /^(select|update|delete)/i.test(text))
  assert.ok(run.length > 10)
  const scans = run.flatMap(text => {
    const scansIn = planOf(text).filter(step => /^SCAN (?!subject_mirror|CONSTANT)/.test(step))
    return scansIn.map(() => text)
  })
  assert.deepEqual(scans, [])
  const left = database.prepare('SELECT import_job_id, person_uuid FROM import_assignments ORDER BY 1').raw().all()
  assert.deepEqual(left, [
    [2, 'uuid-8'],
    [3, 'uuid-8'],
  ])
  const links = database.prepare('SELECT import_job_id, distinct_id, other_id FROM import_link ORDER BY 1').raw().all()
  assert.deepEqual(links, [
    [2, '0', 'a'],
    [2, 'a', '0'],
    [2, 'a', 'b'],
    [3, 'a', 'b'],
  ])
})

test('the rows of a job are deleted in batches, between which others can write', async t => {
  const { texts, database, db } = await openTraced(t)
  database.exec(`
    INSERT INTO import_job (id, project_id, name, source, state, options, plan, progress, created_at, updated_at)
      VALUES (2, 1, '', '', 'discarded', '{}', '{}', '{}', 0, 0);
    WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 4500)
      INSERT INTO import_assignments SELECT 2, printf('%05d', n), '', '{}', '{}' FROM number;
    WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 4500)
      INSERT INTO import_generated (project_id, uuid, timestamp, import_job_id)
        SELECT 1, printf('%05d', n), 1, 2 FROM number`)

  let isDone = false
  texts.length = 0
  const updating = async () => {
    while (!isDone) {
      await db.updateTable('project').set({ name: 'other' }).execute()
      await nextTurn()
    }
  }
  const clearing = async () => {
    const work = createImportWorkQueries(db)
    while (await work.clearImportJob(2, 'everything'));
    isDone = true
  }
  await Promise.all([clearing(), updating()])
  const tables = texts.flatMap(text => /^\s*(?:update|delete from) "(\w+)"/i.exec(text)?.[1] ?? [])
  const order = tables.filter(table => /^(project|import_assignments|import_generated)$/.test(table)).join(' ')
  assert.equal(order.match(/import_/g)?.length, 6, order)
  assert.doesNotMatch(order, /(import_\w+) \1/)
  const left = database.prepare(
    'SELECT (SELECT count(*) FROM import_assignments), (SELECT count(*) FROM import_generated)',
  )
  assert.deepEqual(left.raw().get(), [0, 0])
})

test('the worker’s search for waiting work uses an index', async t => {
  const { texts, db, planOf } = await openTraced(t)
  texts.length = 0
  const work = createImportWorkQueries(db)
  await work.listImportWork()
  await work.clearImportJob(2, 'everything')
  await work.findAssignments(2, ['a', 'b'])
  for (const kind of ['links', 'ids', 'personlessIds', 'groups'] as const) await work.listStagedItems(2, kind, 9, 'a')
  const run = texts.filter(text => /^\s*(select|delete)/i.test(text))
  assert.ok(run.length > 10)
  for (const text of run)
    for (const step of planOf(text)) {
      const sorts = /TEMP B-TREE/.test(step) && !text.includes('"job"."updated_at"')
      assert.ok(!sorts && !/^SCAN/.test(step), `${text}: ${step}`)
    }
})

/** A new state in memory, and the texts of the statements that run on it. */
async function openTraced(t: TestContext) {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
  t.after(() => db.destroy())
  const planOf = (text: string) =>
    database
      .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
      .all()
      .map(({ detail }) => detail)
  return { texts, database, db, planOf }
}
