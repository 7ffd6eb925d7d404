import assert from 'node:assert/strict'
import { it } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { formatDeferredCursorName } from '#core/events/log-stream.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { commit } from '../../../tests/ports/management-harness.ts'
import { createMemoryEventLog, memoryLogStorage } from '../../../tests/support/memory/memory-event-log.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aChange, aMapping, aNewProject, aPerson, chunkChanges, created } from '../../../tests/support/values.ts'
import { RunningCalls } from '../shared/running-calls.ts'
import { createErasureWorker } from './erase-persons.ts'

const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

it('erasures that wait for a deferred project delay no others, and are read again only once they can finish', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const state = openSqliteManagementStore({ dataFolder, access: 'write' })
  const chunks = openSqliteChunkStore({ dataFolder })
  t.after(() => Promise.all([state.close(), chunks.close()]))
  for (const _ of [1, 2]) await state.createProject(aNewProject(), aChange())
  for (const cursor of ['main', formatDeferredCursorName('main')]) await chunks.claimPosition(cursor, 'w1')
  assert.ok(await state.deferProject('main', 'w1', 1, 0))
  const waitingCount = 60
  const persons = Array.from({ length: waitingCount + 1 }, (_, n) =>
    aPerson({ projectId: n < waitingCount ? 1 : 2, uuid: uuid(n) }),
  )
  const mappings = persons.map((person, n) => created(aMapping(person, `id-${n}`)))
  // The stream is processed up to 77, except for project 1.
  await commit(chunks, { persons: persons.map(created), mappings })
  const erase = async (projectId: number, n: number) => {
    const personIds = await state.findPersonIds(projectId, { distinctIds: [`id-${n}`] })
    const terms = { keepsPerson: true, deletesEvents: true, deletesRecordings: true }
    const ends = { logId: 'log', endOffsets: { main: 77 } }
    await state.erasePersons({ projectId, personIds, ...terms, ...ends }, aChange('key', 5))
  }
  const removed: string[] = []
  const listedAfter: number[] = []
  const keeper = createErasureWorker({
    state: {
      ...state,
      listOpenErasures: after => {
        listedAfter.push(after)
        return state.listOpenErasures(after)
      },
    },
    log: createMemoryEventLog({ storage: memoryLogStorage(), nowMs: () => 9 }),
    logId: 'log',
    events: {
      countErasedRows: async () => new Map(),
      removeErasedRows: async erasures => {
        removed.push(...erasures.flatMap(({ distinctIds }) => distinctIds))
        return 'done'
      },
    },
    underWay: new RunningCalls(),
    serialize: run => run(),
    clock: { nowMs: () => 9 },
    logger: createSilentLogger(),
  })
  const doneOf = async (projectId: number) =>
    (await state.listErasedPersons(projectId, { isDone: true, limit: 1, offset: 0 })).count

  for (let n = 0; n < waitingCount; n++) await erase(1, n)
  for (let round = 0; round < 4; round++) assert.equal(await keeper.work(), true)
  assert.deepEqual(
    removed.toSorted(),
    mappings
      .slice(0, -1)
      .map(({ row }) => row.distinctId)
      .toSorted(),
  )
  removed.length = 0
  listedAfter.length = 0
  const passed = { stream: 'main', ownerId: 'w1', offset: 78, committedAtMs: 0 }
  assert.equal(await chunks.commitChunk(chunkChanges({}), passed), 'committed')
  assert.equal(await keeper.work(), true)
  assert.deepEqual(listedAfter, [], 'processing records of other projects does not let them end')
  await erase(2, waitingCount)
  await keeper.work()
  assert.deepEqual(removed, [`id-${waitingCount}`])
  assert.deepEqual(listedAfter, [0], 'only the page that contains it')
  assert.deepEqual([await doneOf(1), await doneOf(2)], [0, 1])

  const position = { stream: formatDeferredCursorName('main'), ownerId: 'w1', offset: 77, committedAtMs: 0 }
  assert.equal(await chunks.commitChunk(chunkChanges({}), position), 'committed')
  while (await keeper.work());
  assert.equal(await doneOf(1), waitingCount)
})
