// Runs the contract suites of the state's ports on a real PostgreSQL.

import { after, test } from 'node:test'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openPostgresDefinitionStore } from '#adapters/postgres/postgres-definition-store.ts'
import { openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openPostgresSalts } from '#adapters/postgres/postgres-salts.ts'
import { importJobContracts } from '../import/publish-and-undo.contract.ts'
import { runs, shareOf } from '../support/nightly.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { logger, migratedDatabases, postgresStates } from '../support/postgres-state.ts'
import { chunkStoreContract } from './chunk-store.contract.ts'
import { chunkStoreModelTest } from './chunk-store.model.ts'
import { cookielessSaltsContract } from './cookieless-salts.contract.ts'
import { cookielessVisitorsContract } from './cookieless-visitors.contract.ts'
import { definitionStoreContract } from './definition-store.contract.ts'
import { hashKeyOverridesContract } from './hash-key-overrides.contract.ts'
import type { OpenManagement } from './management-harness.ts'
import { managementStoreContract } from './management-store.contract.ts'
import { subjectStoreContract } from './subject-store.contract.ts'

const skip = noPostgres()
if (skip === false) await runSuites()
else test('the stores on PostgreSQL', { skip }, () => {})

async function runSuites(): Promise<void> {
  const postgres = await startPostgres()
  after(() => postgres.stop())
  const newDatabase = await migratedDatabases(postgres)
  const openState = postgresStates(postgres, newDatabase)

  const openManagement: OpenManagement = async t => {
    const { definitions, management, chunkStore } = await openDefinitions(t)
    return { store: management, chunkStore, revision: async () => (await definitions.readRevision()).revision }
  }

  cookielessSaltsContract('postgres', async t => {
    const url = await newDatabase(t)
    const stores = [openPostgresSalts({ url, logger }), openPostgresSalts({ url, logger })] as const
    t.after(() => Promise.all(stores.map(store => store.close())))
    return stores
  })
  chunkStoreContract('postgres', openState)
  chunkStoreModelTest('postgres', openState, runs(30, 300))
  cookielessVisitorsContract('postgres', openState)
  subjectStoreContract('postgres', openState)
  hashKeyOverridesContract('postgres', openState)
  managementStoreContract('postgres', openManagement)
  definitionStoreContract('postgres', openDefinitions)
  // The rules are the same as on SQLite, where `npm test` runs all of these; only the SQL runs on another engine.
  for (const contract of shareOf(importJobContracts, 4)) contract('postgres', openState, runs(6, 60))

  async function openDefinitions(t: Parameters<OpenManagement>[0]) {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    const definitions = openPostgresDefinitionStore({ url, logger, loadChanges: management.loadChanges })
    const chunkStore = openPostgresChunkStore({ url, logger })
    t.after(async () => {
      await definitions.close()
      await management.close()
      await chunkStore.close()
    })
    return { definitions, management, chunkStore }
  }
}
