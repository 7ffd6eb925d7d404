import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { erase } from '#adapters/sql/persons/erase-persons.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { aChange } from '../../../tests/support/values.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'

test('an erasure finds rows only by keys, and keeps the assignments of other persons', async () => {
  const texts: string[] = []
  const database = new Database(':memory:', { verbose: text => texts.push(String(text)) })
  const db = createSqliteKysely(database, 'immediate')
  await migrateState(db, { dialect: sqliteDialect })
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
    ...{
      projectId: 1,
      personIds: [7],
      logId: 'log',
      endOffsets: { main: 5, historical: 0 },
    },
    ...{ keepsPerson: false, deletesEvents: true, deletesRecordings: true },
  }
  const { erasedCount } = await db.transaction().execute(trx => erase(trx, erasure, aChange()))
  assert.equal(erasedCount, 1)
  const run = texts.filter(text => /^(select|update|delete)/i.test(text))
  assert.ok(run.length > 10)
  const scans = run.flatMap(text => {
    const plan = database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${text}`).all()
    return plan.filter(({ detail }) => /^SCAN (?!subject_mirror|CONSTANT)/.test(detail)).map(() => text)
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
