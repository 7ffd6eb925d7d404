// Lists the files of the embedded event store as of one moment, for a backup. Parts are never rewritten, so the engine
// makes hard links to the current parts (FREEZE); small files next to the parts describe its tables. The engine can start
// on a folder that has only these files.

import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { createClickHouseClients, readRows } from '../clickhouse/connection/clickhouse-clients.ts'
import { engineFolderOf, readEngineEndpoint } from './engine-endpoint.ts'

export interface EventFile {
  /** The path below the data folder, separated by `/`. */
  readonly name: string
  readonly path: string
  readonly bytes: number
}

export interface EventFiles {
  readonly files: readonly EventFile[]
  /** The number of rows in the files, by table; copies of a row that are not merged yet count separately. */
  readonly rows: Readonly<Record<string, number>>
  /**
   * Removes the links to the frozen files. This frees the disk space of those that the engine has removed since the freeze.
   */
  release(): void
}

/** Freezing a table of a few rows takes milliseconds; freezing a table of many parts takes seconds. */
const freezeTimeoutSeconds = 60
/**
 * The names of freezes consist of letters, digits and underscores only: the engine writes anything else as `%` and two
 * digits.
 */
const freezePrefix = 'backup_'

/**
 * Freezes the tables and lists their files; needs a running engine. @throws PortError `unavailable` when it does not
 * answer.
 */
export async function freezeEventFiles(dataFolder: string): Promise<EventFiles> {
  const name = `${freezePrefix}${randomUUID().replaceAll('-', '')}`
  const frozen = join(shadowFolder(dataFolder), name)
  const release = () => rmSync(frozen, { recursive: true, force: true })
  const clients = createClickHouseClients({
    endpoint: () => readEngineEndpoint(dataFolder),
    queryTimeoutSeconds: freezeTimeoutSeconds,
  })
  const parts: string[] = []
  try {
    await clients.write(async (client, database) => {
      parts.length = 0
      release() // of a first try that lost its connection
      for (const [table] of await readRows<[string]>(client, undefined, { query: `SHOW TABLES FROM ${database}` })) {
        const done = await client.query({
          query: `ALTER TABLE ${database}.\`${table}\` FREEZE WITH NAME '${name}'`,
          format: 'JSONEachRow',
          clickhouse_settings: { alter_partition_verbose_result: 1 },
        })
        for (const { part_backup_path: path } of await done.json<{ part_backup_path: string }>()) parts.push(path)
      }
    })
    const missing = parts.find(path => !existsSync(join(path, 'checksums.txt')) || !path.startsWith(`${frozen}/store/`))
    if (missing !== undefined) throw new Error(`the engine reports that it froze ${missing}, which does not exist`)
    return { files: listEventFiles(dataFolder, frozen), rows: countRowsByTable(dataFolder, frozen), release }
  } catch (error) {
    release()
    throw error
  } finally {
    await clients.close()
  }
}

/** The files of a store whose engine is stopped and must stay stopped while they are used; empty without a store. */
export function listFilesOfStoppedEngine(dataFolder: string): EventFiles {
  const store = storeFolder(dataFolder)
  return {
    files: listEventFiles(dataFolder, store),
    rows: countRowsByTable(dataFolder, store),
    release: () => undefined,
  }
}

/** Whether frozen files exist: left by an earlier backup, or in use by a running backup. */
export function hasFrozenFiles(dataFolder: string): boolean {
  return listFreezes(dataFolder).length > 0
}

/** Removes all frozen files: call it only while no backup runs. */
export function removeFrozenFiles(dataFolder: string): void {
  for (const path of listFreezes(dataFolder)) rmSync(path, { recursive: true, force: true })
}

function listFreezes(dataFolder: string): string[] {
  const folder = shadowFolder(dataFolder)
  return listNames(folder)
    .filter(name => name.startsWith(freezePrefix))
    .map(name => join(folder, name))
}

