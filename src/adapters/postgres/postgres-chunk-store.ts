// The worker's state on PostgreSQL. A chunk of any size is read and written in a handful of statements with lists. A commit
// that collides with another commit is a version conflict, after which the worker loads the chunk's state again.

import { CommitRefused, sharedStatements } from '#adapters/sql/processing/chunk-queries.ts'
import { type ChunkReads, loadAsynchronously, loadChunk } from '#adapters/sql/processing/load-chunk.ts'
import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { writeChunkChanges } from './chunk-commit.ts'
import { loadStatements, toNumberedParametersOfAll } from './chunk-statements.ts'
import { loadIdentifyCounts, loadVisitorSessions } from './cookieless-visitors.ts'
import { definitionsLock } from './kysely-on-postgres.ts'
import { openPool, runInTransaction, type Session } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

/** A worker processes only one chunk at a time. */
const sessionsMax = 2
const statementMsMax = 30_000
const lockMsMax = 5_000
const connectMsMax = 5_000
const beginReading = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

const texts = toNumberedParametersOfAll(sharedStatements)

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
      loadIdentifies: wanted => read(session => loadIdentifyCounts(session, wanted)),
      loadSessions: wanted => read(session => loadVisitorSessions(session, wanted)),
      async commitChunk(changes, { fromOffset, offset, committedAtMs, stream, ownerId }) {
        try {
          await runInTransaction(pool, 'BEGIN', async session => {
            // Takes this lock before any other lock, as do transactions that write definitions.
            if (changes.groupTypes.length > 0) await session.query(`SELECT pg_advisory_xact_lock(${definitionsLock})`)
            const values = [offset, committedAtMs, stream, ownerId, fromOffset ?? null]
            const { rowCount } = await session.query(texts.advancePosition, values)
            if (rowCount !== 1) {
              const { rows } = await session.query(texts.findOwnPosition, [stream, ownerId])
              throw new CommitRefused(rows.length === 0 ? 'not_owner' : 'position_moved')
            }
            await writeChunkChanges(session, changes)
          })
          return 'committed'
        } catch (cause) {
          if (cause instanceof CommitRefused) return cause.how
          const failure = toPostgresPortError(cause)
          // The cause is a deadlock, or another transaction deleted a referenced row in between.
          if (failure instanceof PortError && failure.code === 'conflict') return 'version_conflict'
          throw failure
        }
      },
      close: () => pool.end(),
    },
    toPostgresPortError,
  )
}

/** Reads each list with one statement, however many ids a chunk has. Each read throws what the driver throws. */
function createChunkReads(session: Session): ChunkReads {
  /** Runs no statement for empty lists, which find nothing. */
  const readRows = async <Row extends object>(
    statement: string,
    lists: readonly (readonly unknown[])[],
    ...limits: readonly number[]
  ): Promise<Row[]> => (lists[0]!.length === 0 ? [] : (await session.query<Row>(statement, [...lists, ...limits])).rows)
  const toLists = (ids: ReadonlyMap<number, ReadonlySet<string>>) => {
    const pairs = [...ids].flatMap(([projectId, ofProject]) => Array.from(ofProject, id => [projectId, id] as const))
    return [pairs.map(([projectId]) => projectId), pairs.map(([, id]) => id)]
  }
  return {
    projects: ids => readRows(loadStatements.projects, [ids]),
    groupTypes: projectIds => readRows(loadStatements.groupTypes, [projectIds]),
    mappedPersons: (ids, textBytes) => readRows(loadStatements.mappedPersons, toLists(ids), textBytes),
    personTexts: personIds => readRows(loadStatements.personTexts, [personIds]),
    personMappings: (personIds, countMax) =>
      readRows(loadStatements.personMappings, [personIds], personDistinctIdCountMax + 1, countMax + 1),
    personless: ids => readRows(loadStatements.personless, toLists(ids)),
    erasedIds: ids => readRows(loadStatements.erasedIds, toLists(ids)),
    importJobs: ids => readRows(loadStatements.importJobs, [ids]),
    generated: events =>
      readRows(loadStatements.generated, [events.map(({ projectId }) => projectId), events.map(({ uuid }) => uuid)]),
    groups: (keys, textBytes) => {
      const lists = [
        keys.map(key => key.project_id),
        keys.map(key => key.group_type_index),
        keys.map(key => key.group_key),
      ]
      return readRows(loadStatements.groups, lists, textBytes)
    },
  }
}
