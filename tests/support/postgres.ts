// A real PostgreSQL for tests: one cluster per test file, in a separate folder, from the machine's binaries, stopped
// and removed afterwards. Each test creates a fresh database in it. `noPostgres()` says why there is no PostgreSQL.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { childProcessesOf } from './child-processes.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { endProcess, registerProcess } from './processes-in-folders.ts'
import { removeFolder } from './temp-dir.ts'

export interface Databases {
  /**
   * Returns the `postgres://…` URL of a new database. `template` is the URL of one to copy, which must have no
   * sessions.
   */
  createDatabase(options?: { template?: string }): Promise<string>
  /** Also ends the database's sessions. */
  dropDatabase(url: string): Promise<void>
}

export interface TestPostgres extends Databases {
  readonly port: number
  /** URL of the default database, for the role that owns everything. */
  readonly url: string
  /** Process id of the running server. */
  readonly pid: number
  /** Runs statements on a new connection, in the database of `url` or the default one. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[], url?: string): Promise<Row[]>
  /** The output of `pg_dump` for the database, as SQL. */
  dump(url: string, ...options: readonly string[]): string
  /** Kills (kill -9) the server and its sessions; `restart` brings it back with the committed data. */
  kill(): Promise<void>
  restart(): Promise<void>
  /** Stops the server while its files are copied; `comeBack` replaces them with the copy and restarts it. */
  copy(): Promise<{ comeBack(): Promise<void> }>
  /** Stops the server and removes its folder. */
  stop(): Promise<void>
}

/** A role that needs the password `right`. The owner `pennon` needs none. */
export const guardedRole = 'guarded'

const startMsMax = 60_000

/**
 * For the `skip` option of a test: false if the machine has PostgreSQL binaries, otherwise the reason for skipping.
 * @throws under CI, where a skip is a failure.
 */
export function noPostgres(): string | false {
  if (binariesFolder() !== null) return false
  const reason = 'no PostgreSQL binaries in /usr/lib/postgresql/*/bin or PATH'
  if (process.env.CI) throw new Error(reason)
  return reason
}

