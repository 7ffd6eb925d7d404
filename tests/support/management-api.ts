// The private API of a front over real HTTP on a real state file. Each test scripts the event store; the real one is
// tested by its contract (`tests/ports/event-store.test.ts`).

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { openEncryptionKeys } from '#adapters/encryption-keys/encryption-keys.ts'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openDefinitionLoader, openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { startFrontCounters } from '#compose/front/counters.ts'
import { startServingDefinitions } from '#compose/front/definitions.ts'
import { composeFlags } from '#compose/front/flags.ts'
import { composeManagement } from '#compose/front/management.ts'
import type { Author } from '#core/author.ts'
import { ok } from '#core/result.ts'
import type { ManagementDeps } from '#http/management/kit/deps.ts'
import type { ManagementRoute } from '#http/management/kit/endpoint.ts'
import type { Route } from '#http/shared/route.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { DefinitionChanges, DefinitionStore } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { HashKeyOverrideWriter } from '#ports/state/subject-store.ts'
import type { DecideServiceOptions } from '#services/flags/decide.ts'
import { createPayloadCipher } from '#services/manage/payload-cipher.ts'
import type { Logger } from '#telemetry/log.ts'
import { fixedClock } from './fixed-clock.ts'
import { serveParts, serveTogether, testContext, testParts } from './front-parts.ts'
import { writeNewState } from './state.ts'
import { type Scope, tempDir } from './temp-dir.ts'
import { aChange, chunkChanges } from './values.ts'

/** A key with all scopes. */
export const allScopesKey = 'phx_all-scopes'
export const allScopesAuthor: Author = { id: '00000000-0000-4000-9000-000000000001', label: '*' }

export interface ManagementApi {
  readonly url: string
  readonly management: ManagementStore
  readonly addMissingHashKeys: HashKeyOverrideWriter['addMissingHashKeys']
  readonly clock: ReturnType<typeof fixedClock>
  readonly routes: readonly ManagementRoute[]
  /** The revisions that writes waited for, in order. */
  readonly served: readonly number[]
  /** As the worker `test`; its position stays at 0 unless `offset` moves it. */
  commit(changes: Partial<ChunkChanges>, offset?: number): Promise<void>
  /** Creates a key with these scopes. */
  addKey(scopes: readonly string[], scopedProjectIds?: readonly number[]): Promise<string>
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  /** Send a request that has to succeed. @returns the body of the answer. */
  get(path: string, key?: string): Promise<Reply['body']>
  post(path: string, body?: unknown, key?: string): Promise<Reply['body']>
  patch(path: string, body?: unknown, key?: string): Promise<Reply['body']>
  /** @returns the rows of each page of a list, by following `next`. */
  pages(path: string): Promise<Reply['body'][][]>
  /** Checks that each request is refused with this error, and with 400 unless the code has another status. */
  refuses(method: string, path: string, ...refusals: readonly Refusal[]): Promise<void>
}

/** What is sent (after GET, a query without its `?`), and the field, code and part of the detail of the error. */
export type Refusal = readonly [sent: unknown, attr: string | null, code?: string | undefined, detail?: RegExp | string]

export interface CallOptions {
  /** Null sends no Authorization header. */
  readonly key?: string | null
  /** An object, or JSON text that is sent unchanged. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
export type Reply = { status: number; headers: Headers; text: string; body: any }

export interface StartManagementOptions extends Partial<Pick<ManagementDeps, 'liveEvents' | 'rejects'>> {
  readonly log?: Partial<ManagementDeps['log']>
  /** Settings, by name. */
  readonly publicUrl?: string
  readonly trustedProxies?: string
  readonly operatorsNeedKey?: boolean
  readonly events?: Partial<ManagementDeps['events']>
  readonly geoip?: DecideServiceOptions['geoip']
  readonly otherRoutes?: readonly Route[]
  /** Gets a line for each request that fails because the state is unavailable. */
  readonly logger?: Logger
  /** The message with which encrypted payloads are refused. */
  readonly missingKeyReason?: string
  /**
   * Wraps the store, for example to make it fail, or returns another one on the same folder, which the caller closes.
   */
  readonly wrap?: (store: ManagementStore, dataFolder: string) => ManagementStore | Promise<ManagementStore>
  /** Runs before each call of these methods of the store. */
  readonly before?: BeforeCalls
}

