import assert from 'node:assert/strict'
import { it } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { chunkChanges } from '../../../tests/support/values.ts'
import { findSqlitePositions } from './find-schema.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openSqliteChunkStore } from './sqlite-chunk-store.ts'
import { openSqliteManagementStore } from './sqlite-management-store.ts'

it('finds where every record of a stream is processed, which is what a backup of the log begins with', async t => {
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
  assert.deepEqual(findSqlitePositions(dataFolder), new Map([['main', 40]]))
  assert.ok(await management.deferProject('main', 'w', 1, 40))
  await move('main', 70)
  assert.deepEqual(findSqlitePositions(dataFolder), new Map([['main', 40]]))
  await Promise.all([chunks.close(), management.close()])
})
