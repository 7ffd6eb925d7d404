import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { importWorkQueries } from '#adapters/sql/imports/import-work-queries.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'

test('the rows of a job are deleted in pieces, between which others can write', async () => {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
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
    const work = importWorkQueries(db)
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

test('the worker looks for work by keys', async () => {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
  texts.length = 0
  const work = importWorkQueries(db)
  await work.listImportWork()
  await work.clearImportJob(2, 'everything')
  await work.findAssignments(2, ['a', 'b'])
  for (const kind of ['links', 'ids', 'personlessIds', 'groups'] as const) await work.listStaged(2, kind, 9, 'a')
  const plans = texts
    .filter(text => /^\s*(select|delete)/i.test(text))
    .map(text => [text, database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all()] as const)
  assert.ok(plans.length > 10)
  for (const [text, plan] of plans)
    for (const { detail } of plan) {
      const sorts = /TEMP B-TREE/.test(detail) && !text.includes('"job"."updated_at"')
      assert.ok(!sorts && !/^SCAN/.test(detail), `${text}: ${detail}`)
    }
})
