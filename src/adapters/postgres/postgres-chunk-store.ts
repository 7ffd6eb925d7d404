// The worker's state on PostgreSQL. A chunk of any size is read and written in a handful of statements with lists. A
// commit that collides with another is a version conflict: the worker loads the chunk's state again.

import * as shared from '#adapters/sql/processing/chunk-queries.ts'
import { loadAsynchronously, loadChunk } from '#adapters/sql/processing/load-chunk.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { VersionConflict, writeChanges } from './chunk-commit.ts'
import { createChunkReads } from './chunk-reads.ts'
import { numberParameters } from './chunk-texts.ts'
import { loadIdentifies, loadSessions } from './cookieless-visitors.ts'
import { definitionsLock } from './kysely-on-postgres.ts'
import { openPool, runInTransaction } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

/** A worker has one chunk under way. */
const sessionsMax = 2
const statementMsMax = 30_000
const lockMsMax = 5_000
const connectMsMax = 5_000
const beginReading = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

const claimPositionText = numberParameters(shared.claimPositionText)
const findOwnPositionText = numberParameters(shared.findOwnPositionText)
const advancePositionText = numberParameters(shared.advancePositionText)

/** The state has to be migrated. Opens nothing before the first call. */
export function openPostgresChunkStore(options: { url: string; logger: Logger; lockMsMax?: number }): ChunkStore {
  const pool = openPool({
    ...options,
    name: 'chunks',
    sizeMax: sessionsMax,
    statementMsMax,
    lockMsMax: options.lockMsMax ?? lockMsMax,
    connectMsMax,
    isIndexed: true,
  })
  return {
    async claimPosition(stream, ownerId) {
      try {
        const { rows } = await pool.query<[number]>({
          text: claimPositionText,
          values: [stream, ownerId],
          rowMode: 'array',
        })
        return { offset: rows[0]![0] }
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },

    async findOwnPosition(stream, ownerId) {
      try {
        const { rows } = await pool.query<[number]>({
          text: findOwnPositionText,
          values: [stream, ownerId],
          rowMode: 'array',
        })
        return rows[0]?.[0] ?? null
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },

    async loadChunk(subjects, textBytesMax) {
      try {
        return await runInTransaction(pool, beginReading, session =>
          loadAsynchronously(loadChunk(createChunkReads(session), subjects, textBytesMax)),
        )
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },

    async loadIdentifies(wanted) {
      try {
        return await runInTransaction(pool, beginReading, session => loadIdentifies(session, wanted))
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },

    async loadSessions(wanted) {
      try {
        return await runInTransaction(pool, beginReading, session => loadSessions(session, wanted))
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },

    async commitChunk(changes, { fromOffset, offset, committedAtMs, stream, ownerId }) {
      try {
        await runInTransaction(pool, 'BEGIN', async session => {
          // Before any other lock, as in transactions that write definitions.
          if (changes.groupTypes.length > 0) await session.query(`SELECT pg_advisory_xact_lock(${definitionsLock})`)
          const values = [offset, committedAtMs, stream, ownerId, fromOffset ?? null]
          const { rowCount } = await session.query(advancePositionText, values)
          if (rowCount !== 1) {
            const { rows } = await session.query(findOwnPositionText, [stream, ownerId])
            throw new PositionLost(rows.length === 0 ? 'not_owner' : 'position_moved')
          }
          await writeChanges(session, changes)
        })
        return 'committed'
      } catch (cause) {
        if (cause instanceof PositionLost) return cause.how
        if (cause instanceof VersionConflict) return 'version_conflict'
        const failure = toPostgresPortError(cause)
        // A deadlock, or a referenced row that another transaction deleted in between.
        if (failure instanceof Error && 'code' in failure && failure.code === 'conflict') return 'version_conflict'
        throw failure
      }
    },

    close: () => pool.end(),
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