type BeforeCalls = { readonly [M in keyof ManagementStore]?: (...sent: Parameters<ManagementStore[M]>) => unknown }

function runBefore(calls: BeforeCalls, store: ManagementStore): ManagementStore {
  const watched: Record<string, unknown> = {}
  for (const name of Object.keys(calls) as (keyof ManagementStore)[])
    watched[name] = async (...sent: never[]) => {
      await (calls[name] as (...sent: never[]) => unknown)(...sent)
      return (store[name] as (...sent: never[]) => unknown)(...sent)
    }
  return { ...store, ...watched }
}

/** The statuses of errors that are not 400. */
const statusOf: Readonly<Record<string, number>> = {
  ...{ not_found: 404, conflict: 409, too_many_import_jobs: 409, project_drops_old_events: 409 },
  ...{ email_taken: 409, last_admin: 409 },
  ...{ payload_too_large: 413, too_many_person_repairs: 429 },
  ...{ event_store_timeout: 503, event_store_unavailable: 503 },
}

/**
 * Checks that an incremental read of definitions gives the same as a full read. A write that does not raise the version
 * of what it changes therefore fails its test.
 */
function comparedWithWhole(loadChanges: DefinitionStore['loadChanges']): DefinitionStore['loadChanges'] {
  // Member counts change without a new version, and are not read here.
  const compared = ({ projects }: DefinitionChanges) =>
    projects.map(project => ({
      ...project,
      cohorts: project.cohorts.map(cohort => ({ ...cohort, memberCount: null, countedAtMs: null })),
    }))
  return async (revision, held) => {
    const changes = await loadChanges(revision, held)
    if (held === undefined) return changes
    const whole = await loadChanges(revision)
    if (whole.revision === changes.revision) assert.deepEqual(compared(changes), compared(whole))
    return changes
  }
}

