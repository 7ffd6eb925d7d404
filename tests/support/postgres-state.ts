// State in the tests' PostgreSQL: databases at the newest schema, copied from a template because that is faster than
// migrating each, and the stores that contract suites test on them.

import type { TestContext } from 'node:test'
import { numbered } from '#adapters/postgres/chunk-texts.ts'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openPostgresHashKeyWriter } from '#adapters/postgres/postgres-hash-key-writer.ts'
import { migratePostgres, openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openPostgresSubjectStore } from '#adapters/postgres/postgres-subject-store.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { silentLogger } from '#telemetry/log.ts'
import type { Databases, TestPostgres } from './postgres.ts'
import { aNewProject } from './state-builders.ts'
import { insertCohortText, type OpenSqlState } from './state-harness.ts'

export const logger = silentLogger()

/** Creates a database at the newest schema, to be copied. */
export async function migratedTemplate(databases: Databases): Promise<string> {
  const template = await databases.createDatabase()
  await migratePostgres({ url: template, logger })
  return template
}

/** Creates migrated databases, each dropped after its test. */
export async function migratedDatabases(postgres: Databases) {
  const template = await migratedTemplate(postgres)
  return async (t: Pick<TestContext, 'after'>): Promise<string> => {
    const url = await postgres.createDatabase({ template })
    t.after(() => postgres.dropDatabase(url))
    return url
  }
}

export function postgresStates(postgres: TestPostgres, newDatabase: (t: TestContext) => Promise<string>): OpenSqlState {
  return async t => {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    await management.createProject(aNewProject())
    await management.createProject(aNewProject())
    const stores: ChunkStore[] = []
    const openAnotherChunkStore = () => {
      const store = openPostgresChunkStore({ url, logger })
      stores.push(store)
      return store
    }
    const subjectStore = openPostgresSubjectStore({ url, logger })
    // The contract is about rows, not about how fast a busy machine writes thousands of them.
    const { keepHashKey, close: closeHashKeys } = openPostgresHashKeyWriter({ url, logger, statementMsMax: 30_000 })
    t.after(async () => {
      await subjectStore.close()
      await closeHashKeys()
      for (const store of [...stores, management]) await store.close()
    })
    return {
      chunkStore: openAnotherChunkStore(),
      subjectStore,
      hashKeys: { findHashKeys: subjectStore.findHashKeys, keepHashKey },
      openAnotherChunkStore,
      revision: async () => {
        const rows = await postgres.query<{ value: string }>('SELECT value FROM revision', [], url)
        return Number(rows[0]!.value)
      },
      addOverride: async (projectId, personUuid, flagKey, hashKey) => {
        await postgres.query(
          `INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
            SELECT project_id, id, $1, $2 FROM person WHERE project_id = $3 AND uuid = $4`,
          [flagKey, hashKey, projectId, personUuid],
          url,
        )
      },
      overridesOf: async (projectId, personUuid) => {
        const rows = await postgres.query<{ text: string }>(
          `SELECT feature_flag_key || '=' || hash_key AS text
            FROM flag_hash_key_override AS o JOIN person AS p ON p.id = o.person_id
            WHERE p.project_id = $1 AND p.uuid = $2 ORDER BY 1`,
          [projectId, personUuid],
          url,
        )
        return rows.map(row => row.text)
      },
      addMembership: async (projectId, personUuid, cohortId) => {
        await postgres.query(numbered(insertCohortText), [cohortId, projectId], url)
        await postgres.query(
          `INSERT INTO cohort_person (person_id, cohort_id)
            SELECT id, $1 FROM person WHERE project_id = $2 AND uuid = $3 ON CONFLICT DO NOTHING`,
          [cohortId, projectId, personUuid],
          url,
        )
      },
      membershipsOf: async (projectId, personUuid) => {
        const rows = await postgres.query<{ cohort_id: string }>(
          `SELECT cohort_id FROM cohort_person AS c JOIN person AS p ON p.id = c.person_id
            WHERE p.project_id = $1 AND p.uuid = $2 ORDER BY 1`,
          [projectId, personUuid],
          url,
        )
        return rows.map(row => Number(row.cohort_id))
      },
      outcomesOf: projectId => management.listOutcomes(projectId),
    }
  }
}
