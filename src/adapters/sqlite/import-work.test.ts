import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { importWorkQueries } from '#adapters/sql/imports/import-work-queries.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'

test('a job’s records are deleted in pieces, between which others can write', async () => {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
  database.exec(`
    INSERT INTO import_job (id, project_id, name, source, state, options, plan, progress, created_at, updated_at)
      VALUES (2, 1, '', '', 'discarded', '{}', '{}', '{}', 0, 0);
    WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 4500)
      INSERT INTO import_image SELECT 2, 'mapping', printf('%05d', n), 1, 'null', 'null' FROM number;
    WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 4500)
      INSERT INTO import_generated (project_id, uuid, timestamp, import_job_id)
        SELECT 1, printf('%05d', n), 1, 2 FROM number`)

  /** `delete` and `update` in the order in which they are run, while another writer updates all the time. */
  async function writesDuring(deleting: Promise<void>): Promise<string> {
    let isDone = false
    texts.length = 0
    const updating = async () => {
      while (!isDone) {
        await db.updateTable('project').set({ name: 'other' }).execute()
        await nextTurn()
      }
    }
    const end = async () => {
      await deleting
      isDone = true
    }
    await Promise.all([end(), updating()])
    const keywords = texts.map(text => text.trim().split(/\s/)[0]!.toLowerCase())
    return keywords.filter(word => word === 'delete' || word === 'update').join(' ')
  }

  const work = importWorkQueries(db)
  assert.match(await writesDuring(work.deleteUndoRecords(2)), /^(update )?(delete update ?){9,}/)
  assert.match(await writesDuring(work.forgetGenerated(2)), /^(update )?(delete update ?){3}/)
  const left = database.prepare('SELECT (SELECT count(*) FROM import_image), (SELECT count(*) FROM import_generated)')
  assert.deepEqual(left.raw().get(), [0, 0])
})