/** Resolves when the server accepts connections; `stop` it in an `after` hook. @throws when there are no binaries. */
export async function startPostgres(): Promise<TestPostgres> {
  const binaries = binariesFolder()
  if (binaries === null) throw new Error('there are no PostgreSQL binaries')
  const folder = mkdtempSync(join(tmpdir(), 'pennon-postgres-'))
  const isRoot = process.getuid?.() === 0
  // PostgreSQL refuses to run as root.
  if (isRoot) chownSync(folder, idOf('-u'), idOf('-g'))
  const dataFolder = join(folder, 'data')
  const asServer = (program: string, args: readonly string[]) => launch(join(binaries, program), args, isRoot)
  makeCluster(dataFolder, () => {
    const initdb = asServer('initdb', [
      ...['-D', dataFolder, '-U', 'pennon', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'],
    ])
    execFileSync(initdb.command, initdb.args, { stdio: ['ignore', 'ignore', 'inherit'], cwd: tmpdir() })
  })
  const trust = 'host all all 127.0.0.1/32 trust\n'
  writeFileSync(join(dataFolder, 'pg_hba.conf'), `host all ${guardedRole} 127.0.0.1/32 scram-sha-256\n${trust}`)
  const port = await freePort()
  const logFile = join(folder, 'log')
  const server = asServer('postgres', [
    ...['-D', dataFolder, '-p', String(port)],
    // Tests do not need durability against a power cut, nor sockets in shared folders. A commit must survive a kill, so
    // `synchronous_commit` stays on.
    ...settings('listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'),
    ...settings('full_page_writes=off', 'shared_buffers=32MB', 'max_connections=300'),
  ])
  const start = async () => {
    const log = openSync(logFile, 'a')
    const child = spawn(server.command, server.args, { stdio: ['ignore', log, log], cwd: tmpdir() })
    registerProcess(folder, child, 'SIGQUIT')
    await untilReady(child, port, logFile)
    return child
  }
  let child = await start()
  const adminUrl = `postgres://pennon@127.0.0.1:${port}/postgres`
  await queryOnce(adminUrl, `CREATE ROLE ${guardedRole} LOGIN SUPERUSER PASSWORD 'right'`)
  const databases = databasesAt(adminUrl)
  const kill = async (signal: NodeJS.Signals) => {
    const sessions = signal === 'SIGKILL' ? childProcessesOf(child.pid!) : []
    await endProcess(child, signal)
    // A session whose server was killed ends by itself, but on a busy machine it may answer some more requests before
    // that.
    for (const pid of sessions) endSession(pid)
    await eventually(() => sessions.every(hasEnded), { what: 'the sessions of a killed server to end' })
  }

  return {
    port,
    url: adminUrl,
    get pid() {
      return child.pid!
    },
    ...databases,
    query: (text, values, url = adminUrl) => queryOnce(url, text, values),
    dump: (url, ...options) =>
      execFileSync(join(binaries, 'pg_dump'), [...options, url], { encoding: 'utf8', maxBuffer: 2 ** 30 }),
    kill: () => kill('SIGKILL'),
    restart: async () => {
      await kill('SIGKILL')
      child = await startBeside(start)
    },
    copy: async () => {
      const copy = join(folder, `copy-${randomBytes(4).toString('hex')}`)
      const replacing = async (replace: () => void) => {
        // Not SIGKILL, after which its sessions would write for a moment.
        await kill('SIGINT')
        replace()
        child = await start()
      }
      await replacing(() => execFileSync('cp', ['-a', dataFolder, copy]))
      return {
        comeBack: () =>
          replacing(() => {
            rmSync(dataFolder, { recursive: true })
            execFileSync('cp', ['-a', copy, dataFolder])
          }),
      }
    },
    stop: async () => {
      await kill('SIGQUIT')
      await removeFolder(folder)
    },
  }
}

/** All test files of a run copy the first one's cluster, since `initdb` takes more than a second of processor time. */
function makeCluster(dataFolder: string, initialize: () => void): void {
  const { TESTS_RUN } = process.env
  const made = TESTS_RUN === undefined ? null : join(TESTS_RUN, 'postgres-cluster')
  const copy = (from: string, to: string) => execFileSync('cp', ['-a', from, to])
  if (made !== null && existsSync(made)) return void copy(made, dataFolder)
  initialize()
  if (made === null) return
  const draft = `${made}-${process.pid}`
  copy(dataFolder, draft)
  try {
    renameSync(draft, made)
  } catch (error) {
    // Another test file was faster.
    if (!existsSync(made)) throw error
    rmSync(draft, { recursive: true })
  }
}

function endSession(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether a process has exited, or is a zombie. */
function hasEnded(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}

/** Creates databases on any server. @param adminUrl a database of the server, for a role that may create others. */
export function databasesAt(adminUrl: string): Databases {
  const run = randomBytes(4).toString('hex')
  let count = 0
  return {
    createDatabase: async ({ template } = {}) => {
      const url = new URL(adminUrl)
      url.pathname = `/test_${run}_${++count}`
      const copied = template === undefined ? '' : ` TEMPLATE ${databaseOf(template)}`
      await queryOnce(adminUrl, `CREATE DATABASE ${databaseOf(url.href)}${copied}`)
      return url.href
    },
    dropDatabase: async url => {
      await queryOnce(adminUrl, `DROP DATABASE IF EXISTS ${databaseOf(url)} WITH (FORCE)`)
    },
  }
}

/** Starts one server for a whole test file or test, and stops it afterwards. */
export async function startPostgresForTests(t: { after: (done: () => Promise<void>) => void }): Promise<TestPostgres> {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  return postgres
}

/** The folder of Debian's newest installation, or of the one in PATH. */
function binariesFolder(): string | null {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...versions.map(version => join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter).filter(folder => folder !== ''),
  ]
  return folders.find(folder => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres'))) ?? null
}

/** Runs a program as a user other than root and, if the system supports it, ends it when this process exits. */
function launch(program: string, args: readonly string[], isRoot: boolean): { command: string; args: string[] } {
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(existsSync)
  if (setpriv === undefined) {
    if (isRoot) throw new Error('PostgreSQL does not run as root, and there is no setpriv to leave it')
    return { command: program, args: [...args] }
  }
  const user = isRoot ? ['--reuid=nobody', `--regid=${idOf('-g')}`, '--clear-groups'] : []
  return { command: setpriv, args: [...user, '--pdeathsig=KILL', program, ...args] }
}

function idOf(option: '-u' | '-g'): number {
  return Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
}

function settings(...pairs: readonly string[]): string[] {
  return pairs.flatMap(pair => ['-c', pair])
}

function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1)
}

/** Retries the start: sessions of a killed server hold its memory for a moment, which prevents a new start. */
async function startBeside(start: () => Promise<ChildProcess>): Promise<ChildProcess> {
  const deadlineMs = performance.now() + startMsMax
  for (;;) {
    try {
      return await start()
    } catch (error) {
      const isHeld = (error as Error).message.includes('pre-existing shared memory block')
      if (!isHeld || performance.now() > deadlineMs) throw error
      await sleep(100)
    }
  }
}

async function untilReady(child: ChildProcess, port: number, logFile: string): Promise<void> {
  const deadlineMs = performance.now() + startMsMax
  while (performance.now() < deadlineMs) {
    if (child.exitCode !== null || child.signalCode !== null) break
    try {
      await queryOnce(`postgres://pennon@127.0.0.1:${port}/postgres`, 'SELECT 1')
      return
    } catch {
      await sleep(20) // not ready yet
    }
  }
  child.kill('SIGKILL')
  throw new Error(`PostgreSQL in ${dirname(logFile)} does not start: ${readFileSync(logFile, 'utf8').slice(-2_000)}`)
}

async function queryOnce<Row extends pg.QueryResultRow>(url: string, text: string, values?: unknown[]): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a server killed under it; the query's own failure is reported
  await client.connect()
  try {
    return (await client.query<Row>(text, values)).rows
  } finally {
    await client.end()
  }
}
