import { migrateSqlite } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { tempDir } from '../support/temp-dir.ts'
import { definitionStoreContract } from './definition-store.contract.ts'

definitionStoreContract('sqlite', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const definitions = openSqliteDefinitionStore({ dataFolder })
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const chunkStore = openSqliteChunkStore({ dataFolder })
  t.after(async () => {
    await definitions.close()
    await management.close()
    await chunkStore.close()
  })
  return { definitions, management, chunkStore }
})
