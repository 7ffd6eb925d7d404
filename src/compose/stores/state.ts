// Opens the state for processes that write it: in the data folder, or in the PostgreSQL of `DATABASE_URL`. Chooses the
// adapter for each of its ports; `front/state.ts` does the same for what evaluations read. The code for PostgreSQL is
// loaded only when it is used.

import type { InstanceLock } from '#adapters/postgres/instance-lock.ts'
import { addSearchPath, type SchemaChoice } from '#adapters/postgres/state-schema.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import type { Config } from '#config.ts'
import { ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { HashKeyOverrideWriter } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'

/** How long a start waits for a busy primary. It waits less for the replica, since it can do without the replica. */
const startConnectMsMax = 15_000
const replicaConnectMsMax = 3_000

/** The state as it is used by the private API, for loading definitions, and for the writes of evaluations. */
export type StateWriter = ManagementStore & Pick<DefinitionStore, 'loadChanges'> & HashKeyOverrideWriter

type FoundState = Exclude<SchemaChoice, { refusal: string }>

/** Brings the state up to the newest schema. @throws with a message for the operator if it cannot be opened. */
export async function openManagementStore(config: Config, logger: Logger): Promise<StateWriter> {
  const urls = readStateUrls(config)
  if (urls === null) return openStateWriter({ dataFolder: config.dataFolder, logger })
  const found = await checkDatabases(urls, logger)
  return openPostgresState(urls.url, found, logger)
}

/** An instance's state, which no other instance can use until `release` is called. */
export interface InstanceState {
  readonly management: StateWriter
  /** Where the state is, for messages; null when it is in the data folder. */
  readonly place: string | null
  /**
   * Like `judgeReturns` of `InstanceLock`. Does nothing for a state in the data folder, which is never lost and found
   * again.
   */
  readonly judgeReturns: InstanceLock['judgeReturns']
  /** Lets other instances use the state. Leaves `management` open for its owner to close. Takes a second at most. */
  release(): Promise<void>
}

/**
 * Like `openManagementStore`, for the one process of an instance that starts the other processes: it changes nothing before it
 * owns the state. State in the data folder is owned through the folder's lock.
 * @param options.onSuperseded called with a line for the operator when another instance has taken the state over, which is
 * possible once this instance has lost its session with the server.
 * @returns one line for the operator if another instance uses the state.
 */
export async function openInstanceState(
  config: Config,
  logger: Logger,
  options: { waitMsMax: number; onWaiting: () => void; onSuperseded: (line: string) => void },
): Promise<Result<InstanceState, string>> {
  const urls = readStateUrls(config)
  if (urls === null) {
    const management = await openManagementStore(config, logger)
    return ok({ management, place: null, judgeReturns: () => undefined, release: async () => undefined })
  }
  const { url } = urls
  const found = await checkDatabases(urls, logger)
  const { acquireInstanceLock } = await import('#adapters/postgres/instance-lock.ts')
  const locked = await namePlaceInErrors(url, () => acquireInstanceLock({ ...options, url, logger }))
  if (!locked.ok) return locked
  const { judgeReturns, release } = locked.value
  try {
    const management = await openPostgresState(url, found, logger)
    return ok({
      management,
      place: `${await describeStatePlace(config)}, schema ${found.schema}`,
      judgeReturns,
      release,
    })
  } catch (cause) {
    await release()
    throw cause
  }
}

/** URLs of the primary and of the replica for evaluations, both with our schema; null for state in the data folder. */
export function readStateUrls(config: Config): { url: string; readUrl: string | null } | null {
  const { databaseUrl, databaseReadUrl, databaseSchema } = config
  if (databaseUrl === null) return null
  return {
    url: addSearchPath(databaseUrl, databaseSchema),
    readUrl: databaseReadUrl === null ? null : addSearchPath(databaseReadUrl, databaseSchema),
  }
}

/** `PostgreSQL at host:port/database`; null when the state is in the data folder. */
export async function describeStatePlace(config: Config): Promise<string | null> {
  if (config.databaseUrl === null) return null
  const { describeServer: placeOf } = await import('#adapters/postgres/check-postgres.ts')
  return `PostgreSQL at ${placeOf(config.databaseUrl)}`
}

async function openPostgresState(url: string, found: FoundState, logger: Logger): Promise<StateWriter> {
  const { createPostgresSchema } = await import('#adapters/postgres/check-postgres.ts')
  if (!found.isMade) await namePlaceInErrors(url, () => createPostgresSchema(url, found.schema))
  const { migratePostgres, openPostgresManagementStore } = await import(
    '#adapters/postgres/postgres-management-store.ts'
  )
  await namePlaceInErrors(url, () => migratePostgres({ url, logger }))
  const { openPostgresHashKeyWriter } = await import('#adapters/postgres/postgres-hash-key-writer.ts')
  const management = openPostgresManagementStore({ url, logger })
  const hashKeys = openPostgresHashKeyWriter({ url, logger })
  const close = async () => {
    await Promise.all([management.close(), hashKeys.close()])
  }
  return { ...management, addMissingHashKeys: hashKeys.addMissingHashKeys, close }
}

/** @throws an Error with a line for the operator instead of a PortError. */
async function namePlaceInErrors<T>(url: string, work: () => Promise<T>): Promise<T> {
  const { describeServer: placeOf } = await import('#adapters/postgres/check-postgres.ts')
  try {
    return await work()
  } catch (cause) {
    if (cause instanceof PortError)
      throw new Error(`PostgreSQL at ${placeOf(url)} cannot be used: ${cause.message}`, { cause })
    throw cause
  }
}

/** Opens the worker's part of a state that `serve` has brought up to date. */
export async function openWorkerState(
  config: Config,
  logger: Logger,
): Promise<{ chunks: ChunkStore; management: ManagementStore }> {
  const management = await openMigratedManagementStore(config, logger)
  const url = readStateUrls(config)?.url ?? null
  if (url === null) {
    const { openSqliteChunkStore } = await import('#adapters/sqlite/sqlite-chunk-store.ts')
    return { chunks: openSqliteChunkStore({ dataFolder: config.dataFolder }), management }
  }
  const { openPostgresChunkStore } = await import('#adapters/postgres/postgres-chunk-store.ts')
  return { chunks: openPostgresChunkStore({ url, logger }), management }
}

/** Opens a state that `serve` has brought up to date, in this thread. */
export async function openMigratedManagementStore(config: Config, logger: Logger): Promise<ManagementStore> {
  const { dataFolder } = config
  const url = readStateUrls(config)?.url ?? null
  if (url === null) {
    const { openSqliteManagementStore } = await import('#adapters/sqlite/sqlite-management-store.ts')
    return openSqliteManagementStore({ dataFolder, access: 'write' })
  }
  const { openPostgresManagementStore } = await import('#adapters/postgres/postgres-management-store.ts')
  return openPostgresManagementStore({ url, logger })
}

/**
 * Checks the primary and the replica. A replica that does not answer now does not stop a start: stored persons are then
 * read from the primary.
 * @throws Error with a line for the operator.
 */
async function checkDatabases(
  { url, readUrl }: { url: string; readUrl: string | null },
  logger: Logger,
): Promise<FoundState> {
  const { checkPostgres } = await import('#adapters/postgres/check-postgres.ts')
  const primary = await checkPostgres(url, startConnectMsMax)
  if (!primary.ok) throw new Error(primary.error.message)
  const { place, version, isReplica, state, mayCreate } = primary.value
  if (isReplica) throw new Error(`PostgreSQL at ${place} is a read-only replica; set DATABASE_URL to its primary.`)
  if ('refusal' in state) throw new Error(`PostgreSQL at ${place} cannot be used: ${state.refusal}.`)
  if (!state.isMade && !mayCreate)
    throw new Error(
      `PostgreSQL at ${place} cannot be used: permission denied to make the schema ${state.schema}. As the owner of the database: CREATE SCHEMA ${state.schema} AUTHORIZATION the role of DATABASE_URL.`,
    )
  logger.info({ place, version, schema: state.schema }, 'using state in PostgreSQL')
  if (readUrl === null) return state
  const replica = await checkPostgres(readUrl, replicaConnectMsMax)
  if (replica.ok) return state
  const message = `DATABASE_READ_URL: ${replica.error.message}`
  if (!replica.error.mayPass) throw new Error(message)
  logger.warn(message)
  return state
}
