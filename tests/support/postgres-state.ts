// State in the tests' PostgreSQL: databases at the newest schema, copied from a template because that is faster than
// migrating each, and the stores that contract suites test on them.

import type pg from 'pg'
import { toNumberedParameters } from '#adapters/postgres/chunk-statements.ts'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openPostgresHashKeyWriter } from '#adapters/postgres/postgres-hash-key-writer.ts'
import { migratePostgres, openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openPostgresSubjectStore } from '#adapters/postgres/postgres-subject-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import type { Databases, TestPostgres } from './postgres.ts'
import { type OpenSqlState, sqlState } from './state.ts'
import type { Scope } from './temp-dir.ts'

export const logger = createSilentLogger()

/** Creates a database at the newest schema, to be copied. */
export async function migratedTemplate(databases: Databases): Promise<string> {
  const template = await databases.createDatabase()
  await migratePostgres({ url: template, logger })
  return template
}

/**
 * Databases at the newest schema, one for each scope that asks. Those of finished scopes are emptied and reused, since
 * copying and dropping a database takes much longer.
 */
export async function migratedDatabases(postgres: TestPostgres) {
  const template = await migratedTemplate(postgres)
  await postgres.query(await emptyingFunction(postgres, template), [], template)
  const used: string[] = []
  return async (t: Scope): Promise<string> => {
    const free = used.pop()
    const url = free ?? (await postgres.createDatabase({ template }))
    if (free !== undefined) {
      await endSessions(postgres, url)
      await postgres.query('SELECT tests_empty_database()', [], url)
    }
    t.after(() => void used.push(url))
    return url
  }
}

const endSessionsText = `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`

/** Ends all sessions of a database. */
export async function endSessions(postgres: TestPostgres, url: string): Promise<void> {
  await postgres.query(endSessionsText, [], url)
}

/** How many events are stored, by the outcomes in the state. */
export async function countStored(postgres: TestPostgres, url: string): Promise<number> {
  const text = `SELECT coalesce(sum(event_count), 0)::int AS n FROM chunk_outcome WHERE outcome = 'stored'`
  return (await postgres.query<{ n: number }>(text, [], url))[0]!.n
}

/** Makes a function that resets the rows and next ids of a database to those of the template. */
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

export function postgresStates(postgres: TestPostgres, newDatabase: (t: Scope) => Promise<string>): OpenSqlState {
  return async (t, projects) => {
    const url = await newDatabase(t)
    return sqlState(
      t,
      {
        management: openPostgresManagementStore({ url, logger }),
        openChunkStore: () => openPostgresChunkStore({ url, logger }),
        openSubjectStore: () => openPostgresSubjectStore({ url, logger }),
        // The contract is about rows, not about how fast a busy machine writes thousands of them.
        openHashKeyWriter: () => openPostgresHashKeyWriter({ url, logger, statementMsMax: 30_000 }),
        query: <Row>(text: string, ...values: readonly unknown[]) =>
          postgres.query<Row & pg.QueryResultRow>(toNumberedParameters(text), [...values], url),
      },
      projects,
    )
  }
}
