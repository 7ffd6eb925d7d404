import assert from 'node:assert/strict'
import { it } from 'node:test'
import { findSchemaProblem } from '#adapters/sql/known-migrations.ts'
import { UnfitSchemaError } from '#ports/port-error.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { chunkChanges } from '../../../tests/support/values.ts'
import { findSchemaVersionWithoutWal, findSqliteLogPositions, findSqliteSchemaVersion } from './inspect-state-file.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openStateForWriting } from './open-sqlite.ts'
import { openSqliteChunkStore } from './sqlite-chunk-store.ts'
import { openSqliteManagementStore } from './sqlite-management-store.ts'

it('for backups of the log, the state shows the offset before which every record of a stream is processed', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const chunks = openSqliteChunkStore({ dataFolder })
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const move = async (stream: string, offset: number) => {
    await chunks.claimPosition(stream, 'w')
    await chunks.commitChunk(chunkChanges({}), { stream, ownerId: 'w', offset, committedAtMs: 0 })
  }
  await move('main.deferred', 3)
  await move('main', 40)
  assert.deepEqual(findSqliteLogPositions(dataFolder), new Map([['main', 40]]))
  assert.ok(await management.deferProject('main', 'w', 1, 40))
  await move('main', 70)
  assert.deepEqual(findSqliteLogPositions(dataFolder), new Map([['main', 40]]))
  await Promise.all([chunks.close(), management.close()])
})

it('a state that does not say which schema it has counts as damaged', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const database = openStateForWriting(dataFolder, 0)
  t.after(() => database.close())
  database.exec('DELETE FROM schema_version WHERE version < (SELECT max(version) FROM schema_version)')
  for (const change of [
    "UPDATE schema_version SET version = 'twenty'",
    'UPDATE schema_version SET version = -1',
    'DELETE FROM schema_version',
  ]) {
    database.exec(change)
    database.pragma('wal_checkpoint(TRUNCATE)')
    for (const schema of [findSchemaVersionWithoutWal(dataFolder), findSqliteSchemaVersion(dataFolder)])
      assert.match(
        findSchemaProblem(schema!) ?? '',
        /^The state is damaged: the version in its table schema_version/,
        change,
      )
    await assert.rejects(migrateSqlite(dataFolder), UnfitSchemaError)
  }
})
