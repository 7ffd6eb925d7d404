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
import { accountingStoreContract } from './accounting-store.contract.ts'
import { activityStoreContract } from './activity-store.contract.ts'
import { boundedListsContract } from './bounded-lists.contract.ts'
import { chunkStoreContract } from './chunk-store.contract.ts'
import { chunkStoreModelTest } from './chunk-store.model.ts'
import { cohortStoreContract } from './cohort-store.contract.ts'
import { cookielessSaltsContract } from './cookieless-salts.contract.ts'
import { cookielessUpkeepContract, cookielessVisitorsContract } from './cookieless-visitors.contract.ts'
import { deferredProjectsContract } from './deferred-projects.contract.ts'
import { definitionStoreContract } from './definition-store.contract.ts'
import { erasureStoreContract } from './erasure-store.contract.ts'
import { flagLifeContract } from './flag-life.contract.ts'
import { flagOwnersContract } from './flag-owners.contract.ts'
import { flagStoreContract } from './flag-store.contract.ts'
import { groupTypesContract } from './group-types.contract.ts'
import { hashKeyOverridesContract } from './hash-key-overrides.contract.ts'
import { importJobStoreContract } from './import-job-store.contract.ts'
import type { OpenManagement } from './management-harness.ts'
import { managementStoreContract } from './management-store.contract.ts'
import { scheduleOwnersContract } from './schedule-owners.contract.ts'
import { secretKeyStoreContract } from './secret-key-store.contract.ts'
import { subjectMirrorSourceContract } from './subject-mirror-source.contract.ts'
import { subjectStoreContract } from './subject-store.contract.ts'
import { trustedTimeStoreContract } from './trusted-time-store.contract.ts'

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
    return { store: management, chunkStore, revision: async () => (await definitions.revision()).revision }
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
  cookielessUpkeepContract('postgres', openManagement)
  subjectStoreContract('postgres', openState)
  hashKeyOverridesContract('postgres', openState)
  managementStoreContract('postgres', openManagement)
  accountingStoreContract('postgres', openManagement)
  activityStoreContract('postgres', openManagement)
  flagStoreContract('postgres', openManagement)
  flagLifeContract('postgres', openManagement)
  flagOwnersContract('postgres', openManagement)
  boundedListsContract('postgres', openManagement)
  cohortStoreContract('postgres', openManagement)
  erasureStoreContract('postgres', openManagement)
  groupTypesContract('postgres', openManagement)
  importJobStoreContract('postgres', openManagement)
  deferredProjectsContract('postgres', openManagement)
  subjectMirrorSourceContract('postgres', openManagement)
  trustedTimeStoreContract('postgres', openManagement)
  secretKeyStoreContract('postgres', openManagement)
  scheduleOwnersContract('postgres', openManagement)
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
