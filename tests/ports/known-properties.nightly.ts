// Known properties of persons are added to pending rows by mutations of the engine: in pieces, despite crashes between
// any two steps, concurrently with a worker that has lost the job, and within the size limit of a row.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ClickHouseClients } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { createRowInserter } from '#adapters/clickhouse/writing/insert-rows.ts'
import { addKnownProperties } from '#adapters/clickhouse/writing/known-properties.ts'
import { type GetKnownProperties, knownBytesMax } from '#ports/events/event-writer.ts'
import { PortError } from '#ports/port-error.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const ids = Array.from({ length: 2_500 }, (_, index) => `id-${index}`)
const knownOf = async (some: readonly string[]) => new Map(some.map(id => [id, `{"id":"${id}","plan":"pro"}`]))
const nothingKnown = async () => new Map<string, string>()
const never = new AbortController().signal

describe('known properties of persons, added to rows', () => {
  let jobCount = 1
  const held = eventStoreForTests({ clock: fixedClock('2026-12-03T00:00:00Z') })

  const query = <Row>(text: string): Promise<Row[]> =>
    held.clients.write(async (client, database) =>
      (await client.query({ query: text.replaceAll('DB', database), format: 'JSONCompactEachRow' })).json<Row>(),
    )
  const command = (text: string) =>
    held.clients.write((client, database) =>
      client.command({
        query: text.replaceAll('DB', database),
        clickhouse_settings: { mutations_sync: '0', allow_nondeterministic_mutations: 1 },
      }),
    )
  const pend = async (over: Parameters<typeof imported>[2] = {}) => {
    const job = ++jobCount
    const pendingEvents = ids.map(distinctId => imported(aStoredEvent({ distinctId, ...over }), job))
    await held.insert({ pendingEvents })
    return job
  }
  const add = (job: number, on: ClickHouseClients, known: GetKnownProperties = knownOf, signal = never) =>
    addKnownProperties(
      { clients: on, inserter: createRowInserter(on) },
      job,
      { index: 0, count: 1 },
      known,
      signal,
      40_000, // two mutations
    )
  const assertAdded = async (job: number) => {
    assert.deepEqual(
      await query(`SELECT count(), countIf(person_properties = concat('{"id":"', distinct_id, '","plan":"pro"}'))
        FROM DB.events_pending FINAL WHERE import_partition = ${job}`),
      [[ids.length, ids.length]],
    )
    assert.equal(await countKnown(), 0)
  }
  const count = async (text: string) => Number((await query<[number | string]>(text))[0]![0])
  const countKnown = () => count('SELECT count() FROM DB.known_person_properties')
  const countMutations = (condition = '1') =>
    count(`SELECT count() FROM system.mutations WHERE table = 'events_pending' AND NOT is_done AND ${condition}`)
  /** Leaves rows in the table as a worker does that is killed. */
  const leaveKnown = (job: number, id: string) =>
    command(`INSERT INTO DB.known_person_properties VALUES (${job}, 1, '${id}', '"left":1')`)
  /** Lets mutations of pending rows wait until `then` has run. */
  const whileHeld = async (work: () => Promise<void>) => {
    await command('SYSTEM STOP MERGES DB.events_pending')
    try {
      await work()
    } finally {
      await command('SYSTEM START MERGES DB.events_pending')
    }
  }

  it('are added after a crash before or after any statement', async () => {
    const job = await pend()
    let isOver = false
    for (let crash = 0; !isOver; crash++) {
      let left = crash
      const dying: ClickHouseClients = {
        ...held.clients,
        write: async call => {
          if (left-- === 0) throw new Error('killed')
          const answer = await held.clients.write(call)
          if (left-- === 0) throw new Error('killed')
          return answer
        },
      }
      isOver = await add(job, dying).then(
        () => true,
        (cause: Error) => {
          assert.equal(cause.message, 'killed')
          return false
        },
      )
    }
    await assertAdded(job)
  })

  it('are limited in size per row, and the longest are left out', async () => {
    const job = await pend()
    const long = 'x'.repeat(knownBytesMax)
    await add(
      job,
      held.clients,
      async some =>
        new Map(some.map(id => [id, JSON.stringify({ long, id, half: 'é'.repeat(knownBytesMax / 4), plan: 'pro' })])),
    )
    assert.deepEqual(
      await query(`SELECT JSONExtractKeys(person_properties) AS keys, count() FROM DB.events_pending
        WHERE import_partition = ${job} GROUP BY keys`),
      [[['id', 'half', 'plan'], ids.length]],
    )
  })

  it('do not restore a row that is erased at the same time', async () => {
    const job = await pend()
    let added: Promise<void> | undefined
    await whileHeld(async () => {
      added = add(job, held.clients)
      await eventually(async () => (await countMutations()) > 0)
      await command(`ALTER TABLE DB.events_pending DELETE WHERE import_partition = ${job} AND distinct_id = 'id-7'`)
    })
    await added
    await eventually(async () => (await countMutations()) === 0)
    assert.deepEqual(
      await query(
        `SELECT count(), countIf(distinct_id = 'id-7'), countIf(JSONHas(person_properties, 'plan'))
        FROM DB.events_pending WHERE import_partition = ${job}`,
      ),
      [[ids.length - 1, 0, ids.length - 1]],
    )
  })

  it('left by a killed worker are removed, even if the next worker has none to add', async () => {
    const job = await pend()
    await leaveKnown(job, 'id-1')
    await add(job, held.clients, nothingKnown)
    assert.equal(await countKnown(), 0)
  })

  it('delay the end of an erasure while they contain an erased person', async () => {
    const job = await pend()
    const id = 'erased-1'
    const erasure = {
      ...{ id: 1, projectId: 1, erasures: 1, distinctIds: [id], personUuids: [], mirrorVersion: 0, logId: 'log' },
      ...{ deletesEvents: true, deletesRecordings: true, keepsPerson: false, isCounted: true, endOffsets: {} },
      ...{ requestedAtMs: 0 },
    }
    await leaveKnown(job, id)
    const remove = () => held.store.removeErasedRows([erasure], async () => assert.fail('there are no rows'))
    assert.equal(await remove(), 'under_way')
    await add(job, held.clients, nothingKnown)
    assert.equal(await remove(), 'done')
  })

  it('are added by the worker that took over, whatever the former worker still does', async () => {
    const job = await pend()
    const stopping = new AbortController()
    let later: Promise<void> | undefined
    await whileHeld(async () => {
      const stale = async (some: readonly string[]) => new Map(some.map(id => [id, '{"stale":1}']))
      const earlier = add(job, held.clients, stale, stopping.signal)
      await eventually(async () => (await countMutations()) > 0)
      await leaveKnown(job, 'of the later one')
      stopping.abort()
      await earlier
      assert.deepEqual(await query('SELECT distinct_id FROM DB.known_person_properties'), [['of the later one']])
      later = add(job, held.clients)
    })
    await later
    await assertAdded(job)
  })

  it('wait for a failing mutation of the same job, but not for that of another job', async () => {
    const [job, otherJob] = [await pend(), await pend()]
    const bad = '{"bad":1}'
    await held.insert({
      pendingEvents: [imported(aStoredEvent({ distinctId: 'bad', personPropertiesJson: bad }), job)],
    })
    const [[partition]] = (await query<[string]>(
      `SELECT any(partition_id) FROM system.parts WHERE table = 'events_pending' AND startsWith(partition_id, '${job}-')`,
    )) as [[string]]
    await command(`ALTER TABLE DB.events_pending
      UPDATE person_properties = toString(throwIf(person_properties = '${bad}'))
      IN PARTITION ID '${partition}'
      WHERE distinct_id = 'bad' OR distinct_id IN (
        SELECT distinct_id FROM DB.known_person_properties WHERE import_job_id = ${job} AND attempt = 1)`)
    await eventually(async () => (await countMutations(`latest_fail_reason != ''`)) === 1)
    for (let attempt = 0; attempt < 3; attempt++)
      await assert.rejects(add(job, held.clients), (cause: unknown) => cause instanceof PortError)
    assert.equal(await countMutations(), 1)
    await add(otherJob, held.clients)
    await assertAdded(otherJob)
    await held.store.discardJob(job)
    await eventually(async () => (await countMutations()) === 0)
  })
})
