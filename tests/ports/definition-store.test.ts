import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openDefinitionLoader, openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { definitionStoreContract } from './definition-store.contract.ts'

definitionStoreContract('sqlite', async t => {
  const dataFolder = tempDir(t)
  await writeNewState(dataFolder)
  const loader = openDefinitionLoader({ dataFolder })
  const definitions = openSqliteDefinitionStore({ dataFolder, loadChanges: loader.loadChanges })
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const chunkStore = openSqliteChunkStore({ dataFolder })
  t.after(async () => {
    await definitions.close()
    await loader.close()
    await management.close()
    await chunkStore.close()
  })
  return { definitions, management, chunkStore }
})

definitionStoreContract('sqlite through the state thread', async t => {
  const dataFolder = tempDir(t)
  const management = await openStateWriter({ dataFolder, logger: createSilentLogger() })
  const definitions = openSqliteDefinitionStore({ dataFolder, loadChanges: management.loadChanges })
  const chunkStore = openSqliteChunkStore({ dataFolder })
  t.after(async () => {
    await definitions.close()
    await management.close()
    await chunkStore.close()
  })
  return { definitions, management, chunkStore }
})
