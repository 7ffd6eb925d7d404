// Erasing a person with a real event store: no table of either store keeps a trace of it, wherever a worker stops in
// between, and the data of others is unchanged.

import assert from 'node:assert/strict'
import { after, describe, it, type TestContext } from 'node:test'
import pg from 'pg'
import { createPersonEraser } from '#adapters/clickhouse/writing/erase-persons.ts'
import { openPostgresChunkStore } from '#adapters/postgres/postgres-chunk-store.ts'
import { openPostgresManagementStore } from '#adapters/postgres/postgres-management-store.ts'
import type { PersonErasure } from '#core/persons/erasure.ts'
import { mergeRowRanges, type RowRange } from '#core/processing/row-ranges.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { restoreOverrides } from '#services/processing/restore-events.ts'
import type { ErasureFaultPoint } from '#services/worker/erase-persons.ts'
import { commit } from '../ports/management-harness.ts'
import { engineForTests } from '../support/engine-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { noPostgres, startPostgres } from '../support/postgres.ts'
import { logger, migratedDatabases, postgresStates } from '../support/postgres-state.ts'
import { type OpenSqlState, openSqliteState } from '../support/state.ts'
import { aChange, aMapping, aNewProject, aPerson, created } from '../support/values.ts'
import { withMethods } from '../support/with-methods.ts'
import { Crash, type ErasureWorld, erasureWorld, everything, mark } from './erasure-world.ts'

const never = new AbortController().signal
const faultPoints: readonly ErasureFaultPoint[] = ['settled', 'mentions', 'counted', 'noted', 'removed', 'marked']

const engine = engineForTests()

erasedPersons('SQLite', openSqliteState, faultPoints)
testErasureFromEventStore()

const skip = noPostgres()
if (skip === false) {
  const postgres = await startPostgres()
  after(() => postgres.stop())
  const newDatabase = await migratedDatabases(postgres)
  erasedPersons('PostgreSQL', postgresStates(postgres, newDatabase), ['removed'])
  testIdsBeingLinked(newDatabase, (text, url) => postgres.query(text, [], url))
} else it('erased persons on PostgreSQL', { skip }, () => {})

async function openErasures(management: ManagementStore): Promise<readonly PersonErasure[]> {
  return management.readErasures((await management.listOpenErasures(0)).map(({ id }) => id))
}

/** Tables that may still contain its ids while the log has records of them. */
async function assertGone(world: ErasureWorld): Promise<void> {
  assert.deepEqual(await world.tablesWith(mark), ['state.erased_distinct_id'])
}

