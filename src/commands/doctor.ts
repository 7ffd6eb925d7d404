// `pennon doctor`: what a start needs, checked one by one, and how to mend what is wrong. Changes nothing.

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { engineLibraryPath } from '../adapters/clickhouse-embedded/engine-library.ts'
import { type Config, readConfig } from '../config.ts'
import { readLockHolder } from '../processes/data-lock.ts'
import { refuse } from './refuse.ts'

interface Finding {
  readonly what: string
  readonly isGood: boolean
  readonly found: string
  /** What to do about it; only for what is not good. */
  readonly remedy?: string
}

/** Prints a line per check; exit code 1 when something needs mending. */
export async function doctor(): Promise<void> {
  const read = readConfig(process.env)
  if (!read.ok) refuse(read.error)
  const findings = await examine(read.value)
  const width = Math.max(...findings.map(({ what }) => what.length))
  for (const { what, isGood, found, remedy } of findings) {
    console.log(`${isGood ? 'ok  ' : 'MEND'}  ${what.padEnd(width)}  ${found}`)
    if (remedy !== undefined) console.log(`      ${' '.repeat(width)}  → ${remedy}`)
  }
  const badCount = findings.filter(({ isGood }) => !isGood).length
  console.log(badCount === 0 ? '\nNothing to mend.' : `\n${badCount} to mend.`)
  process.exit(badCount === 0 ? 0 : 1)
}

/** Exported for its test. */
export async function examine(config: Config): Promise<readonly Finding[]> {
  const holder = readLockHolder(config.dataFolder)
  return [
    nodeVersion(),
    dataFolder(config),
    await freeSpace(config),
    holder === null ? good('instance', 'not running') : await runningInstance(config, holder.pid),
    ...(holder === null ? [await freePort('PORT', config.host, config.port)] : []),
    ...(holder === null && config.adminPort !== null
      ? [await freePort('PENNON_ADMIN_PORT', config.host, config.adminPort)]
      : []),
    stateStore(),
    await eventStore(config),
    clock(),
  ]
}

function good(what: string, found: string): Finding {
  return { what, isGood: true, found }
}

function bad(what: string, found: string, remedy: string): Finding {
  return { what, isGood: false, found, remedy }
}

function nodeVersion(): Finding {
  const major = Number(process.versions.node.split('.')[0])
  return major >= 26
    ? good('node', process.versions.node)
    : bad(
        'node',
        `${process.versions.node}, but Pennon runs on its own Node 26`,
        'start it with `npm run pennon -- …` or bin/pennon',
      )
}

function dataFolder(config: Config): Finding {
  const folder = nearestExisting(config.dataFolder)
  if (!statSync(folder).isDirectory())
    return bad(
      'data folder',
      `${folder} is no folder`,
      'set PENNON_DATA to a folder, or to a path where one can be made',
    )
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return good(
      'data folder',
      existsSync(config.dataFolder) ? config.dataFolder : `${config.dataFolder} (made at the first start)`,
    )
  } catch {
    return bad(
      'data folder',
      `${folder} cannot be written by this user`,
      'change its owner, or set PENNON_DATA to a folder of yours',
    )
  }
}

/** The folder itself, or what it would be made in. */
function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path))
}

async function freeSpace(config: Config): Promise<Finding> {
  const { bavail, bsize } = await statfs(nearestExisting(config.dataFolder))
  const freeBytes = bavail * bsize
  const found = `${gibibytes(freeBytes)} free; events are refused below ${gibibytes(config.freeBytesMin)}`
  return freeBytes >= config.freeBytesMin
    ? good('disk', found)
    : bad('disk', found, 'make room, move PENNON_DATA to a larger disk, or lower PENNON_MIN_FREE_BYTES')
}

