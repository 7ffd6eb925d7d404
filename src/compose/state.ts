// Where the state is: in the data folder, or in the PostgreSQL of `DATABASE_URL`. Which adapter fills which port of it, for
// a front and for the worker; what PostgreSQL needs is loaded only where it is used.

import type { InstanceLock } from '#adapters/postgres/instance-lock.ts'
import { type StateSchema, withStateSchema } from '#adapters/postgres/state-schema.ts'
import { stateFileOf } from '#adapters/sqlite/open-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { watchStateFiles } from '#adapters/sqlite/state-files.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import { ok, type Result } from '#core/result.ts'
import type { ChunkStore } from '#ports/chunk-store.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import type { HashKeyOverrideReader, HashKeyOverrideWriter } from '#ports/hash-key-overrides.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { SubjectStore } from '#ports/subject-store.ts'
import { readReplicaFirst } from '#services/flags/replica-first.ts'
import { guardStore, storeLimits } from '#services/flags/store-guard.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { Config } from '../config.ts'

/** A start waits this long for a server that is busy; for the replica less, since it starts without it. */
const startConnectMsMax = 15_000
const replicaConnectMsMax = 3_000

/**
 * Half of what an evaluation waits, so that the primary has the other half. A look-up that tries whether the replica is back
 * costs one request that half, and what tries every 5 s is found soon enough.
 */
const replicaLimits = { ...storeLimits, timeoutMs: storeLimits.timeoutMs / 2, restMs: 5_000 }

/** What the private API reads and writes, what definitions are loaded with, and what evaluations write. */
export type StateWriter = ManagementStore & Pick<DefinitionStore, 'loadChanges'> & HashKeyOverrideWriter

type FoundState = Exclude<StateSchema, { refusal: string }>

export interface FrontState {
  readonly subjects: SubjectStore & HashKeyOverrideReader
  readonly definitions: DefinitionStore
  /** How often a front asks whether definitions changed elsewhere: it follows a write within a second. */
  readonly definitionPollMs: number
  /** Log-ins that are written at once. More would wait for each other where projects take no turns. */
  readonly loginWritesAtOnceMax: number
  /** Whether the primary answers for the replica of `DATABASE_READ_URL`; false without one. */
  isReplicaDown(): boolean
  /** A sentence for people while the state's files are missing under this process, which then writes nothing; else null. */
  missing(): string | null
  close(): Promise<void>
}

/** Brings the state up to the newest schema. @throws with a message for people when it cannot be opened. */
export async function openManagement(config: Config, logger: Logger): Promise<StateWriter> {
  const urls = stateUrlsOf(config)
  if (urls === null) return openStateWriter({ dataFolder: config.dataFolder, logger })
  const found = await checkDatabases(urls, logger)
  return openPostgresState(urls.url, found, logger)
}

/** The state of an instance, which no other one uses until `release`. */
export interface InstanceState {
  readonly management: StateWriter
  /** Where the state is, for people; null when it is in the data folder. */
  readonly place: string | null
  /** As in `InstanceLock`. State in the data folder never goes away and comes back, so there this does nothing. */
  readonly judgeReturns: InstanceLock['judgeReturns']
  /** Gives the state back to other instances; `management` is closed by whoever has it. Takes a second at most. */
  release(): Promise<void>
}

/**
 * As `openManagement`, for the one process of an instance that starts the others: nothing is changed before the state is
 * its own. State in the data folder is, by the folder's own lock.
 * @param options.onSuperseded told when another instance has taken the state over, which it can once this one has lost its
 *   session with the server; gets a line for people.
 * @returns one line for a person when another instance uses the state.
 */
