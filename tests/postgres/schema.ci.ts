// The schema of Pennon's tables in a database that other applications use too.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { checkStateStore } from '../../src/commands/doctor/check-stores.ts'
import { readConfig } from '../../src/config.ts'
import { newKey } from '../support/new-key.ts'
import { type Pennon, startPennonFor } from '../support/pennon.ts'
import { runCommand } from '../support/pennon-command.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { refusedStart } from '../support/refused-start.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('the tables of the state', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)

  /** Tables by schema. */
  async function tablesOf(url: string): Promise<Record<string, string[]>> {
    const rows = await postgres.query<{ schema: string; tables: string[] }>(
      `SELECT schemaname AS schema, array_agg(tablename::text ORDER BY tablename) AS tables FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema') GROUP BY schemaname`,
      [],
      url,
    )
    return Object.fromEntries(rows.map(({ schema, tables }) => [schema, tables]))
  }

  async function started(t: TestContext, settings: Record<string, string>): Promise<Pennon> {
    const pennon = await startPennonFor(t, { settings, dataFolder: tempDir(t) })
    return pennon
  }

  /** A database of another application, some of whose tables have the same names as ours. */
  async function foreignDatabase(): Promise<string> {
    const url = await postgres.createDatabase()
    for (const table of ['project (id int, owner text)', 'schema_version (version text)', 'person (ssn text)'])
      await postgres.query(`CREATE TABLE public.${table}`, [], url)
    await postgres.query("INSERT INTO public.project VALUES (1, 'theirs')", [], url)
    return url
  }

  async function doctorOn(settings: Record<string, string>) {
    const config = readConfig(settings)
    assert.ok(config.ok)
    return (await checkStateStore(config.value))[0]!
  }

  it('are in the schema pennon, and tables of another application stay unchanged', async t => {
    const url = await foreignDatabase()
    assert.match((await doctorOn({ DATABASE_URL: url })).found, /schema pennon \(tables are created on first start\)/)
    const pennon = await started(t, { DATABASE_URL: url })
    assert.match(pennon.output(), /State +PostgreSQL at 127\.0\.0\.1:\d+\/\w+, schema pennon\n/)
    await pennon.api('POST', '/api/projects/@current/feature_flags/', { key: 'here' })
    const { public: theirs, pennon: ours } = await tablesOf(url)
    assert.deepEqual(theirs, ['person', 'project', 'schema_version'])
    assert.ok(ours!.includes('person') && ours!.includes('feature_flag'))
    const rows = await postgres.query('SELECT * FROM public.project', [], url)
    assert.deepEqual(rows, [{ id: 1, owner: 'theirs' }])
    const flags = await postgres.query('SELECT key FROM pennon.feature_flag', [], url)
    assert.deepEqual(flags, [{ key: 'here' }])
  })

  it('are in the schema that PENNON_DATABASE_SCHEMA specifies, also for commands', async t => {
    const settings = { DATABASE_URL: await foreignDatabase(), PENNON_DATABASE_SCHEMA: 'flags' }
    const pennon = await started(t, settings)
    assert.match(pennon.output(), /, schema flags\n/)
    assert.deepEqual(Object.keys(await tablesOf(settings.DATABASE_URL)).sort(), ['flags', 'public'])
    assert.equal((await newKey({ ...settings, PENNON_DATA: tempDir(t) })).exitCode, 0)
    const missed = await newKey({ DATABASE_URL: settings.DATABASE_URL, PENNON_DATA: tempDir(t) })
    assert.deepEqual([missed.exitCode, /There is no state/.test(missed.stderr)], [2, true])
  })

  it('are not created in a schema with tables of another program', async t => {
    const settings = { DATABASE_URL: await foreignDatabase(), PENNON_DATABASE_SCHEMA: 'public' }
    const line = await refusedStart(tempDir(t), settings)
    assert.match(
      line,
      /schema public has tables of another program \(person, project, schema_version\).*PENNON_DATABASE_SCHEMA/,
    )
    assert.deepEqual(Object.keys(await tablesOf(settings.DATABASE_URL)), ['public'])
    const { isGood, found, remedy } = await doctorOn(settings)
    assert.equal(isGood, false)
    assert.match(`${found} → ${remedy}`, /tables of another program.* → Set PENNON_DATABASE_SCHEMA/)
  })

  it('are not created again if they already exist in the schema public', async t => {
    const url = await migratedTemplate(postgres)
    const isRefused = async () => {
      const line = await refusedStart(tempDir(t), { DATABASE_URL: url })
      assert.match(line, /state is in the schema public.*PENNON_DATABASE_SCHEMA=public/)
    }
    await isRefused()
    await postgres.query('CREATE SCHEMA pennon', [], url)
    await isRefused()
    const settings = { DATABASE_URL: url, PENNON_DATABASE_SCHEMA: 'public' }
    const pennon = await started(t, settings)
    assert.match(pennon.output(), /, schema public\n/)
    assert.match((await doctorOn(settings)).found, /, schema public$/)
  })

  it('are refused and left unchanged if they are of an earlier version', async t => {
    const url = await postgres.createDatabase()
    for (const table of ['project', 'personal_api_key', 'log_position', 'chunk_outcome'])
      await postgres.query(`CREATE TABLE public.${table} (id int)`, [], url)
    await postgres.query('CREATE TABLE public.schema_version (version bigint)', [], url)
    await postgres.query('INSERT INTO public.schema_version VALUES (1), (19)', [], url)
    const settings = { DATABASE_URL: url, PENNON_DATABASE_SCHEMA: 'public' }
    // Each dump has random words in these lines.
    const dump = () => postgres.dump(url).replaceAll(/^\\(un)?restrict .*$/gm, '')
    const before = dump()
    const dataFolder = tempDir(t)
    const expected = /written by Pennon 0\.1\.0 or earlier, and 0\.1\.0 is the last version that can open it\. Export/
    assert.match(await refusedStart(dataFolder, settings), new RegExp(`^pennon: The state was ${expected.source}`))
    const { isGood, found, remedy } = await doctorOn(settings)
    assert.equal(isGood, false)
    assert.match(`${found}. ${remedy}`, expected)
    assert.match((await newKey({ ...settings, PENNON_DATA: dataFolder })).stderr, expected)
    assert.match((await runCommand({ ...settings, PENNON_DATA: dataFolder }, 'work')).stderr, expected)
    assert.deepEqual([dump(), readdirSync(dataFolder)], [before, []])
  })
})
