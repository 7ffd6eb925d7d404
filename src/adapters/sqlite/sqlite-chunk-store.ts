// The worker's state on the state file. It has its own connection and calls SQLite directly, since a chunk is thousands
// of rows. It reads and computes everything before it takes the write lock, and only writes while it holds it.

import * as text from '#adapters/sql/processing/chunk-queries.ts'
import { loadChunk, loadSynchronously } from '#adapters/sql/processing/load-chunk.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkChanges, ChunkPosition, ChunkStore, ChunkSubjects } from '#ports/state/chunk-store.ts'
import { prepareChunkWriter, VersionConflict } from './chunk-commit.ts'
import { prepareChunkReads } from './chunk-reads.ts'
import { prepareVisitorReads } from './cookieless-visitors.ts'
import { openStateForWriting, toStatePortError, writerWaitMs } from './open-sqlite.ts'
import { retryWhileLocked } from './wait-for-lock.ts'

/** The state has to be migrated. @throws PortError when it cannot be opened. */
export function openSqliteChunkStore(options: { dataFolder: string; busyTimeoutMs?: number }): ChunkStore {
  const { dataFolder, busyTimeoutMs = writerWaitMs } = options
  const database = openStateForWriting(dataFolder, busyTimeoutMs, { mayCreate: false })
  // From here on `retryWhileLocked` waits, since the worker's other connection writes on this thread too.
  database.pragma('busy_timeout = 0')
  const reads = prepareChunkReads(database)
  const load = database.transaction((subjects: ChunkSubjects, textBytesMax: number) =>
    loadSynchronously(loadChunk(reads, subjects, textBytesMax)),
  )
  const visitors = prepareVisitorReads(database)
  const write = prepareChunkWriter(database)
  const claim = database.prepare<[string, string], number>(text.claimPositionText).pluck()
  const findOwn = database.prepare<[string, string], number>(text.findOwnPositionText).pluck()
  const advance = database.prepare<[number, number, string, string, number | null]>(text.advancePositionText)

  const commit = database.transaction(
    (changes: ChunkChanges, { fromOffset, offset, committedAtMs, stream, ownerId }: ChunkPosition): void => {
      if (advance.run(offset, committedAtMs, stream, ownerId, fromOffset ?? null).changes !== 1)
        throw new PositionLost(findOwn.get(stream, ownerId) === undefined ? 'not_owner' : 'position_moved')
      write(changes)
    },
  )

  return {
    async claimPosition(stream, ownerId) {
      try {
        return { offset: (await retryWhileLocked(() => claim.get(stream, ownerId), busyTimeoutMs))! }
      } catch (cause) {
        throw toStatePortError(cause)
      }
    },

    async findOwnPosition(stream, ownerId) {
      try {
        return (await retryWhileLocked(() => findOwn.get(stream, ownerId), busyTimeoutMs)) ?? null
      } catch (cause) {
        throw toStatePortError(cause)
      }
    },

    async loadChunk(subjects, textBytesMax) {
      try {
        // Checked here, before event rows are stored for changes that could not be written.
        if (database.pragma('query_only', { simple: true }) === 1)
          throw new PortError('state', 'unavailable', new Error('the state file was removed or replaced'))
        return await retryWhileLocked(() => load.deferred(subjects, textBytesMax), busyTimeoutMs)
      } catch (cause) {
        throw toStatePortError(cause)
      }
    },

    async loadIdentifies(wanted) {
      try {
        return await retryWhileLocked(() => visitors.loadIdentifies(wanted), busyTimeoutMs)
      } catch (cause) {
        throw toStatePortError(cause)
      }
    },

    async loadSessions(wanted) {
      try {
        return await retryWhileLocked(() => visitors.loadSessions(wanted), busyTimeoutMs)
      } catch (cause) {
        throw toStatePortError(cause)
      }
    },

    async commitChunk(changes, position) {
      try {
        await retryWhileLocked(() => commit.immediate(changes, position), busyTimeoutMs)
        return 'committed'
      } catch (cause) {
        if (cause instanceof PositionLost) return cause.how
        if (cause instanceof VersionConflict) return 'version_conflict'
        throw toStatePortError(cause)
      }
    },

    async close() {
      database.close()
    },
  }
}

/** Thrown to leave the transaction. */
class PositionLost extends Error {
  readonly how: 'not_owner' | 'position_moved'

  constructor(how: 'not_owner' | 'position_moved') {
    super(how)
    this.how = how
  }
}