function erasedPersons(state: string, openState: OpenSqlState, points: readonly ErasureFaultPoint[]): void {
  describe(`erasing a person, with the state in ${state}`, () => {
    const open = (t: TestContext) => erasureWorld(t, openState, engine)

    it('removes the person from every table, and counts what was removed', async t => {
      const world = await open(t)
      assert.deepEqual(await world.tablesWith(mark), [
        'events.events',
        'events.events_pending',
        'events.person_distinct_id_overrides',
        'events.persons',
        'events.rejected_events',
        'events.replay_messages',
        'state.flag_hash_key_override',
        'state.import_assignments',
        'state.ingestion_warning',
        'state.person',
        'state.person_distinct_id',
        'state.personless_distinct_id',
      ])
      const others = await world.others()
      const person = await world.personOf(`user-${mark}`)
      const storedRows = async () => {
        const [job] = await world.query(`SELECT stored_rows FROM import_job WHERE id = ${world.pendingJob}`)
        return Number(job!.stored_rows)
      }
      const rowsBefore = await storedRows()

      assert.deepEqual(await world.erase(), { foundCount: 1, erasedCount: 1 })
      assert.equal(await world.management.findPersonByUuid(1, person.uuid), null)
      await world.finish()
      await assertGone(world)
      assert.deepEqual(await world.others(), others)
      const results = await world.erased()
      assert.deepEqual(
        results.map(({ uuid, requestedBy, personCount, removed }) => ({ uuid, requestedBy, personCount, removed })),
        [
          {
            ...{ uuid: person.uuid, requestedBy: aChange('the key').by, personCount: 1 },
            removed: { events: 7, pendingEvents: 1, recordings: 1, rejectedEvents: 1 },
          },
        ],
      )
      assert.notEqual(results[0]!.doneAtMs, null)
      // Publishing expects the reduced number of rows.
      assert.equal(await storedRows(), rowsBefore - 1)
      await world.publishPending()
      await assertGone(world)
      const notes = await world.management.listImportNotes(world.pendingJob)
      assert.deepEqual(
        notes.map(({ reason }) => reason),
        ['recent'],
      )
    })

    it(`completes even if successive workers stop after the steps ${points.join(', ')}`, async t => {
      const world = await open(t)
      const others = await world.others()
      await world.append(world.event(`visitor-${mark}`, 'waits'))
      await world.erase()
      for (const point of points) {
        // The last step waits until the log has been processed.
        if (point === 'marked') await world.process()
        await assert.rejects(
          world.finish(name => {
            if (name === point) throw new Crash()
          }),
          Crash,
        )
      }
      await world.process()
      await world.finish()
      await assertGone(world)
      assert.deepEqual(await world.others(), others)
      assert.equal((await world.erased())[0]!.removed!.events, 7)
    })

    it('drops accepted but unprocessed events of the person, and the counts include them', async t => {
      const world = await open(t)
      await world.append(
        world.event(`user-${mark}`, 'waits'),
        world.event('third', 'waits'),
        // Would have linked another person with it.
        world.event('third', '$identify', { propertiesJson: `{"$anon_distinct_id":"user-${mark}"}` }),
      )
      await world.append(world.event(`user-${mark}`, 'waits', world.ofJob(world.pendingJob)))
      await world.erase()
      await world.process()
      await world.finish()
      assert.deepEqual((await world.outcomes())['main dropped person_erased'], 1)
      assert.equal((await world.outcomes())['historical dropped person_erased'], 1)
      const names = await world.rows<{ event: string }>(
        "SELECT event FROM pennon.events FINAL WHERE distinct_id = 'third' ORDER BY event",
      )
      assert.deepEqual(
        names.map(({ event }) => event),
        ['$identify', 'waits'],
      )
      assert.equal((await world.personOf('third')).distinctIdCount, 1)
      // Events of others that mention it stay with them.
      assert.deepEqual(await world.tablesWith(mark), ['events.events', 'state.erased_distinct_id'])
    })

    it('lets events that are accepted after the erasure create a new person, who is then kept', async t => {
      const world = await open(t)
      await world.append(world.event(`user-${mark}`, 'of before'))
      await world.erase()
      const link = { propertiesJson: `{"$anon_distinct_id":"visitor-${mark}"}` }
      await world.append(
        world.event(`visitor-${mark}`, 'again', { propertiesJson: '{"$process_person_profile":false}' }),
        world.event(`visitor-${mark}`, 'again', { propertiesJson: '{}' }),
        world.event(`user-${mark}`, '$identify', link),
        world.event(`user-${mark}`, 'again', { propertiesJson: '{"$set":{"plan":"new"}}' }),
      )
      await world.process()
      await world.finish()
      const person = await world.personOf(`user-${mark}`)
      assert.equal(person.distinctIdCount, 2)
      assert.equal(JSON.parse(person.propertiesJson).email, undefined)
      assert.equal(JSON.parse(person.propertiesJson).plan, 'new')
      const { events } = await world.events.listEvents({ projectId: 1, personId: person.uuid, limit: 100 } as never)
      assert.deepEqual(events.map(({ event }) => event).sort(), ['$identify', 'again', 'again', 'again'])
      const mirrored = await world.rows(
        `SELECT properties FROM pennon.persons FINAL WHERE uuid = '${person.uuid}' AND is_deleted = 0`,
      )
      assert.equal(mirrored.length, 1)
      // Erased again, with all the new data.
      await world.erase()
      await world.finish()
      await assertGone(world)
    })
  })
}

/** On PostgreSQL a worker commits beside the private API; on SQLite one waits for the other. */
function testIdsBeingLinked(
  newDatabase: (t: TestContext) => Promise<string>,
  query: (text: string, url: string) => Promise<unknown[]>,
): void {
  it('an id is erased too if a worker links it to the erased person at the same time', async t => {
    const url = await newDatabase(t)
    const management = openPostgresManagementStore({ url, logger })
    const chunks = openPostgresChunkStore({ url, logger })
    t.after(() => Promise.all([management.close(), chunks.close()]))
    await management.createProject(aNewProject(), aChange())
    const ada = aPerson()
    await commit(chunks, { persons: [created(ada)], mappings: [created(aMapping(ada, 'ada'))] })
    const worker = new pg.Client({ connectionString: url })
    await worker.connect()
    worker.on('error', () => {}) // if the test fails, the database is dropped before this session ends
    await worker.query('BEGIN')
    await worker.query(`SELECT id FROM person FOR NO KEY UPDATE`)
    await worker.query(`INSERT INTO person_distinct_id SELECT project_id, 'given', id, 0 FROM person`)
    const erasing = management.erasePersons(
      {
        ...{ projectId: 1, personIds: await management.findPersonIds(1, { distinctIds: ['ada'] }) },
        ...{ ...everything, keepsPerson: true, logId: 'log' },
        endOffsets: { main: 5, historical: 0 },
      },
      aChange(),
    )
    const waitsText = `SELECT 1 AS waits FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%person%'`
    await eventually(async () => (await query(waitsText, url)).length > 0, { what: 'the erasure' })
    await worker.query('COMMIT')
    await worker.end()
    assert.deepEqual(await erasing, { takenCount: 1, erasedCount: 1 })
    assert.deepEqual((await openErasures(management))[0]!.distinctIds.toSorted(), ['ada', 'given'])
  })
}

