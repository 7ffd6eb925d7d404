// Verifies a backup by restoring it into a temporary folder next to it: every file by its checksum, the state and the log
// by reading them, the event store by starting the engine on it. The rows of all three are counted, and compared with the
// description of the backup.

import { accessSync, constants, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createClickHouseClients, readRows } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import { readEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { findEngineLibraryPath } from '#adapters/clickhouse-embedded/engine-library.ts'
import { prepareEngineStart } from '#adapters/clickhouse-embedded/start-engine.ts'
import { countSqliteRows, findSqliteDamage } from '#adapters/sqlite/inspect-state-file.ts'
import type { Config } from '#config.ts'
import { err, ok, type Result } from '#core/result.ts'
import { howToInstall, missingPackage } from '#distribution.ts'
import { pickMachineEnvironment } from '#processes/child-environment.ts'
import { SupervisedChild } from '#processes/supervisor.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { openLogReader } from '../log/log.ts'
import { findLogFaults } from '../stores/store-faults.ts'
import type { BackupDescription } from './backup-description.ts'
import { createDraftFolder } from './draft-folder.ts'
import { restoreFromBackup } from './restore.ts'

export interface VerifyReport {
  readonly description: BackupDescription
  readonly fileCount: number
  /** Counted rows by table; null if the state is not in the backup. */
  readonly state: Counts | null
  readonly events: Counts | null
  /** The offset after the last record of each log stream. */
  readonly log: Counts
  /** Lines about differences from the description of the backup. */
  readonly differences: readonly string[]
}

type Counts = Readonly<Record<string, number>>

export interface VerifyBackupOptions {
  readonly onProgress: (bytes: number, bytesInAll: number) => void
  readonly signal: AbortSignal
  /** The program whose `engine` command runs the event store. */
  readonly mainPath: string
  readonly environment: NodeJS.ProcessEnv
}

/** How often to try: an engine that works starts at the second try at the latest (at the first, its port may be taken). */
const engineStartsMax = 3

/**
 * @returns one line for the operator if the backup could not be restored or read.
 * @throws the signal's reason when aborted; then nothing is left on disk, either.
 */
export async function verifyBackupFile(
  config: Config,
  file: string,
  options: VerifyBackupOptions,
): Promise<Result<VerifyReport, string>> {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return err(`${file} does not exist.`)
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch {
    return err(`${dirname(file)} is not writable: the backup is temporarily restored beside its file.`)
  }
  const scratch = `${file}.verifying`
  const remove = createDraftFolder(scratch)
  if (remove === null) return err(`${file} is being verified by another process.`)
  const dataFolder = join(scratch, 'data')
  try {
    const { onProgress, signal } = options
    const checkStop = () => signal.throwIfAborted()
    const restored = await restoreFromBackup({ ...config, dataFolder }, file, {
      onProgress,
      checkStop,
      isForVerifying: true,
    })
    if (!restored.ok) return restored
    if (restored.value.description.events && findEngineLibraryPath() === null)
      return err(`${missingPackage('chdb')}, which is needed to count the events of a backup: ${howToInstall('chdb')}.`)
    return ok(await inspectBackup({ ...config, dataFolder }, restored.value, options))
  } finally {
    remove()
  }
}

async function inspectBackup(
  config: Config,
  { description, fileCount }: { readonly description: BackupDescription; readonly fileCount: number },
  options: VerifyBackupOptions,
): Promise<VerifyReport> {
  const { dataFolder } = config
  const differences: string[] = []
  let state: Counts | null = null
  if (description.schema !== null) {
    const damage = findSqliteDamage(dataFolder)
    if (damage !== null) differences.push(`the state is damaged: ${damage}`)
    else state = countSqliteRows(dataFolder)
  }
  const log = await readLogEndOffsets(config)
  for (const { found } of findLogFaults(config)) differences.push(found.replaceAll(`${dataFolder}/`, ''))
  for (const [stream, position] of Object.entries(description.positions))
    if ((log[stream] ?? 0) < position)
      differences.push(`the log ${stream} ends at ${log[stream] ?? 0}, before the position ${position} of the state`)
  let events: Counts | null = null
  if (description.events) {
    const counted = await countEvents(dataFolder, options)
    if (counted === null) differences.push('the event store cannot be started')
    else events = counted
  }
  if (state !== null) differences.push(...compareCounts('the state', description.rows.state, state))
  if (events !== null) differences.push(...compareCounts('the event store', description.rows.events, events))
  return { description, fileCount, state, events, log, differences }
}

function compareCounts(what: string, said: Counts, found: Counts): string[] {
  return Object.entries(said)
    .filter(([table, rows]) => (found[table] ?? 0) !== rows)
    .map(([table, rows]) => `${what} has ${found[table] ?? 0} rows of ${table} instead of ${rows}`)
}

async function readLogEndOffsets(config: Config): Promise<Counts> {
  const reader = openLogReader(config)
  try {
    const ends: Record<string, number> = {}
    for (const { stream } of await reader.listStreams())
      ends[stream] = (await reader.readStreamStatus(stream, 0)).endOffset
    return ends
  } finally {
    await reader.close()
  }
}

/** @returns null if the engine does not start. @throws PortError, the signal's reason. */
async function countEvents(
  dataFolder: string,
  { mainPath, environment, signal }: VerifyBackupOptions,
): Promise<Counts | null> {
  const answers = Promise.withResolvers<boolean>()
  let endCount = 0
  const engine = new SupervisedChild({
    ...{
      name: 'events',
      mainPath,
      env: pickMachineEnvironment(environment),
      logger: createSilentLogger(),
      random: Math.random,
    },
    args: async () => (await prepareEngineStart(dataFolder, { isAsFound: true })).args,
    onMessage: () => answers.resolve(true),
    onExit: () => {
      if (++endCount === engineStartsMax) answers.resolve(false)
    },
  })
  const stop = () => answers.reject(signal.reason)
  signal.addEventListener('abort', stop)
  const clients = createClickHouseClients({ endpoint: () => readEngineEndpoint(dataFolder), queryTimeoutSeconds: 60 })
  try {
    await engine.start()
    if (!(await answers.promise)) return null
    return await clients.write(async (client, database) => {
      const rows = await readRows<[string, string | number]>(client, undefined, {
        query:
          'SELECT table, toUInt64(sum(rows)) FROM system.parts WHERE active AND database = {database:String} GROUP BY table',
        query_params: { database },
      })
      return Object.fromEntries(rows.map(([table, count]) => [table, Number(count)]))
    })
  } finally {
    signal.removeEventListener('abort', stop)
    await clients.close()
    await engine.stop(2_000)
  }
}