/** @param partsFolder has `store/<3 characters>/<uuid of a table>/<part>` in it. */
function listEventFiles(dataFolder: string, partsFolder: string): EventFile[] {
  const store = storeFolder(dataFolder)
  const files: EventFile[] = []
  const add = (path: string, place: string) => {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats?.isFile()) files.push({ name: `events/store/${place}`, path, bytes: stats.size })
  }
  for (const name of listNames(join(store, 'metadata'))) add(join(store, 'metadata', name), `metadata/${name}`)
  for (const table of listTableFolders(store))
    for (const name of listNames(join(store, table))) add(join(store, table, name), `${table}/${name}`)
  for (const table of listTableFolders(partsFolder))
    for (const part of listNames(join(partsFolder, table)).filter(name => isPart(join(partsFolder, table, name))))
      for (const path of listFilesBelow(join(partsFolder, table, part)))
        add(path, `${table}/${part}/${relative(join(partsFolder, table, part), path)}`)
  return files
}

function countRowsByTable(dataFolder: string, partsFolder: string): Record<string, number> {
  const names = readTableNames(storeFolder(dataFolder))
  const rows: Record<string, number> = {}
  for (const table of listTableFolders(partsFolder)) {
    const name = names.get(basename(table))
    if (name === undefined) continue
    const folder = join(partsFolder, table)
    const parts = listNames(folder).filter(part => isPart(join(folder, part)))
    rows[name] = excludeMergedParts(parts)
      .map(part => Number(readFileSync(join(folder, part, 'count.txt'), 'utf8')))
      .reduce((sum, count) => sum + count, 0)
  }
  return rows
}

/** Maps the uuid of each table to its name, from the table definitions on the disk. */
function readTableNames(store: string): Map<string, string> {
  const names = new Map<string, string>()
  for (const folder of listTableFolders(store))
    for (const file of listNames(join(store, folder)).filter(name => name.endsWith('.sql'))) {
      const [, uuid] =
        /^ATTACH TABLE \S+ UUID '([0-9a-f-]+)'/.exec(readFileSync(join(store, folder, file), 'utf8')) ?? []
      if (uuid !== undefined) names.set(uuid, basename(file, '.sql'))
    }
  return names
}

/** Leaves out the parts that the engine has merged into another part but not removed yet. */
export function excludeMergedParts(names: readonly string[]): readonly string[] {
  const parts = names.flatMap(name => {
    const [, partition, min, max, level, mutation] = /^(.+?)_(\d+)_(\d+)_(\d+)(?:_(\d+))?$/.exec(name) ?? []
    return partition === undefined
      ? []
      : [{ name, partition, min: Number(min), max: Number(max), level: Number(level), mutation: Number(mutation ?? 0) }]
  })
  // Sorts each part before the parts that were merged into it, so one pass finds the parts that no earlier part covers.
  parts.sort((a, b) => a.min - b.min || b.max - a.max || b.level - a.level || b.mutation - a.mutation)
  const lastOf = new Map<string, number>()
  return parts.flatMap(({ name, partition, max }) => {
    if (max <= (lastOf.get(partition) ?? -1)) return []
    lastOf.set(partition, max)
    return [name]
  })
}

/** Lists the folders of tables, and the folders that contain the table definitions of a database. */
function listTableFolders(folder: string): string[] {
  return listNames(join(folder, 'store')).flatMap(start =>
    listNames(join(folder, 'store', start)).map(uuid => `store/${start}/${uuid}`),
  )
}

/**
 * Whether the folder is a complete part; false for one that a merge or an insert was still writing when the engine ended.
 */
function isPart(path: string): boolean {
  return existsSync(join(path, 'checksums.txt')) && !/\/(tmp|delete)[^/]*$/.test(path)
}

/** Lists the files in a folder and in its subfolders, since a part may contain parts (projections). */
function listFilesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

function listNames(folder: string): string[] {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []
}

function storeFolder(dataFolder: string): string {
  return join(engineFolderOf(dataFolder), 'store')
}

function shadowFolder(dataFolder: string): string {
  return join(storeFolder(dataFolder), 'shadow')
}
