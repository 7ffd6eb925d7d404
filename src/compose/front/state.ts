// Opens the parts of the state that evaluations read, and the definitions that a front follows: in the data folder, or in
// the PostgreSQL of `DATABASE_URL` with the replica of `DATABASE_READ_URL`.

import { stateFilePath, watchStateFiles } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { HashKeyOverrideReader, SubjectStore } from '#ports/state/subject-store.ts'
import { createReplicaFirstStore } from '#services/flags/replica-first.ts'
import { createStoreCircuitBreaker, storeLimits } from '#services/flags/store-circuit-breaker.ts'
import type { Logger } from '#telemetry/log.ts'
import { readStateUrls, type StateWriter } from '../stores/state.ts'
import type { FrontSurroundings } from './context.ts'

export interface FrontState {
  readonly subjects: SubjectStore & HashKeyOverrideReader & CookielessVisitors
  readonly definitions: DefinitionStore
  /** How often a front checks whether another process changed definitions, so that it serves a write within a second. */
  readonly definitionPollMs: number
  /** How many log-ins are written at the same time. Any more would wait in the store, where projects do not take turns. */
  readonly loginWritesAtOnceMax: number
  /** Whether the primary replaces the replica of `DATABASE_READ_URL`; false without a replica. */
  isReplicaDown(): boolean
  /** A sentence for the operator while the state's files are missing, so that writes are refused; otherwise null. */
  missing(): string | null
  close(): Promise<void>
}

/** Writes of other processes are served within a second; a front's own writes at once. */
const sqlitePollMs = 500
const postgresPollMs = 1_000

/**
 * So many log-ins share one transaction of the state thread and one sync to disk; meanwhile the thread's other calls wait.
 */
const sqliteLoginWritesAtOnceMax = 64

/**
 * The replica gets half of the time that an evaluation waits, the primary the other half. A look-up that tries whether the
 * replica is back delays one request by that half, so it is made only every 5 s, which is soon enough.
 */
const replicaLimits = { ...storeLimits, timeoutMs: storeLimits.timeoutMs / 2, restMs: 5_000 }

type StateSurroundings = Pick<FrontSurroundings, 'config' | 'logger' | 'metrics'>

/** Requires a state that `openManagementStore` has brought up to date. */
export async function openFrontState(surroundings: StateSurroundings, management: StateWriter): Promise<FrontState> {
  const { config, logger } = surroundings
  const urls = readStateUrls(config)
  return urls === null
    ? openSqliteState(config.dataFolder, logger, management)
    : openPostgresState(urls, surroundings, management)
}

async function openSqliteState(dataFolder: string, logger: Logger, { loadChanges }: StateWriter): Promise<FrontState> {
  await using opened = new AsyncDisposableStack()
  const subjects = opened.adopt(openSqliteSubjectStore({ dataFolder }), store => store.close())
  const definitions = opened.adopt(openSqliteDefinitionStore({ dataFolder, loadChanges }), store => store.close())
  let isOpen = true
  opened.defer(() => {
    isOpen = false
  })
  const missingFile = watchStateFiles(stateFilePath(dataFolder), {
    isOpen: () => isOpen,
    report: missing => {
      if (missing === null) logger.warn('state.db is back in place')
      else logger.error(describeMissingState(missing))
    },
  })
  const open = opened.move()
  return {
    subjects,
    definitions,
    definitionPollMs: sqlitePollMs,
    loginWritesAtOnceMax: sqliteLoginWritesAtOnceMax,
    isReplicaDown: () => false,
    missing: () => {
      const path = missingFile()
      return path === null ? null : describeMissingState(path)
    },
    close: () => open.disposeAsync(),
  }
}

function describeMissingState(path: string): string {
  return (
    `${path} was removed or replaced while in use. Flags are still served as they were, and events accepted while the ` +
    'log is in place, but nothing is written to the state or processed. Stop Pennon, put the file back or restore a backup, and start it again'
  )
}

async function openPostgresState(
  { url, readUrl }: { url: string; readUrl: string | null },
  { logger, metrics }: StateSurroundings,
  { loadChanges }: StateWriter,
): Promise<FrontState> {
  const { openPostgresSubjectStore } = await import('#adapters/postgres/postgres-subject-store.ts')
  const { hashKeySessionsMax } = await import('#adapters/postgres/postgres-hash-key-writer.ts')
  const { openPostgresDefinitionStore } = await import('#adapters/postgres/postgres-definition-store.ts')
  const primary = openPostgresSubjectStore({ url, logger })
  const replica = readUrl === null ? null : openPostgresSubjectStore({ url: readUrl, logger })
  const guard = createStoreCircuitBreaker({
    ...replicaLimits,
    port: 'subject-replica',
    task: 'reading stored persons and groups from DATABASE_READ_URL',
    without: 'reading them from DATABASE_URL',
    logger,
    metrics,
    monotonicNowMs: () => performance.now(),
  })
  const definitions = openPostgresDefinitionStore({ url, logger, loadChanges })
  return {
    subjects: replica === null ? primary : createReplicaFirstStore(replica, primary, guard),
    definitions,
    definitionPollMs: postgresPollMs,
    loginWritesAtOnceMax: hashKeySessionsMax,
    isReplicaDown: guard.isDown,
    missing: () => null,
    close: async () => {
      await Promise.all([primary.close(), replica?.close(), definitions.close()])
    },
  }
}
