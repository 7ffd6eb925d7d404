// The worker's state on the state file. It has its own connection and calls SQLite directly, since a chunk is thousands of
// rows. It reads and computes everything before it takes the write lock, and only writes while it holds the lock.

import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { CommitRefused, sharedStatements } from '#adapters/sql/processing/chunk-queries.ts'
import { loadChunk, loadSynchronously } from '#adapters/sql/processing/load-chunk.ts'
import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkChanges, ChunkPosition, ChunkStore, ChunkSubjects } from '#ports/state/chunk-store.ts'
import { prepareChunkWriter } from './chunk-commit.ts'
import { prepareChunkReads } from './chunk-reads.ts'
import { prepareVisitorReads } from './cookieless-visitors.ts'
import { isSqliteBusy, openStateForWriting, toStatePortError, writerWaitMs } from './open-sqlite.ts'

/** The state has to be migrated. @throws PortError when it cannot be opened. */
export function openSqliteChunkStore(options: { dataFolder: string; busyTimeoutMs?: number }): ChunkStore {
  const { dataFolder, busyTimeoutMs = writerWaitMs } = options
  const database = openStateForWriting(dataFolder, busyTimeoutMs, { mayCreate: false })
  // From here on `retryWhileLocked` waits: SQLite's wait would block the worker's other connection on this thread.
  database.pragma('busy_timeout = 0')
  const reads = prepareChunkReads(database)
  const load = database.transaction((subjects: ChunkSubjects, textBytesMax: number) =>
    loadSynchronously(loadChunk(reads, subjects, textBytesMax)),
  )
  const visitors = prepareVisitorReads(database)
  const write = prepareChunkWriter(database)
  const claim = database.prepare<[string, string], number>(sharedStatements.claimPosition).pluck()
  const findOwn = database.prepare<[string, string], number>(sharedStatements.findOwnPosition).pluck()
  const advance = database.prepare<[number, number, string, string, number | null]>(sharedStatements.advancePosition)

  const commit = database.transaction(
    (changes: ChunkChanges, { fromOffset, offset, committedAtMs, stream, ownerId }: ChunkPosition): void => {
      if (advance.run(offset, committedAtMs, stream, ownerId, fromOffset ?? null).changes !== 1)
        throw new CommitRefused(findOwn.get(stream, ownerId) === undefined ? 'not_owner' : 'position_moved')
      write(changes)
    },
  )
  const retry = <T>(work: () => T) => retryWhileLocked(work, busyTimeoutMs)

  return translateErrors<ChunkStore>(
    {
      claimPosition: async (stream, ownerId) => ({ offset: (await retry(() => claim.get(stream, ownerId)))! }),
      findOwnPosition: async (stream, ownerId) => (await retry(() => findOwn.get(stream, ownerId))) ?? null,
      async loadChunk(subjects, textBytesMax) {
        // Check this now: otherwise event rows would be stored although the changes of their chunk cannot be written.
        if (database.pragma('query_only', { simple: true }) === 1)
          throw new PortError('state', 'unavailable', new Error('the state file was removed or replaced'))
        return retry(() => load.deferred(subjects, textBytesMax))
      },
      loadIdentifies: wanted => retry(() => visitors.loadIdentifies(wanted)),
      loadSessions: wanted => retry(() => visitors.loadSessions(wanted)),
      async commitChunk(changes, position) {
        try {
          await retry(() => commit.immediate(changes, position))
          return 'committed'
        } catch (cause) {
          if (cause instanceof CommitRefused) return cause.how
          throw cause
        }
      },
      close: async () => {
        database.close()
      },
    },
    toStatePortError,
  )
}

/** The pauses that SQLite itself makes; most transactions end within milliseconds. */
const pausesMs = [1, 2, 5, 10, 15, 20, 25] as const

/**
 * Runs `work` repeatedly until no other writer blocks it, without blocking the thread. SQLite's own wait would block the
 * thread: if another connection of the thread holds the lock, that connection could not commit until the wait ends.
 * @param waitMsMax after this time, SQLite's refusal is thrown.
 */
async function retryWhileLocked<T>(work: () => T, waitMsMax: number): Promise<T> {
  const giveUpAtMs = performance.now() + waitMsMax
  for (let tries = 0; ; tries++) {
    try {
      return work()
    } catch (cause) {
      if (!(cause instanceof Database.SqliteError && isSqliteBusy(cause.code)) || performance.now() >= giveUpAtMs)
        throw cause
      await sleep(pausesMs[Math.min(tries, pausesMs.length - 1)])
    }
  }
}
