// One fresh service per vector: real HTTP, a real worker child, its own state folder, and its own database in one
// embedded engine that all instances of a run share, since starting an engine takes longer than most vectors. With
// DATABASE_URL set, each instance has its state in its own database on that server. `state.ts` sets up what a vector
// needs, only through the private API and the wire.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { defaultEngineLimits, formatUsersConfig } from '#adapters/clickhouse-embedded/engine-config.ts'
import { prepareEngineStart } from '#adapters/clickhouse-embedded/start-engine.ts'
import { openSalts } from '#compose/stores/stores.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { createLogger, type Logger } from '#telemetry/log.ts'
import type { GeoipTable } from '../../src/commands/create-table-geoip.ts'
import { type Service, startService } from '../../src/commands/start-service.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { spawnPreparedEngine } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { databasesAt } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { endProcess } from '../support/processes-in-folders.ts'
import { CannotRun } from './compare.ts'
import { type Answer, type Exchange, exchange, jsonOf } from './exchange.ts'

/** Has every scope. */
export const personalKey = 'phx_vectors00000000000000000000000000000000001'
/** Long, so that a busy machine fails no vector: the worker is a separate process. */
const processedWithinMs = 60_000
/** Longer than a service gives its children to stop; one that hangs must not hold up the results. */
const stopMsMax = 15_000

export interface Needs {
  readonly projectKey: string
  /** The time of every clock of the instance, epoch ms. */
  readonly nowMs: number
  /** Environment variables of the service. */
  readonly settings?: Readonly<Record<string, string>>
  /** Whether events are captured and read back. Without a worker, an instance for evaluations only starts faster. */
  readonly worker: boolean
  /** Replaces the log between a 200 and the worker. */
  readonly eventLog?: EventLogAppender
  /** Replaces the GeoIP database. */
  readonly geoipTable?: GeoipTable
  /** The salts of these days for visitors without cookies, base64; other days have random ones. */
  readonly salts?: Readonly<Record<string, string>>
}

export interface Instance {
  readonly projectKey: string
  /** Sends one request as given: only Host and Content-Length are added. */
  send(sent: Exchange): Promise<Answer>
  /** Calls the private API, JSON in and out. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown; text: string }>
  /** Like `call`, for calls that have to work. @throws CannotRun with the answer when it is not 2xx. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Resolves when everything appended so far is processed and can be queried, warnings of the edge included. */
  caughtUp(): Promise<void>
  /** Moves every clock of the instance, epoch ms. */
  setClock(nowMs: number): void
}

export interface Instances {
  /** Runs `use` on a fresh instance, which is removed afterwards. */
  with<T>(needs: Needs, use: (instance: Instance) => Promise<T>): Promise<T>
}