export async function openInstanceState(
  config: Config,
  logger: Logger,
  options: { waitMsMax: number; onWaiting: () => void; onSuperseded: (line: string) => void },
): Promise<Result<InstanceState, string>> {
  const urls = stateUrlsOf(config)
  if (urls === null) {
    const management = await openManagement(config, logger)
    return ok({ management, place: null, judgeReturns: () => undefined, release: async () => undefined })
  }
  const { url } = urls
  const found = await checkDatabases(urls, logger)
  const { takeInstanceLock } = await import('#adapters/postgres/instance-lock.ts')
  const locked = await namingPlace(url, () => takeInstanceLock({ ...options, url, logger }))
  if (!locked.ok) return locked
  const { judgeReturns, release } = locked.value
  try {
    const management = await openPostgresState(url, found, logger)
    return ok({ management, place: `${await statePlaceOf(config)}, schema ${found.schema}`, judgeReturns, release })
  } catch (cause) {
    await release()
    throw cause
  }
}

/** Addresses of the primary and of the replica for evaluations, both with our schema; null for state in the data folder. */
export function stateUrlsOf(config: Config): { url: string; readUrl: string | null } | null {
  const { databaseUrl, databaseReadUrl, databaseSchema } = config
  if (databaseUrl === null) return null
  return {
    url: withStateSchema(databaseUrl, databaseSchema),
    readUrl: databaseReadUrl === null ? null : withStateSchema(databaseReadUrl, databaseSchema),
  }
}

/** `PostgreSQL at host:port/database`; null when the state is in the data folder. */
export async function statePlaceOf(config: Config): Promise<string | null> {
  if (config.databaseUrl === null) return null
  const { placeOf } = await import('#adapters/postgres/check-postgres.ts')
  return `PostgreSQL at ${placeOf(config.databaseUrl)}`
}

async function openPostgresState(url: string, found: FoundState, logger: Logger): Promise<StateWriter> {
  const { makePostgresSchema } = await import('#adapters/postgres/find-schema.ts')
  if (!found.isMade) await namingPlace(url, () => makePostgresSchema(url, found.schema))
  const { migratePostgres, openPostgresManagementStore } = await import(
    '#adapters/postgres/postgres-management-store.ts'
  )
  await namingPlace(url, () => migratePostgres({ url, logger }))
  const { openPostgresHashKeyWriter } = await import('#adapters/postgres/postgres-hash-key-writer.ts')
  const management = openPostgresManagementStore({ url, logger })
  const hashKeys = openPostgresHashKeyWriter({ url, logger })
  const close = async () => {
    await Promise.all([management.close(), hashKeys.close()])
  }
  return { ...management, keepHashKey: hashKeys.keepHashKey, close }
}

/** @throws instead of a PortError an Error with a line for people. */
async function namingPlace<T>(url: string, work: () => Promise<T>): Promise<T> {
  const { placeOf } = await import('#adapters/postgres/check-postgres.ts')
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof PortError)
      throw new Error(`PostgreSQL at ${placeOf(url)} cannot be used: ${cause.message}`, { cause })
    throw cause
  }
}

/** Writes of other processes are served within a second; a front's own at once. */
const sqlitePollMs = 500

/** They share a transaction of the state thread and its sync, and the thread's other calls wait for it. */
const sqliteLoginWritesAtOnceMax = 64

