import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { listDefinitionVersions } from '#adapters/sql/definitions/unchanged-definitions.ts'
import { type AttemptKind, keptAttempts } from '#core/users/sign-in-throttle.ts'
import { fieldOf } from '../../../tests/support/fields-of.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aChange, aNewCohort, aNewFlag, aNewProject } from '../../../tests/support/values.ts'
import { migrateSqlite } from './kysely-on-sqlite.ts'
import { openStateForWriting } from './open-sqlite.ts'
import { openDefinitionLoader, openSqliteManagementStore } from './sqlite-management-store.ts'

it('loading definitions does not parse rows of flags or cohorts that the caller already has, however many', async t => {
  const { management, loader, database } = await openProject(t)
  for (let id = 1; id <= 40; id++) await management.createFlag(aNewFlag({ key: `f${id}` }), aChange())
  for (let id = 1; id <= 3; id++) await management.createCohort(aNewCohort(), aChange(), {})
  const { revision, projects } = await loader.loadChanges(-1)
  const held = listDefinitionVersions(projects[0]!)
  assert.deepEqual([held.flags.length, held.cohorts.length], [40, 3])

  // From here on, only rows that are written later can be parsed.
  database.exec(`UPDATE feature_flag SET filters = '{'; UPDATE cohort SET filters = '{'`)
  await management.createFlag(aNewFlag({ key: 'new' }), aChange())
  assert.deepEqual(await loader.listChangedProjects(revision), [1])
  const changes = await loader.readChanges(revision, [[1, held]])
  assert.deepEqual(
    changes.projects.map(({ read, gone }) => [read.flags.map(({ key }) => key), read.cohorts, gone]),
    [[['new'], [], { flags: [], cohorts: [] }]],
  )
  await assert.rejects(loader.readChanges(revision, []), { name: 'PortError', code: 'corrupt' })
})

it('loading definitions reads the rows of many changed flags in bounded queries', async t => {
  const { management, loader, database } = await openProject(t)
  await management.createFlag(aNewFlag({ key: 'f1' }), aChange())
  const { revision, projects } = await loader.loadChanges(-1)
  const columns = Object.keys(database.prepare('SELECT * FROM feature_flag').get() as object)
  const copied = columns.map(name => (name === 'id' ? 'n' : name === 'key' ? `'f' || n` : name)).join(', ')
  database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1201)
    INSERT INTO feature_flag (${columns.join(', ')}) SELECT ${copied} FROM feature_flag, numbers`)
  await management.updateProject(1, { name: 'other' }, aChange())
  const { flags } = (await loader.loadChanges(revision, () => projects[0]!)).projects[0]!
  assert.deepEqual(
    flags.map(({ id, key }) => [id, key]),
    Array.from({ length: 1_201 }, (_, index) => [index + 1, `f${index + 1}`]),
  )
  assert.equal(flags[0], projects[0]!.flags[0])
})

it('attempts to sign in are kept for users and for the newest names, however many names are invented', async t => {
  const { management, database } = await openProject(t)
  const nowMs = 1_700_000_000_000
  const count = (kind: AttemptKind, key: string) => management.countSignInAttempt(kind, key, nowMs)
  const { namesMax } = keptAttempts.account
  // All newer than the attempts counted below, and with more attempts.
  database.exec(`WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${2 * namesMax})
    INSERT INTO sign_in_attempt SELECT 'account:x' || n, 9, ${nowMs} + 1 + n % 2 FROM numbers;
    INSERT INTO sign_in_attempt VALUES ('user:ada', 9, ${nowMs}), ('address:busy', 20, ${nowMs}), ('address:old', 20, 0)`)
  await count('account', 'eve')
  const names = database.prepare(`SELECT name FROM sign_in_attempt WHERE name NOT LIKE 'account:x%' ORDER BY name`)
  assert.deepEqual(fieldOf(names.all() as { name: string }[], 'name'), ['account:eve', 'address:busy', 'user:ada'])
  const left = database.prepare(`SELECT count(*) AS count, min(counted_at) - ${nowMs} AS age FROM sign_in_attempt
    WHERE name LIKE 'account:x%'`)
  assert.deepEqual(Object.values(left.get()!), [namesMax, 2])
})

/** A state with one project, its loader, and a connection that writes past the store. */
async function openProject(t: TestContext) {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  const loader = openDefinitionLoader({ dataFolder })
  const database = openStateForWriting(dataFolder, 0)
  t.after(async () => {
    database.close()
    await loader.close()
    await management.close()
  })
  await management.createProject(aNewProject(), aChange())
  return { management, loader, database }
}
