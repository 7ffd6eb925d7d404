import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { migrations } from '#adapters/sql/known-migrations.ts'
import { migrateState } from '#adapters/sql/migrate-state.ts'
import { type Migration, sqliteDialect } from '#adapters/sql/migrations/migration.ts'
import { findSqliteSchemaVersion } from './inspect-state-file.ts'
import { createSqliteKysely, migrateSqlite } from './kysely-on-sqlite.ts'
import { openStateForWriting, stateFilePath } from './open-sqlite.ts'

const oldest = migrations[0]!.version
const known = [migrations[0]!, ...[1, 2, 3, 4].map(laterMigration)]
/** The number with which the name of a copy ends that was made before the third migration. */
const third = numberText(oldest + 2)

function laterMigration(count: number): Migration {
  return {
    version: oldest + count,
    name: `later ${count}`,
    statements: () => [`CREATE TABLE later_${count} (x BIGINT)`],
  }
}

function numberText(version: number): string {
  return String(version).padStart(4, '0')
}

/** A state from a version with this many migrations. */
async function stateOf(t: TestContext, count: number): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  if (count > 0) await applyTo(folder, count)
  return folder
}

async function applyTo(folder: string, count: number): Promise<void> {
  const db = createSqliteKysely(openStateForWriting(folder, 0), 'immediate')
  await migrateState(db, { dialect: sqliteDialect, migrations: known.slice(0, count) })
  await db.destroy()
}

function copiesIn(folder: string): string[] {
  return readdirSync(folder).filter(name => name.includes('before'))
}

function markOf(path: string): unknown {
  const database = new Database(path)
  try {
    return database.prepare('SELECT value FROM revision').pluck().get()
  } finally {
    database.close()
  }
}

function setMark(folder: string, value: number): void {
  const database = openStateForWriting(folder, 0)
  database.prepare('UPDATE revision SET value = ?').run(value)
  database.close()
}

describe('a state whose schema changes', () => {
  it('is first copied unchanged, readable only by its owner, and the previous version can use the copy', async t => {
    const folder = await stateOf(t, 2)
    setMark(folder, 71)
    const umask = process.umask(0o077)
    t.after(() => process.umask(umask))
    await migrateSqlite(folder, known)
    assert.equal(findSqliteSchemaVersion(folder), oldest + 4)
    assert.deepEqual(copiesIn(folder), [`state.db.before-${third}`])
    const copy = join(folder, `state.db.before-${third}`)
    assert.equal(statSync(copy).mode & 0o777, 0o600)

    for (const suffix of ['', '-wal', '-shm']) rmSync(stateFilePath(folder) + suffix, { force: true })
    renameSync(copy, stateFilePath(folder))
    assert.equal(findSqliteSchemaVersion(folder), oldest + 1)
    assert.equal(markOf(stateFilePath(folder)), 71)
    await applyTo(folder, 2)
  })

  it('is copied by each upgrade, which removes earlier copies', async t => {
    const folder = await stateOf(t, 2)
    copyFileSync(stateFilePath(folder), join(folder, `state.db.before-${numberText(oldest + 1)}`))
    copyFileSync(stateFilePath(folder), join(folder, `state.db.before-${third}`)) // restored by copying, then used
    setMark(folder, 72)
    await migrateSqlite(folder, known)
    assert.deepEqual(copiesIn(folder), [`state.db.before-${third}`])
    assert.equal(markOf(join(folder, `state.db.before-${third}`)), 72)
  })

  it('keeps the copy from before the first step if an upgrade is interrupted between two steps', async t => {
    const folder = await stateOf(t, 2)
    setMark(folder, 73)
    copyFileSync(stateFilePath(folder), join(folder, `state.db.before-${third}.upgrading`))
    await applyTo(folder, 3)
    setMark(folder, 74)
    await migrateSqlite(folder, known)
    assert.deepEqual(copiesIn(folder), [`state.db.before-${third}`])
    assert.equal(markOf(join(folder, `state.db.before-${third}`)), 73)
  })

  it('is copied again by the next upgrade if the previous upgrade was interrupted after its last step', async t => {
    const folder = await stateOf(t, 2)
    setMark(folder, 75)
    copyFileSync(stateFilePath(folder), join(folder, `state.db.before-${third}.upgrading`))
    await applyTo(folder, 3)
    setMark(folder, 76)
    await migrateSqlite(folder, known.slice(0, 3))
    assert.deepEqual(copiesIn(folder), [`state.db.before-${third}`])
    assert.equal(markOf(join(folder, `state.db.before-${third}`)), 75)

    await migrateSqlite(folder, known)
    const fourth = `state.db.before-${numberText(oldest + 3)}`
    assert.deepEqual(copiesIn(folder), [fourth])
    assert.equal(markOf(join(folder, fourth)), 76)
  })

  it('is cleared of the partial copies that killed upgrades left', async t => {
    const folder = await stateOf(t, 2)
    for (const suffix of ['', '-journal'])
      writeFileSync(join(folder, `state.db.before-${third}.upgrading.7.draft${suffix}`), 'half')
    await migrateSqlite(folder, known)
    assert.deepEqual(copiesIn(folder), [`state.db.before-${third}`])
  })

  it('is not copied if nothing changes or no state existed', async t => {
    const folder = await stateOf(t, 0)
    await migrateSqlite(folder, known)
    await migrateSqlite(folder, known)
    assert.deepEqual(copiesIn(folder), [])
  })
})
