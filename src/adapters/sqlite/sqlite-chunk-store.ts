// State as the worker sees it, on the state file: its own connection, SQLite called directly, since a chunk is thousands
// of rows. Everything is read and computed before the write lock is asked for; holding it is only for writing.

import * as text from '#adapters/sql/chunk-queries.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import { prepareChunkWriter, VersionConflict } from './chunk-commit.ts'
import { prepareChunkLoader } from './chunk-load.ts'
import { openStateForWriting, statePortError, writerWaitMs } from './open-sqlite.ts'

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openSqliteChunkStore(options: { dataFolder: string; busyTimeoutMs?: number }): ChunkStore {
  const database = openStateForWriting(options.dataFolder, options.busyTimeoutMs ?? writerWaitMs)
  const load = database.transaction(prepareChunkLoader(database))
  const write = prepareChunkWriter(database)
  const claim = database.prepare<[string, string], number>(text.claimPositionText).pluck()
  const advance = database.prepare<[number, number, string, string]>(text.advancePositionText)

  const commit = database.transaction(
    (changes: Parameters<ChunkStore['commitChunk']>[0], position: Parameters<ChunkStore['commitChunk']>[1]): void => {
      const { offset, committedAtMs, lane, ownerId } = position
      if (advance.run(offset, committedAtMs, lane, ownerId).changes !== 1) throw new NotOwner()
      write(changes)
    },
  )

  return {
    async claimPosition(lane, ownerId) {
      try {
        return { offset: claim.get(lane, ownerId)! }
      } catch (cause) {
        throw statePortError(cause)
      }
    },

    async loadChunk(subjects, textBytesMax) {
      try {
        return load.deferred(subjects, textBytesMax)
      } catch (cause) {
        throw statePortError(cause)
      }
    },

    async commitChunk(changes, position) {
      try {
        commit.immediate(changes, position)
        return 'committed'
      } catch (cause) {
        if (cause instanceof NotOwner) return 'not_owner'
        if (cause instanceof VersionConflict) return 'version_conflict'
        throw statePortError(cause)
      }
    },

    async close() {
      database.close()
    },
  }
}

/** Thrown to leave the transaction: another worker has claimed the lane. */
class NotOwner extends Error {}