/** Behaviour independent of the state's engine. */
function testErasureFromEventStore(): void {
  describe('erasing a person from the event store', () => {
    const open = (t: TestContext) => erasureWorld(t, openSqliteState, engine)

    it('is not undone by refilling a lost event store or by restoring an older copy', async t => {
      const world = await open(t)
      const others = await world.others()
      await world.erase()
      await world.finish()
      for (const table of ['events', 'replay_messages', 'rejected_events', 'worker_marks'])
        await world.command(`TRUNCATE TABLE pennon.${table}`)
      await world.keeper().checkAtStart(never)
      await world.finish()
      await assertGone(world)
      assert.equal((await world.others()).stored.length, others.stored.length)
      // An older copy has rows that no log has.
      await world.command('TRUNCATE TABLE pennon.worker_marks')
      await world.command(
        `INSERT INTO pennon.events (project_id, uuid, event, distinct_id, timestamp, captured_at)
          SELECT 1, generateUUIDv4(), 'of the copy', 'user-${mark}', now64(6), now64(3)`,
      )
      await world.keeper().checkAtStart(never)
      await world.finish()
      await assertGone(world)
    })

    it('works with an older copy of the state that contains fewer erasures than the event store', async t => {
      const world = await open(t)
      const others = await world.others()
      const olderMark = await world.management.findEventStoreMark()
      assert.ok(olderMark)
      const countErasures = (count: number) =>
        world.query(`UPDATE project SET erasures = ${count} WHERE id = 1 RETURNING id`)
      await countErasures(25)
      await world.append(
        world.event(`visitor-late-${mark}`, 'visit', { propertiesJson: '{}' }),
        world.event(`user-${mark}`, '$identify', {
          propertiesJson: `{"$anon_distinct_id":"visitor-late-${mark}","text":"${mark}"}`,
        }),
      )
      await world.process()
      await countErasures(5)
      await world.management.saveEventStoreMark(olderMark)
      await world.keeper().checkAtStart(never)
      await world.erase()
      await world.finish()
      await assertGone(world)
      assert.deepEqual(await world.others(), others)
    })

    it('waits for overrides that were read before the erasure and are written after it', async t => {
      const world = await open(t)
      await world.command('TRUNCATE TABLE pennon.person_distinct_id_overrides')
      let isSettled = false
      const insert: typeof world.events.insert = async rows => {
        void world.underWay.settled().then(() => {
          isSettled = true
        })
        await world.erase()
        assert.equal(isSettled, false)
        return world.events.insert(rows)
      }
      await restoreOverrides(world.management, { events: { insert }, underWay: world.underWay }, never)
      assert.ok((await world.tablesWith(mark)).includes('events.person_distinct_id_overrides'))
      await world.finish()
      assert.equal(isSettled, true)
      await assertGone(world)
    })

    it('takes no step while it waits for the log to be processed', async t => {
      const world = await open(t)
      await world.append(world.event(`user-${mark}`, 'waits'))
      await world.erase()
      const steps: ErasureFaultPoint[] = []
      const erasing = world.erasures(step => void steps.push(step))
      await eventually(async () => {
        steps.length = 0
        return (await erasing.work()) && steps.length === 0
      })
      assert.equal((await world.erased())[0]!.doneAtMs, null)
      await world.process()
      await eventually(async () => !(await erasing.work()))
      await assertGone(world)
    })

    it('counts nothing while rows are still being removed', async t => {
      const world = await open(t)
      await world.erase()
      const erasures = await openErasures(world.management)
      await world.command('SYSTEM STOP MERGES pennon.events')
      assert.equal(await world.events.removeErasedRows(erasures, async () => undefined), 'under_way')
      assert.equal(await world.events.countErasedRows(erasures), 'under_way')
      await world.command('SYSTEM START MERGES pennon.events')
      await eventually(async () => (await world.events.countErasedRows(erasures)) !== 'under_way')
    })

    it('still knows which row ranges it emptied when the store merges parts during the removal', async t => {
      const world = await open(t)
      await world.erase()
      const merges = (what: 'START' | 'STOP') => world.command(`SYSTEM ${what} MERGES pennon.deduplicated_flag_calls`)
      await merges('STOP')
      for (const _ of ['a part', 'another'])
        await world.command(
          `INSERT INTO pennon.deduplicated_flag_calls (project_id, uuid, distinct_id) SELECT 1, generateUUIDv4(), 'user-${mark}'`,
        )
      let isMerged = false
      const mergeOnce = async (query: string) => {
        if (isMerged || !query.startsWith('SELECT _part') || !query.includes('deduplicated_flag_calls')) return
        isMerged = true
        await merges('START')
        await world.command('OPTIMIZE TABLE pennon.deduplicated_flag_calls FINAL')
      }
      const eraser = createPersonEraser({
        write: run =>
          engine.clients.write((client, database, endpoint) => {
            const query: typeof client.query = async params => {
              const result = await client.query(params)
              await mergeOnce(params.query)
              return result
            }
            return run(withMethods(client, { query }), database, endpoint)
          }),
      })
      const emptied: RowRange[] = []
      await eraser.removeErasedRows(await openErasures(world.management), async ranges => {
        emptied.push(...ranges.filter(({ table }) => table === 'deduplicated_flag_calls'))
      })
      assert.ok(isMerged)
      assert.deepEqual(
        mergeRowRanges(emptied).map(({ from, to }) => [from, to]),
        [[1, 2]],
      )
    })

    it('is not mistaken for a loss of rows, and the erased ids are forgotten when the log’s records are deleted', async t => {
      const world = await open(t)
      await world.erase()
      const keeper = world.keeper()
      await keeper.checkAtStart(never)
      await world.finish(async name => {
        if (name === 'removed') assert.deepEqual(await keeper.findLostSpans(), [])
      })
      for (const { table, partition } of await world.rows<{ table: string; partition: string }>(
        "SELECT DISTINCT table, partition_id AS partition FROM system.parts WHERE database = 'pennon' AND active AND rows = 0",
      ))
        await world.command(`ALTER TABLE pennon.${table} DROP PARTITION ID '${partition}'`).catch(() => undefined)
      assert.deepEqual(await keeper.findLostSpans(), [])
      await world.erasures().forget()
      assert.deepEqual(await world.tablesWith(mark), ['state.erased_distinct_id'])
    })

    it('removes events up to the latest of several erasures of an id, and keeps the events that follow', async t => {
      const world = await open(t)
      await world.erase()
      await world.append(world.event(`user-${mark}`, 'between', { propertiesJson: '{}' }))
      await world.process()
      await world.erase(everything, 'user-other')
      await world.erase()
      await world.append(world.event(`user-${mark}`, 'after', { propertiesJson: '{}' }))
      await world.process()
      assert.equal((await openErasures(world.management)).length, 3)
      await world.finish()
      const left = await world.rows<{ event: string }>('SELECT event FROM pennon.events FINAL')
      assert.deepEqual(
        left.map(({ event }) => event),
        ['after'],
      )
      const results = await world.erased()
      // The new person of the id has none of the visitor's events.
      assert.deepEqual(
        results.toSorted((a, b) => a.erasureId - b.erasureId).map(({ removed }) => removed!.events),
        [2, 7, 6],
      )
    })

    it('can keep the person and remove only its events', async t => {
      const world = await open(t)
      await world.erase({ ...everything, keepsPerson: true })
      await world.finish()
      const person = await world.personOf(`user-${mark}`)
      assert.equal(JSON.parse(person.propertiesJson).email, `${mark}@example.com`)
      assert.deepEqual(
        (await world.tablesWith(mark)).filter(table => table.startsWith('events.')),
        ['events.person_distinct_id_overrides', 'events.persons'],
      )
    })

    it('can remove the person and keep its events, under their distinct ids', async t => {
      const world = await open(t)
      await world.erase({ keepsPerson: false, deletesEvents: false, deletesRecordings: false })
      await world.finish()
      assert.deepEqual(await world.tablesWith(mark), [
        'events.events',
        'events.events_pending',
        'events.rejected_events',
        'events.replay_messages',
        'state.erased_distinct_id',
        'state.erased_past',
        'state.person',
        'state.person_distinct_id',
      ])
    })
  })
}