/** On a state that `openManagement` has brought up to date. */
export async function openFrontState(
  config: Config,
  { logger, metrics }: { logger: Logger; metrics: Metrics },
  management: StateWriter,
): Promise<FrontState> {
  const { dataFolder } = config
  const urls = stateUrlsOf(config)
  const { loadChanges } = management
  if (urls === null) {
    const subjects = openSqliteSubjectStore({ dataFolder })
    const definitions = openSqliteDefinitionStore({ dataFolder, loadChanges })
    let isOpen = true
    const missingFile = watchStateFiles(stateFileOf(dataFolder), {
      isOpen: () => isOpen,
      tell: missing => {
        if (missing === null) logger.warn('the state is in its place again')
        else logger.error(stateMissingLine(missing))
      },
    })
    const missing = () => {
      const path = missingFile()
      return path === null ? null : stateMissingLine(path)
    }
    const close = async () => {
      isOpen = false
      subjects.close()
      await definitions.close()
    }
    return {
      subjects,
      definitions,
      definitionPollMs: sqlitePollMs,
      loginWritesAtOnceMax: sqliteLoginWritesAtOnceMax,
      isReplicaDown: () => false,
      missing,
      close,
    }
  }
  const { openPostgresSubjectStore } = await import('#adapters/postgres/postgres-subject-store.ts')
  const { hashKeySessionsMax } = await import('#adapters/postgres/postgres-hash-key-writer.ts')
  const { openPostgresDefinitionStore } = await import('#adapters/postgres/postgres-definition-store.ts')
  const primary = openPostgresSubjectStore({ url: urls.url, logger })
  const replica = urls.readUrl === null ? null : openPostgresSubjectStore({ url: urls.readUrl, logger })
  const guard = guardStore({
    ...replicaLimits,
    port: 'subject-replica',
    task: 'reading stored persons and groups from DATABASE_READ_URL',
    without: 'they are read from DATABASE_URL',
    logger,
    metrics,
    monotonicNowMs: () => performance.now(),
  })
  const definitions = openPostgresDefinitionStore({ url: urls.url, logger, loadChanges })
  const close = async () => {
    await Promise.all([primary.close(), replica?.close(), definitions.close()])
  }
  const subjects = replica === null ? primary : readReplicaFirst(replica, primary, guard)
  return {
    subjects,
    definitions,
    definitionPollMs: 1_000,
    loginWritesAtOnceMax: hashKeySessionsMax,
    isReplicaDown: guard.isDown,
    missing: () => null,
    close,
  }
}

function stateMissingLine(path: string): string {
  return (
    `${path} was removed or replaced while it was in use. Flags are answered as they were, and events are accepted into the log; ` +
    'nothing is written to the state and nothing is processed. Stop Pennon, put it back or restore a backup, and start it again'
  )
}

/** The worker's, on a state that `serve` has brought up to date. */
export async function openWorkerState(
  config: Config,
  logger: Logger,
): Promise<{ chunks: ChunkStore; management: ManagementStore }> {
  const { dataFolder } = config
  const url = stateUrlsOf(config)?.url ?? null
  if (url === null) {
    const { openSqliteManagementStore } = await import('#adapters/sqlite/sqlite-management-store.ts')
    return {
      chunks: openSqliteChunkStore({ dataFolder }),
      management: openSqliteManagementStore({ dataFolder, access: 'write' }),
    }
  }
  const { openPostgresChunkStore } = await import('#adapters/postgres/postgres-chunk-store.ts')
  const { openPostgresManagementStore } = await import('#adapters/postgres/postgres-management-store.ts')
  return {
    chunks: openPostgresChunkStore({ url, logger }),
    management: openPostgresManagementStore({ url, logger }),
  }
}

/**
 * A replica that does not answer now is no reason to refuse a start: flags that need no stored person work without it.
 * @throws Error with a line for people.
 */
async function checkDatabases(
  { url, readUrl }: { url: string; readUrl: string | null },
  logger: Logger,
): Promise<FoundState> {
  const { checkPostgres } = await import('#adapters/postgres/check-postgres.ts')
  const primary = await checkPostgres(url, startConnectMsMax)
  if (!primary.ok) throw new Error(primary.error.message)
  const { place, version, isReplica, state, mayCreate } = primary.value
  if (isReplica)
    throw new Error(`PostgreSQL at ${place} is a replica, which takes no writes; DATABASE_URL has to name its primary.`)
  if ('refusal' in state) throw new Error(`PostgreSQL at ${place} cannot be used: ${state.refusal}.`)
  if (!state.isMade && !mayCreate)
    throw new Error(
      `PostgreSQL at ${place} cannot be used: permission denied to make the schema ${state.schema}. As the owner of the database: CREATE SCHEMA ${state.schema} AUTHORIZATION the role of DATABASE_URL.`,
    )
  logger.info({ place, version, schema: state.schema }, 'state is in PostgreSQL')
  if (readUrl === null) return state
  const replica = await checkPostgres(readUrl, replicaConnectMsMax)
  if (replica.ok) return state
  const message = `DATABASE_READ_URL: ${replica.error.message}`
  if (!replica.error.mayPass) throw new Error(message)
  logger.warn(message)
  return state
}
