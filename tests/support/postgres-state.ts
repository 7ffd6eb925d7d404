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
import { insertCohortText, type OpenSqlState } from './state-harness.ts'
import { aNewProject } from './values.ts'

export const logger = silentLogger()

/** Creates a database at the newest schema, to be copied. */
export async function migratedTemplate(databases: Databases): Promise<string> {
  const template = await databases.createDatabase()
  await migratePostgres({ url: template, logger })
  return template
}

/**
 * Databases at the newest schema, one for each test that asks. The next test gets the one of a test that is over, emptied:
 * to copy and drop a database takes much longer.
 */
export async function migratedDatabases(postgres: TestPostgres) {
  const template = await migratedTemplate(postgres)
  await postgres.query(await emptyingFunction(postgres, template), [], template)
  const used: string[] = []
  return async (t: Pick<TestContext, 'after'>): Promise<string> => {
    const free = used.pop()
    const url = free ?? (await postgres.createDatabase({ template }))
    if (free !== undefined) {
      await postgres.query(endSessionsText, [], url)
      await postgres.query('SELECT tests_empty_database()', [], url)
    }
    t.after(() => void used.push(url))
    return url
  }
}

const endSessionsText = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`

/** A function that leaves in a database the rows and the next ids that the template has. */
async function emptyingFunction(postgres: TestPostgres, template: string): Promise<string> {
  const tables = await postgres.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    [],
    template,
  )
  const first = await Promise.all(
    tables.map(async ({ name }) => {
      const text = `SELECT coalesce(json_agg(t), '[]')::text AS rows FROM ${name} AS t`
      const [{ rows }] = (await postgres.query<{ rows: string }>(text, [], template)) as [{ rows: string }]
      return { name, rows }
    }),
  )
  const restored = first
    .filter(({ rows }) => rows !== '[]')
    .map(
      ({ name, rows }) =>
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, $rows$${rows}$rows$);`,
    )
  return `CREATE FUNCTION tests_empty_database() RETURNS void LANGUAGE plpgsql AS $body$
    DECLARE
      name text;
      has_rows boolean;
      filled text[] := '{}';
    BEGIN
      FOREACH name IN ARRAY ARRAY[${tables.map(({ name }) => `'${name}'`).join(', ')}] LOOP
        EXECUTE 'SELECT EXISTS (SELECT FROM ' || name || ')' INTO has_rows;
        IF has_rows THEN filled := filled || name; END IF;
      END LOOP;
      EXECUTE 'TRUNCATE ' || array_to_string(filled, ', ') || ' CASCADE';
      PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
        FROM pg_sequences WHERE last_value IS NOT NULL;
      ${restored.join('\n      ')}
    END $body$`
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
