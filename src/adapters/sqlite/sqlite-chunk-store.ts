// State as the worker sees it, on the state file: its own connection, SQLite called directly, since a chunk is thousands
// of rows. Everything is read and computed before the write lock is asked for; holding it is only for writing.

import * as text from '#adapters/sql/chunk-queries.ts'
import type { ChunkChanges, ChunkPosition, ChunkStore } from '#ports/chunk-store.ts'
import { PortError } from '#ports/port-error.ts'
import { prepareChunkWriter, VersionConflict } from './chunk-commit.ts'
import { prepareChunkLoader } from './chunk-load.ts'
import { openStateForWriting, statePortError, writerWaitMs } from './open-sqlite.ts'

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openSqliteChunkStore(options: { dataFolder: string; busyTimeoutMs?: number }): ChunkStore {
  const database = openStateForWriting(options.dataFolder, options.busyTimeoutMs ?? writerWaitMs, { mayCreate: false })
  const load = database.transaction(prepareChunkLoader(database))
  const write = prepareChunkWriter(database)
  const claim = database.prepare<[string, string], number>(text.claimPositionText).pluck()
  const findOwn = database.prepare<[string, string], number>(text.findOwnPositionText).pluck()
  const advance = database.prepare<[number, number, string, string, number | null]>(text.advancePositionText)

  const commit = database.transaction(
    (changes: ChunkChanges, { fromOffset, offset, committedAtMs, lane, ownerId }: ChunkPosition): void => {
      if (advance.run(offset, committedAtMs, lane, ownerId, fromOffset ?? null).changes !== 1)
        throw new PositionLost(findOwn.get(lane, ownerId) === undefined ? 'not_owner' : 'position_moved')
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

    async findOwnPosition(lane, ownerId) {
      try {
        return findOwn.get(lane, ownerId) ?? null
      } catch (cause) {
        throw statePortError(cause)
      }
    },

    async loadChunk(subjects, textBytesMax) {
      try {
        // Before rows are stored for changes that could not be written.
        if (database.pragma('query_only', { simple: true }) === 1)
          throw new PortError('state', 'unavailable', new Error('the state file was removed or replaced'))
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
        if (cause instanceof PositionLost) return cause.how
        if (cause instanceof VersionConflict) return 'version_conflict'
        throw statePortError(cause)
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
