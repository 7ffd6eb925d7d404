import type { TestContext } from 'node:test'
import { memoryChunkStore } from '#adapters/memory/memory-chunk-store.ts'
import { memoryDeferredProjects } from '#adapters/memory/memory-deferred-projects.ts'
import { memoryState } from '#adapters/memory/memory-state.ts'
import { openDefinitionLoader } from '#adapters/sqlite/definition-loader.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { silentLogger } from '#telemetry/log.ts'
import { tempDir } from '../support/temp-dir.ts'
import { accountingStoreContract } from './accounting-store.contract.ts'
import { boundedListsContract } from './bounded-lists.contract.ts'
import { cohortStoreContract } from './cohort-store.contract.ts'
import { deferredProjectsContract } from './deferred-projects.contract.ts'
import { erasureStoreContract } from './erasure-store.contract.ts'
import { flagLifeContract } from './flag-life.contract.ts'
import { flagOwnersContract } from './flag-owners.contract.ts'
import { flagStoreContract } from './flag-store.contract.ts'
import { groupTypesContract } from './group-types.contract.ts'
import { importJobStoreContract } from './import-job-store.contract.ts'
import type { ManagementHarness, OpenManagement } from './management-harness.ts'
import { managementStoreContract } from './management-store.contract.ts'
import { scheduleOwnersContract } from './schedule-owners.contract.ts'
import { secretKeyStoreContract } from './secret-key-store.contract.ts'
import { subjectMirrorSourceContract } from './subject-mirror-source.contract.ts'
import { trustedTimeStoreContract } from './trusted-time-store.contract.ts'

const adapters: Record<string, OpenManagement> = {
  sqlite: t =>
    open(t, async dataFolder => {
      await migrateSqlite(dataFolder)
      return openSqliteManagementStore({ dataFolder, access: 'write' })
    }),
  'sqlite through the state thread': t =>
    open(t, dataFolder => openStateWriter({ dataFolder, logger: silentLogger() })),
}

for (const [adapter, openAdapter] of Object.entries(adapters)) {
  managementStoreContract(adapter, openAdapter)
  accountingStoreContract(adapter, openAdapter)
  flagStoreContract(adapter, openAdapter)
  flagLifeContract(adapter, openAdapter)
  flagOwnersContract(adapter, openAdapter)
  boundedListsContract(adapter, openAdapter)
  cohortStoreContract(adapter, openAdapter)
  erasureStoreContract(adapter, openAdapter)
  groupTypesContract(adapter, openAdapter)
  importJobStoreContract(adapter, openAdapter)
  secretKeyStoreContract(adapter, openAdapter)
  scheduleOwnersContract(adapter, openAdapter)
  deferredProjectsContract(adapter, openAdapter)
  subjectMirrorSourceContract(adapter, openAdapter)
  trustedTimeStoreContract(adapter, openAdapter)
}

deferredProjectsContract('memory', async () => {
  const state = memoryState()
  return { store: memoryDeferredProjects(state), chunkStore: memoryChunkStore(state) }
})

async function open(
  t: TestContext,
  openStore: (dataFolder: string) => Promise<ManagementStore>,
): Promise<ManagementHarness> {
  const dataFolder = tempDir(t)
  const store = await openStore(dataFolder)
  const chunkStore = openSqliteChunkStore({ dataFolder })
  const loader = openDefinitionLoader({ dataFolder })
  const definitions = openSqliteDefinitionStore({ dataFolder, loadChanges: loader.loadChanges })
  t.after(async () => {
    await store.close()
    await chunkStore.close()
    await definitions.close()
    await loader.close()
  })
  return { store, chunkStore, revision: async () => (await definitions.revision()).revision }
}