export function createInstances(): Instances & { close(): Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-vectors-'))
  const stopping = new Set<Promise<void>>()
  const states = process.env.DATABASE_URL ? createStates(process.env.DATABASE_URL) : null
  let engine: Promise<Engine> | undefined
  let startedCount = 0

  return {
    with: async (needs, use) => {
      engine ??= startSharedEngine(join(folder, 'engine'))
      const number = ++startedCount
      const dataFolder = join(folder, `instance-${number}`)
      const state = await states?.create()
      const { service, instance, agent } = await start(needs, dataFolder, {
        CLICKHOUSE_URL: (await engine).urlOf(`vectors_${number}`),
        ...(state !== undefined && { DATABASE_URL: state, PENNON_DATABASE_SCHEMA: 'public' }),
      })
      try {
        return await use(instance)
      } finally {
        agent.destroy()
        // Children take a moment to end; the next vector does not have to wait for them.
        const stopped = service.stop().finally(async () => {
          rmSync(dataFolder, { recursive: true, force: true })
          if (state !== undefined) await states?.drop(state)
          stopping.delete(stopped)
        })
        stopping.add(stopped)
        if (stopping.size > 2) await Promise.race(stopping)
      }
    },
    close: async () => {
      await Promise.race([Promise.all(stopping), sleep(stopMsMax, undefined, { ref: false })])
      await (await engine)?.stop()
      await states?.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function start(needs: Needs, dataFolder: string, stores: Readonly<Record<string, string>>) {
  const environment = {
    ...settingsFree(process.env),
    NODE_ENV: 'test',
    PORT: '0',
    PENNON_DATA: dataFolder,
    PENNON_PROJECT_KEY: needs.projectKey,
    PENNON_PERSONAL_KEY: personalKey,
    PENNON_LOG_LEVEL: process.env.VECTORS_LOG_LEVEL ?? 'silent',
    ...stores,
    ...needs.settings,
  }
  const config = readConfig(environment)
  if (!config.ok) throw new CannotRun(config.error)
  const clock = fixedClock(needs.nowMs)
  const logger = createLogger({ level: config.value.logLevel, process: 'vectors' })
  if (needs.salts !== undefined) await keepSalts(config.value, logger, needs.salts)
  const started = await startService({
    config: config.value,
    environment,
    logger,
    hooks: {
      clock,
      geoipTable: needs.geoipTable ?? {},
      ...(needs.eventLog === undefined ? {} : { eventLog: needs.eventLog }),
      runsWorker: needs.worker,
    },
  })
  if (!started.ok) throw new CannotRun(started.error)
  const agent = new Agent({ keepAlive: true })
  const setClock = (nowMs: number) => {
    clock.set(nowMs)
    started.value.setTestClock(nowMs)
  }
  return { service: started.value, instance: { ...instanceOf(started.value, needs, agent), setClock }, agent }
}

/** The first to name a day's salt wins, so the service takes these over. */
async function keepSalts(config: Config, logger: Logger, salts: Readonly<Record<string, string>>): Promise<void> {
  const store = await openSalts(config, logger)
  for (const [day, salt] of Object.entries(salts)) await store.findOrCreateSalt(day, Buffer.from(salt, 'base64'))
  await store.close()
}

function instanceOf(service: Service, { projectKey, worker }: Needs, agent: Agent): Omit<Instance, 'setClock'> {
  const send = (sent: Exchange) => exchange(service.url, sent, agent)
  const call: Instance['call'] = async (method, path, body) => {
    const answer = await send({
      method,
      path,
      headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: answer.text, json: jsonOf(answer.text) }
  }
  const api: Instance['api'] = async (method, path, body) => {
    const answer = await call(method, path, body)
    if (answer.status >= 300) throw new CannotRun(`${method} ${path} answered ${answer.status} ${answer.text}`)
    return answer.json as never
  }
  return {
    projectKey,
    send,
    call,
    api,
    caughtUp: async () => {
      if (!worker) throw new Error('this instance was started without a worker')
      await service.writeCounts()
      await eventually(
        async () => {
          if (service.processingState() !== 'ok') return false
          const { lanes } = await api<{ lanes: Lanes }>('GET', '/api/projects/@current/ingestion_status/')
          return Object.values(lanes).every(({ appended, processed }) => processed >= appended)
        },
        { timeoutMs: processedWithinMs, what: `processing (${service.processingState()})` },
      )
    },
  }
}

type Lanes = Readonly<Record<string, { appended: number; processed: number }>>

/** Leaves out the settings of the process that runs the vectors. */
function settingsFree(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const foreign = [
    'CLICKHOUSE_URL',
    'DATABASE_URL',
    'DATABASE_READ_URL',
    'KAFKA_BROKERS',
    'GEOIP_DATABASE',
    'HOST',
    'NODE_TEST_CONTEXT',
  ]
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith('PENNON_') && !foreign.includes(name)),
  )
}

interface States {
  create(): Promise<string>
  drop(url: string): Promise<void>
  close(): Promise<void>
}

/** Databases at the newest schema, copied one at a time: while a template is being copied, nothing else can use it. */
function createStates(adminUrl: string): States {
  const databases = databasesAt(adminUrl)
  const template = migratedTemplate(databases)
  let latest: Promise<unknown> = template
  return {
    create: () => {
      const created = latest.then(async () => databases.createDatabase({ template: await template }))
      latest = created.catch(() => undefined) // the caller gets the error
      return created
    },
    drop: url => databases.dropDatabase(url),
    close: async () => databases.dropDatabase(await template),
  }
}

interface Engine {
  urlOf(database: string): string
  stop(): Promise<void>
}

/** The engine as `pennon events` runs it; its writer may use any database whose name starts with `vectors_`. */
async function startSharedEngine(dataFolder: string): Promise<Engine> {
  const { child, endpoint } = await spawnPreparedEngine(dataFolder, async () => {
    const prepared = await prepareEngineStart(dataFolder)
    const limits = { ...defaultEngineLimits, queryTimeoutSeconds: 60 }
    const users = formatUsersConfig({ ...prepared.endpoint, database: 'vectors' }, limits)
    writeFileSync(
      join(prepared.args[2]!, 'users.xml'),
      users.replaceAll('GRANT ALL ON vectors.*', 'GRANT ALL ON vectors_*.*'),
    )
    return prepared
  })
  const { username, password } = endpoint.writer
  return {
    urlOf: database => `${endpoint.url.replace('//', `//${username}:${password}@`)}/${database}`,
    stop: () => endProcess(child, 'SIGKILL'),
  }
}