async function runningInstance(config: Config, pid: number): Promise<Finding> {
  if (config.port === 0) return good('instance', `running as process ${pid}`)
  const url = `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}/_readiness`
  try {
    const readiness = (await (await fetch(url, { signal: AbortSignal.timeout(3_000) })).json()) as Record<
      string,
      string
    >
    const troubles = Object.entries(readiness).filter(([, state]) => state !== 'ok')
    if (troubles.length === 0)
      return good('instance', `running as process ${pid}; flags, capture and processing are ok`)
    const found = `running as process ${pid}; ${troubles.map(([part, state]) => `${part}: ${state}`).join(', ')}`
    return bad('instance', found, troubles.map(([part, state]) => remedyOf(part, state)).join('; '))
  } catch (cause) {
    return bad(
      'instance',
      `process ${pid} holds the data folder, but ${url} does not answer (${reasonOf(cause)})`,
      'give doctor the PORT and HOST that it was started with; if they are these, restart it',
    )
  }
}

/** What the parts of `/_readiness` ask for. */
function remedyOf(part: string, state: string): string {
  if (state === 'log_or_disk_full')
    return 'make room on the disk, or raise PENNON_LOG_MAX_BYTES if the log has reached it'
  if (part === 'processing') return 'processing catches up by itself, nothing is lost; if it does not, look at the log'
  return `look at the log for why ${part} is ${state}`
}

async function freePort(name: string, host: string, port: number): Promise<Finding> {
  const failure = await new Promise<string | null>(resolve => {
    const server = createServer()
    server.once('error', (cause: Error & { code?: string }) => resolve(cause.code ?? cause.message))
    server.listen(port, host, () => server.close(() => resolve(null)))
  })
  if (failure === null) return good('port', `${host}:${port} is free`)
  return bad('port', `${host}:${port} cannot be used (${failure})`, portRemedies[failure]?.(name) ?? `set ${name}`)
}

const portRemedies: Readonly<Record<string, (name: string) => string>> = {
  EADDRINUSE: name => `stop what uses it, or set ${name} to a free port`,
  EACCES: name => `set ${name} to a port above 1023`,
  EADDRNOTAVAIL: () => 'set HOST to an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them',
}

function stateStore(): Finding {
  const database = new Database(':memory:')
  try {
    return good('state and log', `SQLite ${database.prepare('SELECT sqlite_version()').pluck().get()}`)
  } finally {
    database.close()
  }
}

async function eventStore(config: Config): Promise<Finding> {
  if (config.clickhouseUrl !== null) {
    const url = new URL(config.clickhouseUrl)
    try {
      const response = await fetch(new URL('/ping', url.origin), { signal: AbortSignal.timeout(3_000) })
      if (response.ok) return good('event store', `ClickHouse at ${url.host} answers`)
      return bad('event store', `ClickHouse at ${url.host} answers ${response.status}`, 'look at its log')
    } catch (cause) {
      return bad(
        'event store',
        `ClickHouse at ${url.host} does not answer (${reasonOf(cause)})`,
        'check CLICKHOUSE_URL and the network',
      )
    }
  }
  try {
    return good('event store', `embedded ClickHouse, ${gibibytes(statSync(engineLibraryPath()).size)} library`)
  } catch (cause) {
    const remedy =
      'the embedded engine exists for Linux and macOS on x64 and arm64; elsewhere set CLICKHOUSE_URL. Else run `npm ci`'
    return bad(
      'event store',
      `the embedded engine is not installed (${(cause as Error).message.split('\n')[0]})`,
      remedy,
    )
  }
}

/** A clock before the day this file's program was installed is wrong, and every event would carry its error. */
function clock(): Finding {
  const installedAt = statSync(new URL(import.meta.url)).mtimeMs
  const now = new Date()
  return now.getTime() >= installedAt - 86_400_000
    ? good('clock', now.toISOString())
    : bad('clock', `${now.toISOString()} is before this program was installed`, 'set the clock and keep it with NTP')
}

/** `fetch` hides what happened, such as ECONNREFUSED, behind "fetch failed". */
function reasonOf(cause: unknown): string {
  const { message, cause: inner } = cause as Error & { cause?: Error & { code?: string } }
  return inner?.code ?? inner?.message ?? message
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`
}
