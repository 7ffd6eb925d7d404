// One fresh service per vector: real HTTP, a real worker child, a state folder of its own, and a database of its own in
// one embedded engine that all instances of a run share (starting an engine takes longer than most vectors). With
// DATABASE_URL set, the state of each is in a database of its own beside that one.
// What a vector needs in an instance is set up by `state.ts`, through the private API and the wire alone.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { defaultEngineLimits, usersConfig } from '#adapters/clickhouse-embedded/engine-config.ts'
import { prepareEngine } from '#adapters/clickhouse-embedded/start-engine.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import { createLogger } from '#telemetry/log.ts'
import { type Service, startService } from '../../src/commands/start-service.ts'
import type { GeoipTable } from '../../src/commands/test-geoip.ts'
import { readConfig } from '../../src/config.ts'
import { eventually } from '../support/eventually.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { databasesAt } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { CannotRun, isObject } from './compare.ts'

const personalKey = 'phx_vectors00000000000000000000000000000000001'
const processedWithinMs = 20_000
/** Longer than a service gives its children; one that hangs must not keep the results. */
const stopMsMax = 15_000

export interface Needs {
  readonly projectKey: string
  /** What every clock of the instance says, epoch ms. */
  readonly nowMs: number
  /** Environment variables of the service. */
  readonly settings?: Readonly<Record<string, string>>
  /** Whether events are captured and read back; evaluations of definitions alone start faster without a worker. */
  readonly worker: boolean
  /** Stands in the place of the log between a 200 and the worker. */
  readonly eventLog?: EventLogWriter
  /** Stands in the place of the GeoIP database. */
  readonly geoipTable?: GeoipTable
}

export interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Instance {
  readonly projectKey: string
  /** One request as a client sends it: no header is added but Host and Content-Length. */
  send(exchange: Exchange): Promise<Answer>
  /** The private API, JSON in and out. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; json: unknown; text: string }>
  /** The same for calls that have to work. @throws CannotRun with the answer when it is not 2xx. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Resolves when everything appended so far is processed and can be asked for. */
  caughtUp(): Promise<void>
  /** Moves every clock of the instance, epoch ms. */
  setClock(nowMs: number): void
}

export interface Instances {
  /** Runs `use` on a fresh instance, which is gone afterwards. */
  with<T>(needs: Needs, use: (instance: Instance) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export function createInstances(): Instances {
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
        ...(state !== undefined && { DATABASE_URL: state }),
      })
      try {
        return await use(instance)
      } finally {
        agent.destroy()
        // Children take a moment to end; the next vector need not wait for them.
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
  const started = await startService({
    config: config.value,
    environment,
    clock,
    runsWorker: needs.worker,
    logger: createLogger({ level: config.value.logLevel, process: 'vectors' }),
    ...(needs.eventLog === undefined ? {} : { eventLog: needs.eventLog }),
    geoipTable: needs.geoipTable ?? {},
  })
  if (!started.ok) throw new CannotRun(started.error)
  const agent = new Agent({ keepAlive: true })
  const setClock = (nowMs: number) => {
    clock.set(nowMs)
    started.value.setWorkerClock(nowMs)
  }
  return { service: started.value, instance: { ...instanceOf(started.value, needs, agent), setClock }, agent }
}

function instanceOf(service: Service, { projectKey, worker }: Needs, agent: Agent): Omit<Instance, 'setClock'> {
  const send = (exchange: Exchange) => exchangeOver(agent, service.url, exchange)
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

/** `undefined` for what is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What a vector's text is compared with: the `detail` of a JSON error, else the body as it is. */
export function comparableText({ status, text }: Answer): string {
  const json = status >= 400 ? jsonOf(text) : undefined
  return isObject(json) && typeof json.detail === 'string' ? json.detail : text
}

function exchangeOver(agent: Agent, url: string, { method, path, headers, body }: Exchange): Promise<Answer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0))
  const hasBody = bytes.length > 0 || (method !== 'GET' && method !== 'HEAD')
  return new Promise((resolve, reject) => {
    let answered = false
    const request = httpRequest(
      new URL(url + path),
      { agent, method, headers: { ...headers, ...(hasBody ? { 'content-length': bytes.length } : {}) } },
      response => {
        answered = true
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(chunks).toString() }),
        )
        response.on('error', reject)
      },
    )
    // A refused body may be cut off while it is still being sent; the answer, when there was one, came first.
    request.on('error', cause => {
      if (!answered) reject(cause)
    })
    request.end(bytes)
  })
}

/** The settings of whoever calls the runner are none of a vector's. */
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

/** Databases at the newest schema, copied one after the other: a template that is being copied lets nobody else in. */
function createStates(adminUrl: string): States {
  const databases = databasesAt(adminUrl)
  const template = migratedTemplate(databases)
  let latest: Promise<unknown> = template
  return {
    create: () => {
      const created = latest.then(async () => databases.createDatabase({ template: await template }))
      latest = created.catch(() => undefined) // whoever asked for it is told
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
  const { args, endpoint } = await prepareEngine(dataFolder)
  writeFileSync(
    join(args[2]!, 'users.xml'),
    usersConfig({ ...endpoint, database: 'vectors_*' }, { ...defaultEngineLimits, queryTimeoutSeconds: 60 }),
  )
  const script = fileURLToPath(new URL('../support/engine-child.ts', import.meta.url))
  const child: ChildProcess = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', script, args[2]!, args[4]!],
    { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  )
  const gone = new Promise<void>(resolve => child.once('exit', () => resolve()))
  await new Promise<void>((ready, failed) => {
    child.once('message', () => ready())
    child.once('exit', code => failed(new Error(`the engine ended with code ${code} before it was ready`)))
  })
  const { username, password } = endpoint.writer
  return {
    urlOf: database => `${endpoint.url.replace('//', `//${username}:${password}@`)}/${database}`,
    stop: async () => {
      child.kill('SIGKILL')
      await gone
    },
  }
}