function once<Value extends object>(make: () => Value): () => Value {
  let made: Value | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Starts a server with project 1 (`phc_first`) and `allScopesKey`. */
export async function startManagement(t: Scope, options: StartManagementOptions = {}): Promise<ManagementApi> {
  const dataFolder = tempDir(t)
  await writeNewState(dataFolder)
  const opened = new AsyncDisposableStack()
  const open = <Store extends { close(): unknown }>(store: Store): Store => {
    opened.defer(async () => {
      await store.close()
    })
    return store
  }
  const store = open(openSqliteManagementStore({ dataFolder, access: 'write' }))
  // Few tests need these, and opening them costs a third of a start.
  const ownerId = 'test'
  const claimedStore = once(async () => {
    const chunks = open(openSqliteChunkStore({ dataFolder }))
    await chunks.claimPosition('main', ownerId)
    return chunks
  })
  const hashKeys = once(() => open(openHashKeyWriter({ dataFolder })))
  const addMissingHashKeys: ManagementApi['addMissingHashKeys'] = (...sent) => hashKeys().addMissingHashKeys(...sent)
  const wrapped = runBefore(options.before ?? {}, (await options.wrap?.(store, dataFolder)) ?? store)
  const subjects = open(openSqliteSubjectStore({ dataFolder }))
  const loadChanges = comparedWithWhole(open(openDefinitionLoader({ dataFolder })).loadChanges)
  const keyFile = join(dataFolder, 'encryption.key')
  const keys = openEncryptionKeys({
    given: [],
    keyFile,
    missingKeyReason: options.missingKeyReason ?? null,
    randomBytes,
  })
  const stores = {
    management: { ...wrapped, loadChanges, addMissingHashKeys },
    state: {
      subjects,
      definitions: open(openSqliteDefinitionStore({ dataFolder, loadChanges })),
      definitionPollMs: 60_000,
      loginWritesAtOnceMax: 64,
    },
    eventStore: { ...noEvents, ...options.events },
    logReader: { ...emptyLog, ...options.log },
    payloadCipher: createPayloadCipher(keys, randomBytes),
  }

  const clock = fixedClock('2026-05-01T12:00:00.000Z')
  let uuidCount = 0
  let randomCount = 0
  const context = testContext({
    clock,
    monotonicNowMs: () => clock.nowMs(),
    newUuid: () => `00000000-0000-4000-8000-${String(++uuidCount).padStart(12, '0')}`,
    randomBytes: size => {
      randomCount++
      return Uint8Array.from({ length: size }, (_, index) => (index * 7 + uuidCount + randomCount) % 256)
    },
    geoip: options.geoip ?? null,
    ...(options.logger && { logger: options.logger }),
    settings: {
      PENNON_TRUSTED_PROXIES: options.trustedProxies ?? 'loopback',
      PENNON_PUBLIC_URL: options.publicUrl ?? '',
      PENNON_METRICS_REQUIRE_KEY: String(options.operatorsNeedKey ?? false),
    },
  })
  const counters = startFrontCounters(context, stores.management, opened, { keyUsesDelayMs: 1 })
  const served: number[] = []
  const given = testParts(context, opened, { stores, ...(options.liveEvents && { liveEvents: options.liveEvents }) })
  const definitions = await startServingDefinitions(context, given.stores, counters, () => undefined, opened)
  const parts = {
    ...given,
    counters,
    definitions: {
      ...definitions,
      catchUp: (revision: number) => {
        served.push(revision)
        return definitions.catchUp(revision)
      },
    },
  }
  const { decide } = composeFlags(parts)
  const rejects = options.rejects ?? { replay: async () => ({ results: [], next: null, remaining: 0 }) }
  const otherRoutes = options.otherRoutes ?? []
  const { api: routes, routes: all } = composeManagement(parts, {
    ...{ decide, rejects, version: '1.2.3', otherRoutes },
  })
  const { url } = await (otherRoutes.length > 0
    ? serveParts(t, parts, [...all, ...otherRoutes], opened)
    : serveTogether(t, parts, all, opened))

  async function addKey(scopes: readonly string[], scopedProjectIds: readonly number[] = [], secret?: string) {
    const value = secret ?? `phx_${++uuidCount}`
    await store.createPersonalKey(
      {
        id: `00000000-0000-4000-9000-${String(++uuidCount).padStart(12, '0')}`,
        label: scopes.join(' '),
        scopes,
        scopedProjectIds,
        lastUsedAtMs: null,
        secretHash: createHash('sha256').update(value).digest('hex'),
      },
      aChange('Test', clock.nowMs()),
    )
    return value
  }
  await addKey(['*'], [], allScopesKey)

  async function call(method: string, path: string, { key = allScopesKey, body, ...rest }: CallOptions = {}) {
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...rest.headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(rest.signal === undefined ? {} : { signal: rest.signal }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: text === '' ? null : JSON.parse(text) }
  }
  /** The status in the description of the route with the fewest parameters. Undefined for a route of the test itself. */
  function describedStatus(method: string, path: string): number | undefined {
    const matching = routes.filter(
      route => route.method === method && new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+')}/*$`).test(path),
    )
    const [route] = matching.toSorted((a, b) => a.path.split(':').length - b.path.split(':').length)
    return route?.operation.success.status
  }

  async function send(method: string, path: string, body?: unknown, key?: string): Promise<Reply['body']> {
    const reply = await call(method, path, { body, ...(key !== undefined && { key }) })
    const what = `${method} ${path}: ${reply.text.slice(0, 1_000)}`
    const expected = describedStatus(method, path.replace(/\?.*$/s, ''))
    if (expected === undefined) assert.ok(reply.status < 300, what)
    else assert.equal(reply.status, expected, what)
    return reply.body
  }
  async function refuses(method: string, path: string, ...refusals: readonly Refusal[]): Promise<void> {
    for (const [sent, attr, code, detail = ''] of refusals) {
      const [address, body] = method === 'GET' ? [`${path}?${sent}`, undefined] : [path, sent]
      const reply = await call(method, address, { body })
      const what = `${method} ${address.slice(0, 200)} ${JSON.stringify(body)?.slice(0, 500)}: ${reply.text.slice(0, 500)}`
      const status = statusOf[code ?? ''] ?? 400
      assert.deepEqual([reply.status, reply.body.attr, code && reply.body.code], [status, attr, code], what)
      assert.deepEqual(Object.keys(reply.body).slice(0, 4), ['type', 'code', 'detail', 'attr'])
      if (status === 400) assert.equal(reply.body.type, 'validation_error')
      if (typeof detail === 'string') assert.ok(reply.body.detail.includes(detail), what)
      else assert.match(reply.body.detail, detail)
    }
  }
  async function pages(path: string): Promise<Reply['body'][][]> {
    const found: Reply['body'][][] = []
    for (let next: string | null = path; next !== null; ) {
      const body: Reply['body'] = await send('GET', next)
      found.push(body.results)
      next = body.next === null ? null : body.next.slice(body.next.indexOf('/api/'))
    }
    return found
  }
  await send('POST', '/api/projects/', { name: 'First', api_token: 'phc_first' })

  return {
    refuses,
    pages,
    get: (path, key) => send('GET', path, undefined, key),
    post: (path, body, key) => send('POST', path, body, key),
    patch: (path, body, key) => send('PATCH', path, body, key),
    url,
    management: store,
    addMissingHashKeys,
    clock,
    routes,
    served,
    addKey,
    call,
    async commit(changes, offset = 0) {
      const position = { stream: 'main', ownerId, offset, committedAtMs: clock.nowMs() } as const
      const chunks = await claimedStore()
      assert.equal(await chunks.commitChunk(chunkChanges(changes), position), 'committed')
    },
  }
}

/** As `startManagement`, for a scope that has no end of its own: the caller closes it. */
export async function startClosableManagement(options: StartManagementOptions = {}) {
  const ends: Parameters<Scope['after']>[0][] = []
  const api = await startManagement({ after: end => void ends.push(end) }, options)
  const close = async () => {
    for (const end of ends) await end()
  }
  return { ...api, close }
}

const none = { count: 0, persons: 0, firstMs: null, lastMs: null }
const emptyLog: ManagementDeps['log'] = {
  listStreams: async () => [
    { stream: 'main', traffic: 'live' },
    { stream: 'historical', traffic: 'import' },
  ],
  readStreamStatus: async () => ({ endOffset: 0, appendedAtMs: null }),
  listLosses: async () => [],
}
const noEvents: ManagementDeps['events'] = {
  findFirstEventTime: async () => null,
  runSql: async () => ok({ columns: [], types: [], rows: [], rowCountMax: 100, hasMore: false }),
  forwardSql: async () => ok({ headers: {}, body: (async function* () {})() }),
  countTrend: async () => [],
  countExposures: async ({ variants }) => ({ firsts: variants.map(() => []), multiple: 0 }),
  countFlagUsage: async () => ({ values: [], rest: null }),
  listEvents: async () => ({ events: [], next: null }),
  findEvent: async () => null,
  countImportedRows: async () => ({ rows: 0, idBuckets: [] }),
  listImportedCounts: async () => [],
  findImportedRows: async () => [],
  openEventExport: async () => ({ eventCountMax: 0, batches: (async function* () {})() }),
  listRejected: async () => ({ rejected: [], next: null }),
  listRecordings: async () => ({ recordings: [], next: null }),
  findRecording: async () => null,
  listEventNames: async () => ({ count: 0, results: [] }),
  listPropertyNames: async () => ({ count: 0, results: [] }),
  listPropertyValues: async () => ({ results: [], valueCount: 0, isSample: false }),
  countSurveyEvents: async () => ({ shown: none, dismissed: none, sent: none, personsDismissedAndSent: 0 }),
}
