// The worker's state on PostgreSQL. A chunk of any size is read and written in a handful of statements with lists. A
// commit that collides with another is a version conflict: the worker loads the chunk's state again.

import { CommitRefused, sharedTexts } from '#adapters/sql/processing/chunk-queries.ts'
import { loadAsynchronously, loadChunk } from '#adapters/sql/processing/load-chunk.ts'
import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { writeChanges } from './chunk-commit.ts'
import { createChunkReads } from './chunk-reads.ts'
import { numberAll } from './chunk-texts.ts'
import { loadIdentifies, loadSessions } from './cookieless-visitors.ts'
import { definitionsLock } from './kysely-on-postgres.ts'
import { openPool, runInTransaction, type Session } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

/** A worker has one chunk under way. */
const sessionsMax = 2
const statementMsMax = 30_000
const lockMsMax = 5_000
const connectMsMax = 5_000
const beginReading = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

const texts = numberAll(sharedTexts)

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
  const readPosition = async (text: string, values: string[]) =>
    (await pool.query<[number]>({ text, values, rowMode: 'array' })).rows[0]?.[0]
  const read = <T>(load: (session: Session) => Promise<T>) => runInTransaction(pool, beginReading, load)
  return translateErrors<ChunkStore>(
    {
      claimPosition: async (...names) => ({ offset: (await readPosition(texts.claimPosition, names))! }),
      findOwnPosition: async (...names) => (await readPosition(texts.findOwnPosition, names)) ?? null,
      loadChunk: (subjects, textBytesMax) =>
        read(session => loadAsynchronously(loadChunk(createChunkReads(session), subjects, textBytesMax))),
      loadIdentifies: wanted => read(session => loadIdentifies(session, wanted)),
      loadSessions: wanted => read(session => loadSessions(session, wanted)),
      async commitChunk(changes, { fromOffset, offset, committedAtMs, stream, ownerId }) {
        try {
          await runInTransaction(pool, 'BEGIN', async session => {
            // Before any other lock, as in transactions that write definitions.
            if (changes.groupTypes.length > 0) await session.query(`SELECT pg_advisory_xact_lock(${definitionsLock})`)
            const values = [offset, committedAtMs, stream, ownerId, fromOffset ?? null]
            const { rowCount } = await session.query(texts.advancePosition, values)
            if (rowCount !== 1) {
              const { rows } = await session.query(texts.findOwnPosition, [stream, ownerId])
              throw new CommitRefused(rows.length === 0 ? 'not_owner' : 'position_moved')
            }
            await writeChanges(session, changes)
          })
          return 'committed'
        } catch (cause) {
          if (cause instanceof CommitRefused) return cause.how
          const failure = toPostgresPortError(cause)
          // A deadlock, or a referenced row that another transaction deleted in between.
          if (failure instanceof PortError && failure.code === 'conflict') return 'version_conflict'
          throw failure
        }
      },
      close: () => pool.end(),
    },
    toPostgresPortError,
  )
}
