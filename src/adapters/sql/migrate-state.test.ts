import assert from 'node:assert/strict'
import { test } from 'node:test'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { UnfitSchemaError } from '#ports/port-error.ts'
import { createLogger } from '#telemetry/log.ts'
import { logStateMigration, migrations } from './known-migrations.ts'
import { migrateState } from './migrate-state.ts'
import { type Migration, postgresDialect, sqliteDialect } from './migrations/migration.ts'
import type { StateSchema } from './tables/schema.ts'

const one: Migration = { version: 1, name: 'one', statements: () => ['CREATE TABLE a (x INTEGER)'] }
const two: Migration = { version: 2, name: 'two', statements: () => ['ALTER TABLE a ADD COLUMN y INTEGER'] }

function openMemory() {
  const database = new Database(':memory:')
  return { database, db: new Kysely<StateSchema>({ dialect: new SqliteDialect({ database }) }) }
}

function tablesOf(database: Database.Database): string[] {
  return database.prepare<[], string>(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1`).pluck().all()
}

test('migrating the state applies missing migrations, and changes nothing when run again', async () => {
  const { database, db } = openMemory()
  assert.deepEqual(await migrateState(db, { dialect: sqliteDialect, migrations: [one] }), { from: 0, to: 1 })
  assert.deepEqual(await migrateState(db, { dialect: sqliteDialect, migrations: [one] }), { from: 1, to: 1 })
  assert.deepEqual(await migrateState(db, { dialect: sqliteDialect, migrations: [one, two] }), { from: 1, to: 2 })
  database.exec('INSERT INTO a (x, y) VALUES (1, 2)')
  assert.deepEqual(database.prepare('SELECT version, name FROM schema_version').all(), [
    { version: 1, name: 'one' },
    { version: 2, name: 'two' },
  ])
})

for (const [version, known, expected] of [
  ['a newer version', [one], /newer Pennon \(schema 2; this version supports up to 1\)/],
  [
    'a version before the first migration',
    [{ ...one, version: 3 }],
    /by Pennon 0\.1\.0 or earlier, and 0\.1\.0 is the last/,
  ],
] as const)
  test(`migrating the state refuses a state that ${version} wrote, and does not change it`, async () => {
    const { database, db } = openMemory()
    await migrateState(db, { dialect: sqliteDialect, migrations: [one, two] })
    await assert.rejects(
      migrateState(db, { dialect: sqliteDialect, migrations: known }),
      (error: unknown) => error instanceof UnfitSchemaError && expected.test(error.message),
    )
    assert.deepEqual(tablesOf(database), ['a', 'schema_version'])
  })

test('migrating the state rolls a whole migration back when one of its statements fails', async () => {
  const { database, db } = openMemory()
  const broken: Migration = { version: 1, name: 'broken', statements: () => ['CREATE TABLE a (x INTEGER)', 'CREATE b'] }
  await assert.rejects(migrateState(db, { dialect: sqliteDialect, migrations: [broken] }))
  assert.deepEqual(tablesOf(database), [])
  assert.deepEqual(await migrateState(db, { dialect: sqliteDialect, migrations: [one] }), { from: 0, to: 1 })
})

test('migrations are numbered without gaps, and each has statements for both SQLite and PostgreSQL', () => {
  for (const [index, migration] of migrations.entries()) {
    assert.equal(migration.version, index + 20)
    const postgres = migration.statements(postgresDialect).join('\n')
    assert.doesNotMatch(postgres, /AUTOINCREMENT|WITHOUT ROWID/)
    assert.doesNotMatch(migration.statements(sqliteDialect).join('\n'), /IDENTITY|COLLATE|NOTIFY/i)
  }
})

test('a migration of the state is logged with the way to undo it; a new or unchanged state is not logged', () => {
  const lines: string[] = []
  const logger = createLogger({ level: 'info', process: 'serve' }, { write: line => void lines.push(line) })
  const copy = 'state.db.before-0021'
  for (const [from, to] of [
    [0, 22],
    [22, 22],
    [20, 22],
  ] as const)
    logStateMigration({ from, to, durationMs: 7, copy }, logger)
  assert.equal(lines.length, 1)
  const { level, msg, ...line } = JSON.parse(lines[0]!)
  assert.deepEqual([level, line.from, line.to, line.durationMs, line.copy], ['info', 20, 22, 7, copy])
  assert.match(msg, /^the state was migrated .* earlier Pennon starts only with state\.db\.before-0021$/)
})
