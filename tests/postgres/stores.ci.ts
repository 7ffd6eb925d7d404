// Behaviour that needs a server: concurrent writers, sessions that end, statements that hang, and change notifications.

import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openPostgresDefinitionStore } from '#adapters/postgres/postgres-definition-store.ts'
import { migratePostgres, openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import { openPostgresSubjectStore } from '#adapters/postgres/postgres-subject-store.ts'
import { migrations } from '#adapters/sql/known-migrations.ts'
import { UnfitSchemaError } from '#ports/port-error.ts'
import { startDefinitionCache } from '#services/flags/definition-cache.ts'
import { createLogger } from '#telemetry/log.ts'
import { eventually } from '../support/eventually.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { endSessions, logger, migratedDatabases } from '../support/postgres-state.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { loadWhole } from '../support/state.ts'
import { aChange, aMapping, aNewFlag, aNewProject, aPerson, chunkChanges, created } from '../support/values.ts'
import { holdTable } from './held-table.ts'

const skip = noPostgres()
const position = { stream: 'main', ownerId: 'w1', offset: 1, committedAtMs: 0 } as const

describe('state on PostgreSQL', { skip }, async () => {
  let postgres: TestPostgres
  let newDatabase: Awaited<ReturnType<typeof migratedDatabases>>
  if (skip === false) {
    postgres = await startPostgres()
    newDatabase = await migratedDatabases(postgres)
    after(() => postgres.stop())
  }

  it('only one of several processes that start at the same time migrates the state', async t => {
    const url = await postgres.createDatabase()
    t.after(() => postgres.dropDatabase(url))
    await Promise.all(Array.from({ length: 6 }, () => migratePostgres({ url, logger })))
    const rows = await postgres.query<{ count: string }>('SELECT count(*) FROM revision', [], url)
    assert.equal(rows[0]!.count, '1')
  })

  it('the migration of an older state is logged, and nothing is logged for a new state', async t => {
    const url = await postgres.createDatabase()
    t.after(() => postgres.dropDatabase(url))
    const other = await postgres.createDatabase()
    t.after(() => postgres.dropDatabase(other))
    const lines: string[] = []
    const info = createLogger({ level: 'info', process: 'serve' }, { write: line => void lines.push(line) })
    await migratePostgres({ url: other, logger: info })
    await migratePostgres({ url, logger })
    const { version } = migrations.at(-1)!
    const next = { version: version + 1, name: 'next', statements: () => ['CREATE TABLE later (x BIGINT)'] }
    for (const _ of [1, 2]) await migratePostgres({ url, logger: info }, [...migrations, next])
    const logged = lines.map(line => JSON.parse(line)).map(({ level, from, to }) => [level, from, to])
    assert.deepEqual(logged, [['info', version, version + 1]])
  })

  it('a state written by a newer version is left unchanged', async t => {
    const url = await newDatabase(t)
    await postgres.query("INSERT INTO schema_version (version, name) VALUES (999, 'future')", [], url)
    await assert.rejects(migratePostgres({ url, logger }), UnfitSchemaError)
  })

  it('fronts that write concurrently get unique ids and revisions without gaps', async t => {
    const url = await newDatabase(t)
    const fronts = [1, 2, 3].map(() => openPostgresManagementStore({ url, logger }))
    t.after(() => Promise.all(fronts.map(front => front.close())))
    await fronts[0]!.createProject(aNewProject(), aChange())
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        fronts[index % 3]!.createFlag(aNewFlag({ key: `flag ${index >> 1}` }), aChange()),
      ),
    )
    const made = results.flatMap(result => (result.ok ? [result.value] : []))
    assert.equal(made.length, 15, 'one of two flags with the same key is refused')
    const upTo15 = Array.from({ length: 15 }, (_, index) => index + 1)
    assert.deepEqual(
      made.map(({ value }) => value.id).toSorted((a, b) => a - b),
      upTo15,
    )
    assert.deepEqual(
      made.map(({ revision }) => revision).toSorted((a, b) => a - b),
      upTo15.map(revision => revision + 1),
    )
    const changes = await Promise.all([
      ...fronts.map(front => front.updateProject(1, { name: 'renamed' }, aChange())),
      ...fronts.map(front => front.updateFlag(1, 1, { name: 'renamed' }, aChange('Test', 1))),
    ])
    assert.ok(changes.every(change => change.ok))
  })

  it('workers that write the same persons concurrently take turns, without deadlocks', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const url = await newDatabase(t)
    const workers = (['main', 'historical'] as const).map(lane => ({
      lane,
      store: openPostgresChunkStore({ url, logger }),
    }))
    t.after(() => Promise.all(workers.map(({ store }) => store.close())))
    const persons = Array.from({ length: 200 }, (_, index) =>
      aPerson({ uuid: `person-${String(index).padStart(3, '0')}` }),
    )
    for (const { lane, store } of workers) await store.claimPosition(lane, 'w1')
    const first = { persons: persons.map(created), mappings: persons.map(row => created(aMapping(row, row.uuid))) }
    assert.equal(await workers[0]!.store.commitChunk(chunkChanges(first), position), 'committed')
    let conflicts = 0
    await Promise.all(
      workers.map(async ({ lane, store }) => {
        for (let round = 0; round < 20; ) {
          const some = persons.filter(() => random() < 0.3).toSorted(() => random() - 0.5)
          const loaded = await loadWhole(store, {
            distinctIds: some.map(({ uuid }) => ({ projectId: 1, distinctId: uuid })),
            groups: [],
            projectIds: [],
          })
          const changed = loaded.persons
            .toSorted(() => random() - 0.5)
            .map(row => ({ row: { ...row, version: row.version + 1 }, loadedVersion: row.version }))
          const end = await store.commitChunk(chunkChanges({ persons: changed }), {
            ...position,
            stream: lane,
            offset: round + 2,
          })
          assert.notEqual(end, 'not_owner')
          if (end === 'committed') round++
          else conflicts++
        }
      }),
    )
    t.diagnostic(`${conflicts} conflicts`)
    const rows = await postgres.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = $1',
      [new URL(url).pathname.slice(1)],
    )
    assert.equal(rows[0]!.deadlocks, '0')
  })

  it('the epoch changes if the server may have been replaced by an older copy', async t => {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    const open = () => openPostgresDefinitionStore({ url, logger, loadChanges: management.loadChanges })
    const [store, other] = [open(), open()]
    t.after(() => Promise.all([store, other, management].map(each => each.close())))
    const { epoch } = await store.readRevision()
    await management.createProject(aNewProject({ apiToken: 'phc_epoch' }), aChange())
    assert.equal((await store.readRevision()).epoch, epoch, 'the same with every write')
    assert.equal((await other.readRevision()).epoch, epoch, 'the same for every process')
    await postgres.restart()
    const after = await eventually(() => store.readRevision().catch(() => null), { what: 'the server' })
    assert.notEqual(after.epoch, epoch)
  })

  it('other fronts are notified of a write, whichever process made it', async t => {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    const store = openPostgresDefinitionStore({ url, logger, loadChanges: management.loadChanges })
    await store.listening
    // Polling happens only once an hour, so anything that arrives here was notified.
    const cache = await startDefinitionCache({ store, logger, pollMs: 3_600_000, compile: changed => changed })
    const chunks = openPostgresChunkStore({ url, logger })
    t.after(async () => {
      cache.close()
      await store.close()
      await management.close()
      await chunks.close()
    })
    await management.createProject(aNewProject({ apiToken: 'phc_told' }), aChange())
    await eventually(() => cache.findByToken('phc_told') !== null, { what: 'the project' })
    await chunks.claimPosition('main', 'w1')
    const groupTypes = [{ projectId: 1, name: 'company', index: 0 }]
    assert.equal(await chunks.commitChunk(chunkChanges({ groupTypes }), position), 'committed')
    await eventually(() => cache.findById(1)?.groupTypes.length === 1, { what: 'the group type' })

    await endSessions(postgres, url)
    // Most likely written while no front listens; the next listener loads what it missed.
    const others = openPostgresManagementStore({ url, logger })
    t.after(() => others.close())
    await others.createProject(aNewProject({ apiToken: 'phc_missed' }), aChange())
    await eventually(() => cache.findByToken('phc_missed') !== null, { what: 'the project made between the sessions' })
    await others.createProject(aNewProject({ apiToken: 'phc_again' }), aChange())
    await eventually(() => cache.findByToken('phc_again') !== null, { what: 'the second project' })
  })

  it('new sessions replace those that the server ended', async t => {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    const subjects = openPostgresSubjectStore({ url, logger })
    t.after(() => Promise.all([management.close(), subjects.close()]))
    await management.createProject(aNewProject(), aChange())
    assert.equal(await subjects.findPerson(1, 'ada'), null)
    await endSessions(postgres, url)
    const isServed = async () => (await subjects.findPerson(1, 'ada')) === null
    await eventually(() => isServed().catch(() => false), { what: 'a session' })
    assert.equal((await management.findProject(1))?.id, 1)
  })

  it('a statement blocked by a lock fails as `timeout`', async t => {
    const url = await newDatabase(t)
    const subjects = openPostgresSubjectStore({ url, logger })
    const chunks = openPostgresChunkStore({ url, logger, lockMsMax: 100 })
    t.after(() => Promise.all([subjects.close(), chunks.close()]))
    await chunks.claimPosition('main', 'w1')
    const release = await holdTable(url, 'person', 'ACCESS EXCLUSIVE')
    await Promise.all([
      assert.rejects(async () => subjects.findPerson(1, 'ada'), { code: 'timeout' }),
      assert.rejects(chunks.commitChunk(chunkChanges({ persons: [created(aPerson())] }), position), {
        code: 'timeout',
      }),
    ])
    await release()
    assert.equal(await subjects.findPerson(1, 'ada'), null)
    assert.equal(await chunks.commitChunk(chunkChanges({ persons: [created(aPerson())] }), position), 'committed')
  })

  it('concurrent look-ups share one statement of each kind, and query each name once', async t => {
    const url = await newDatabase(t)
    const chunks = openPostgresChunkStore({ url, logger })
    const subjects = openPostgresSubjectStore({ url, logger })
    t.after(() => Promise.all([subjects.close(), chunks.close()]))
    await chunks.claimPosition('main', 'w1')
    const persons = Array.from({ length: 1_200 }, (_, index) => aPerson({ uuid: `person-${index}` }))
    const changes = { persons: persons.map(created), mappings: persons.map(row => created(aMapping(row, row.uuid))) }
    await chunks.commitChunk(chunkChanges(changes), position)
    const sessions = async () =>
      (
        await postgres.query<{ count: string }>(
          `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pennon subjects' AND datname = current_database()`,
          [],
          url,
        )
      )[0]!.count
    const some = await Promise.all(persons.slice(0, 300).map(({ uuid }) => subjects.findPerson(1, uuid)))
    assert.deepEqual(
      some.map(found => found?.uuid),
      persons.slice(0, 300).map(({ uuid }) => uuid),
    )
    assert.equal(await sessions(), '1', 'one statement needs one session')
    const twice = [subjects.findHashKeys(1, 'person-1'), subjects.findHashKeys(1, 'person-1')]
    assert.equal(twice[0], twice[1])
    await Promise.all(twice)
    const all = await Promise.all(persons.map(({ uuid }) => subjects.findPerson(1, uuid)))
    assert.ok(all.every((found, index) => found?.uuid === `person-${index}`))
    assert.equal(await sessions(), '2', 'two statements at once, of at most 500 names each')
  })

  it("a missing server is `unavailable`, and a number beyond JavaScript's precision is `corrupt`", async t => {
    const nowhere = openPostgresManagementStore({ url: 'postgres://pennon@127.0.0.1:1/none', logger })
    await assert.rejects(nowhere.findProject(1), { code: 'unavailable' })
    await nowhere.close()
    const url = await newDatabase(t)
    await postgres.query('UPDATE revision SET value = 9007199254740993', [], url)
    const management = openPostgresManagementStore({ url, logger })
    t.after(() => management.close())
    await assert.rejects(management.loadChanges(-1), { code: 'corrupt' })
  })

  it('a statement planned on an empty table still uses the index once the table is full', async t => {
    // A new table is needed, since one that was emptied counts as scanned.
    const url = await postgres.createDatabase()
    t.after(() => postgres.dropDatabase(url))
    await migratePostgres({ url, logger })
    const subjects = openPostgresSubjectStore({ url, logger })
    t.after(() => subjects.close())
    for (let index = 0; index < 10; index++) await subjects.findPerson(1, `early ${index}`)
    await postgres.query(
      `INSERT INTO person (project_id, uuid, properties, property_marks, created_at, is_identified, version, last_seen_at)
        SELECT 1, 'p' || i, '{}', '{}', 0, 0, 0, 0 FROM generate_series(1, 20000) AS i`,
      [],
      url,
    )
    await postgres.query(`INSERT INTO person_distinct_id SELECT 1, 'd' || id, id, 0 FROM person`, [], url)
    const reads = async () => {
      const rows = await postgres.query<{ scanned: string; sought: string }>(
        `SELECT sum(seq_tup_read) AS scanned, sum(idx_scan) AS sought FROM pg_stat_user_tables
          WHERE relname = 'person_distinct_id'`,
        [],
        url,
      )
      return { scanned: Number(rows[0]!.scanned), sought: Number(rows[0]!.sought) }
    }
    const before = await reads()
    for (let index = 1; index <= 20; index++) assert.ok((await subjects.findPerson(1, `d${index}`)) !== null)
    // Sessions report their reads once a second, with their next statement.
    const after = await eventually(async () => {
      await subjects.findPerson(1, 'd1')
      const now = await reads()
      return now.scanned + now.sought >= before.scanned + before.sought + 20 ? now : null
    })
    assert.equal(after.scanned, 0)
  })
})
