// The mirror of persons and groups on the real engine, written from a real state file: whatever is killed, lost or put
// back, it has in the end exactly what the state has, and until then queries that need it are refused.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it, type TestContext } from 'node:test'
import { requireFilledMirrorSql } from '#adapters/clickhouse/queries/current-persons.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import type { Group } from '#core/groups/group.ts'
import type { Person } from '#core/persons/person.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { MirrorFillingError } from '#ports/port-error.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { createSubjectMirrorUpdater, type MirrorFaultPoint } from '#services/worker/mirror-subjects.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { writeNewState } from '../support/state.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aChange, aGroup, aPerson, chunkChanges, created } from '../support/values.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const never = new AbortController().signal

class Crash extends Error {}

describe('the mirror of persons and groups', () => {
  const held = eventStoreForTests({ clock: fixedClock('2026-12-03T00:00:00Z') })
  const read = <T>(query: string) =>
    held.clients.read(async client => (await client.query({ query, format: 'JSONCompactEachRow' })).json<T>())
  const command = (query: string) => held.command(() => query)

  /** A new state, and an event store whose mirror is of no state that this one knows. */
  async function openState(t: TestContext) {
    const dataFolder = tempDir(t)
    await writeNewState(dataFolder)
    const management = openSqliteManagementStore({ dataFolder, access: 'write' })
    const chunks = openSqliteChunkStore({ dataFolder })
    t.after(async () => {
      await chunks.close()
      await management.close()
    })
    await chunks.claimPosition('main', 'w')
    const commit = async (changes: Partial<ChunkChanges>) => {
      const position = { stream: 'main', ownerId: 'w', offset: 0, committedAtMs: 0 } as const
      assert.equal(await chunks.commitChunk(chunkChanges(changes), position), 'committed')
    }
    return { management, commit }
  }

  const keeper = (state: ManagementStore, faultPoint: (name: MirrorFaultPoint) => void = () => undefined) =>
    createSubjectMirrorUpdater({
      state,
      events: held.store,
      logger: createSilentLogger(),
      newUuid: randomUUID,
      faultPoint,
    })

  /** What queries see, or a MirrorFillingError. */
  async function mirrored(): Promise<string[]> {
    const persons = await read<string[]>(
      `SELECT project_id, uuid, properties, is_identified, toUnixTimestamp64Milli(created_at) FROM persons FINAL
        WHERE ${requireFilledMirrorSql()} AND is_deleted = 0`,
    )
    const groups = await read<string[]>(
      `SELECT project_id, group_type_index, group_key, properties, toUnixTimestamp64Milli(created_at) FROM groups FINAL
        WHERE ${requireFilledMirrorSql()} AND is_deleted = 0`,
    )
    return [...persons, ...groups].map(row => row.map(String).join(' ')).toSorted()
  }

  async function stored(management: ManagementStore): Promise<string[]> {
    const { persons } = await management.listMirroredPersons(null)
    const { groups } = await management.listMirroredGroups(null)
    return [
      ...persons.map(p => `${p.projectId} ${p.uuid} ${p.propertiesJson} ${p.isIdentified} ${p.createdAtMs}`),
      ...groups.map(g => `${g.projectId} ${g.typeIndex} ${g.key} ${g.propertiesJson} ${g.createdAtMs}`),
    ].toSorted()
  }

  it('rejects queries until it is filled, then follows changes, merges and recreated groups', async t => {
    const { management, commit } = await openState(t)
    const acme = (properties: Group['properties']) => created(aGroup({ properties }))
    await commit({
      persons: [created(aPerson({ uuid: uuid(1), properties: { n: 1 } })), created(aPerson({ uuid: uuid(2) }))],
      groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
      groups: [acme({ plan: 'old' })],
    })
    await assert.rejects(mirrored(), MirrorFillingError)
    await keeper(management).settle(never)
    assert.deepEqual(await mirrored(), await stored(management))

    const mirror = keeper(management)
    await mirror.settle(never)
    await commit({
      persons: [{ row: aPerson({ uuid: uuid(1), version: 1, isIdentified: true }), loadedVersion: 0 }],
      deletedPersons: [{ projectId: 1, uuid: uuid(2), survivorUuid: uuid(1), loadedVersion: 0 }],
    })
    await management.startDeletingGroupType(1, 0, aChange())
    await management.deleteGroupsOfType(1, 0, 500)
    await mirror.settle(never)
    assert.deepEqual(await mirrored(), [`1 ${uuid(1)} {} true 1700000000000`])
    // Its version begins at 1 again, like the version of the deleted group.
    await commit({ groupTypes: [{ projectId: 1, name: 'team', index: 0 }], groups: [acme({ plan: 'new' })] })
    await mirror.settle(never)
    assert.deepEqual(await mirrored(), await stored(management))
    assert.equal((await stored(management)).length, 2)
  })

  it('writes a person only once even if many chunks changed the person', async t => {
    const { management, commit } = await openState(t)
    const properties = { note: 'x'.repeat(640_000) }
    await commit({ persons: [created(aPerson({ uuid: uuid(1), properties }))] })
    await keeper(management).settle(never)
    const mirror = keeper(management)
    await mirror.settle(never)
    const [[before]] = (await read<[string]>('SELECT count() FROM persons')) as [[string]]
    for (let version = 1; version <= 50; version++)
      await commit({ persons: [{ row: aPerson({ uuid: uuid(1), properties, version }), loadedVersion: version - 1 }] })
    await mirror.settle(never)
    const [[now]] = (await read<[string]>('SELECT count() FROM persons')) as [[string]]
    assert.ok(Number(now) <= Number(before) + 1, `${before} rows became ${now}`)
  })

  it('is filled again when it is lost, emptied, older than the state, or newer than it', async t => {
    const { management, commit } = await openState(t)
    await commit({ persons: [created(aPerson({ uuid: uuid(1) })), created(aPerson({ uuid: uuid(3) }))] })
    await keeper(management).settle(never)
    const losses = [
      'TRUNCATE TABLE pennon.persons',
      'TRUNCATE TABLE pennon.subject_mirror_fill',
      'DROP TABLE pennon.persons SYNC',
    ]
    for (const loss of losses) {
      await command(loss)
      await held.store.migrate()
      await keeper(management).settle(never)
      assert.deepEqual(await mirrored(), await stored(management), loss)
    }
    // The state comes back from a copy that was made before the latest rows.
    const copy = await management.findMirrorProgress()
    await commit({ persons: [created(aPerson({ uuid: uuid(4) }))] })
    await keeper(management).settle(never)
    const later = await management.findMirrorProgress()
    assert.equal(await management.saveMirrorProgress(copy, later.version), true)
    let fillCount = 0
    const countFills = (name: MirrorFaultPoint) => {
      if (name === 'begun') fillCount++
    }
    await keeper(management, countFills).settle(never)
    assert.equal(fillCount, 1)
    // The event store comes back from such a copy: the rows of the last steps are gone, the others are not.
    await commit({ persons: [created(aPerson({ uuid: uuid(5) }))] })
    await keeper(management).settle(never)
    await command(
      'ALTER TABLE pennon.persons DELETE WHERE version = (SELECT max(version) FROM pennon.persons) SETTINGS mutations_sync = 1',
    )
    await keeper(management, countFills).settle(never)
    assert.equal(fillCount, 2)
    assert.deepEqual(await mirrored(), await stored(management))
    // Nothing was lost: nothing is filled.
    await keeper(management, countFills).settle(never)
    assert.equal(fillCount, 2)
  })

  it('is not damaged by late rows of a stalled worker after another worker has taken over', async t => {
    const { management, commit } = await openState(t)
    await commit({ persons: [created(aPerson({ uuid: uuid(1), properties: { by: 'first' } }))] })
    const first = keeper(management)
    await first.settle(never)
    // The first worker stalls between its rows and its note; the second takes over and finishes during that time.
    await commit({ persons: [{ row: aPerson({ uuid: uuid(1), version: 1, properties: { n: 1 } }), loadedVersion: 0 }] })
    const stalled: SubjectMirrorRows[] = []
    const slow = createSubjectMirrorUpdater({
      state: management,
      logger: createSilentLogger(),
      newUuid: randomUUID,
      events: {
        ...held.store,
        writeSubjects: async (rows, version) => {
          stalled.push({ rows, version })
        },
      },
      faultPoint: name => {
        if (name === 'written') throw new Crash()
      },
    })
    await assert.rejects(slow.settle(never), Crash)
    await commit({ persons: [{ row: aPerson({ uuid: uuid(1), version: 2, properties: { n: 2 } }), loadedVersion: 1 }] })
    await keeper(management).settle(never)
    for (const { rows, version } of stalled) await held.store.writeSubjects(rows, version)
    assert.ok(stalled.length > 0)
    assert.deepEqual(await mirrored(), await stored(management))
  })

  it('matches the state after a crash at any step', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const { management, commit } = await openState(t)
    const living = new Map<string, number>()
    let nextUuid = 0
    const someChanges = (): Partial<ChunkChanges> => {
      const persons: { row: Person; loadedVersion: number | null }[] = []
      const deletedPersons: ChunkChanges['deletedPersons'][number][] = []
      const known = [...living.keys()]
      for (let n = 0; n < 1 + random() * 4; n++) persons.push(created(aPerson({ uuid: uuid(++nextUuid) })))
      const [other] = known.toSorted(() => random() - 0.5)
      if (other !== undefined && random() < 0.4) {
        const survivorUuid = persons[0]!.row.uuid
        deletedPersons.push({ projectId: 1, uuid: other, survivorUuid, loadedVersion: living.get(other)! })
        living.delete(other)
      } else if (other !== undefined) {
        const version = living.get(other)! + 1
        const row = aPerson({ uuid: other, version, properties: { at: version, by: random() } })
        persons.push({ row, loadedVersion: version - 1 })
      }
      for (const { row } of persons) living.set(row.uuid, row.version)
      return { persons, deletedPersons }
    }
    for (let round = 0; round < 40; round++) {
      for (let n = 0; n < random() * 3; n++) await commit(someChanges())
      if (random() < 0.15) await command('TRUNCATE TABLE pennon.persons')
      let left = Math.floor(random() * 6)
      const crashing = keeper(management, () => {
        if (left-- === 0) throw new Crash()
      })
      await crashing.settle(never).catch(error => assert.ok(error instanceof Crash, String(error)))
      if (random() < 0.3) await commit(someChanges())
      if (random() < 0.5) await keeper(management).settle(never)
    }
    await keeper(management).settle(never)
    assert.deepEqual(await mirrored(), await stored(management))
    assert.ok(living.size > 10)
  })
})

interface SubjectMirrorRows {
  readonly rows: Parameters<EventStore['writeSubjects']>[0]
  readonly version: number
}
