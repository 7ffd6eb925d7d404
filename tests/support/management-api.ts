// The private API over real HTTP on a real state file. Events come from a store that each test scripts: what the store
// itself does is held to its own contract (`tests/ports/event-store.contract.ts`).

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openEncryptionKeys } from '#adapters/encryption-keys/encryption-keys.ts'
import { openDefinitionLoader } from '#adapters/sqlite/definition-loader.ts'
import { openHashKeyWriter } from '#adapters/sqlite/hash-key-writer.ts'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { err } from '#core/result.ts'
import { createAddressBase } from '#http/management/kit/address-base.ts'
import { createAuthorizer } from '#http/management/kit/authenticate.ts'
import type { ManagementDeps } from '#http/management/kit/deps.ts'
import type { ManagementRoute } from '#http/management/kit/endpoint.ts'
import { openApiRoutes } from '#http/management/kit/openapi.ts'
import { managementRoutes } from '#http/management/management-routes.ts'
import { createHttpServer } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import { createStateAwayNote } from '#http/shared/state-away.ts'
import type { ChunkChanges } from '#ports/chunk-store.ts'
import type { DefinitionChanges, DefinitionStore } from '#ports/definition-store.ts'
import type { HashKeyOverrideWriter } from '#ports/hash-key-overrides.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { createDecideService, type DecideServiceOptions } from '#services/flags/decide.ts'
import { startDefinitionCache } from '#services/flags/definition-cache.ts'
import { createPayloadCipher } from '#services/manage/payload-cipher.ts'
import { createPersonalKeyCheck } from '#services/manage/personal-key-check.ts'
import { startPersonalKeyUses } from '#services/manage/personal-key-uses.ts'
import { type Logger, silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import { endServer } from './end-server.ts'
import { fixedClock } from './fixed-clock.ts'
import { chunkChanges } from './state-builders.ts'
import { tempDir } from './temp-dir.ts'

/** Has all scopes. */
export const allScopesKey = 'phx_all-scopes'

export interface ManagementApi {
  readonly url: string
  readonly management: ManagementStore
  readonly keepHashKey: HashKeyOverrideWriter['keepHashKey']
  readonly clock: ReturnType<typeof fixedClock>
  readonly routes: readonly ManagementRoute[]
  /** Revisions that a write waited for, in order. */
  readonly served: readonly number[]
  commit(changes: Partial<ChunkChanges>): Promise<void>
  /** A new key with these scopes. */
  addKey(scopes: readonly string[], scopedProjectIds?: readonly number[]): Promise<string>
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
}

export interface CallOptions {
  /** Null for no Authorization header. */
  readonly key?: string | null
  /** An object, or JSON text as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

// biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
export type Reply = { status: number; headers: Headers; text: string; body: any }

export interface StartManagementOptions
  extends Partial<Pick<ManagementDeps, 'logStatus' | 'logLosses' | 'liveEvents' | 'rejects'>> {
  /** As the settings of these names. */
  readonly publicUrl?: string
  readonly trustedProxies?: string
  readonly operatorsNeedKey?: boolean
  readonly events?: Partial<ManagementDeps['events']>
  readonly geoip?: DecideServiceOptions['geoip']
  readonly otherRoutes?: readonly Route[]
  /** Is told of requests that fail because the state is away. */
  readonly logger?: Logger
  /** Encrypted payloads are refused with this line. */
  readonly whyNoEncryptionKey?: string
  /** Wraps the store, for failures; or gives another one on the same folder, which the caller closes. */
  readonly wrap?: (store: ManagementStore, dataFolder: string) => ManagementStore | Promise<ManagementStore>
}

/**
 * Whatever the private API wrote, what is taken over from earlier definitions is what a whole read gives: a write that does
 * not raise the version of what it changes fails the test that made it.
 */
function comparedWithWhole(loadChanges: DefinitionStore['loadChanges']): DefinitionStore['loadChanges'] {
  // Counts of members change without a version, and nobody reads them here.
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

/** A server with project 1 (`phc_first`) and `allScopesKey`. */
export async function startManagement(t: TestContext, options: StartManagementOptions = {}): Promise<ManagementApi> {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const store = openSqliteManagementStore({ dataFolder, access: 'write' })
  const chunkStore = openSqliteChunkStore({ dataFolder })
  const clock = fixedClock('2026-05-01T12:00:00.000Z')
  const management = (await options.wrap?.(store, dataFolder)) ?? store
  const metrics = createMetrics()
  const keyUses = startPersonalKeyUses({ management, clock, logger: silentLogger(), metrics, delayMs: 1 })
  const keyCheck = createPersonalKeyCheck({ management, clock, uses: keyUses })
  const noteStateAway = createStateAwayNote(options.logger ?? silentLogger(), () => clock.nowMs())
  const served: number[] = []
  const loader = openDefinitionLoader({ dataFolder })
  const definitionStore = openSqliteDefinitionStore({ dataFolder, loadChanges: comparedWithWhole(loader.loadChanges) })
  const definitions = await startDefinitionCache({
    store: definitionStore,
    compile: compileProject,
    logger: silentLogger(),
    pollMs: 60_000,
  })
  const subjects = openSqliteSubjectStore({ dataFolder })
  const hashKeys = openHashKeyWriter({ dataFolder })
  const decide = createDecideService({
    findProject: token => definitions.findByToken(token),
    subjects,
    hashKeys: { findHashKeys: subjects.findHashKeys, keepHashKey: hashKeys.keepHashKey },
    geoip: options.geoip ?? null,
    writesAtOnceMax: 64,
    countFlagRequest: () => undefined,
    logger: silentLogger(),
    metrics,
  })
  const keyFile = join(dataFolder, 'encryption.key')
  const keys = openEncryptionKeys({ given: [], keyFile, whyNotMade: options.whyNoEncryptionKey ?? null, randomBytes })
  let uuidCount = 0
  const proxies = parseTrustedProxies(options.trustedProxies ?? 'loopback')
  assert.ok(proxies.ok)
  const deps: ManagementDeps = {
    addressBase: createAddressBase(options.publicUrl ?? null, proxies.value),
    management,
    events: { ...noEvents, ...options.events },
    logStatus: options.logStatus ?? (async () => ({ endOffset: 0, appendedAtMs: null })),
    logLosses: options.logLosses ?? (async () => []),
    definitionsReady: async revision => {
      served.push(revision)
      await definitions.catchUp(revision)
    },
    servedProject: projectId => definitions.findById(projectId),
    decide,
    rejects: options.rejects ?? { replay: async () => ({ results: [], next: null, remaining: 0 }) },
    liveEvents: options.liveEvents ?? { enter: async () => err('closed') },
    keyCheck,
    payloadCipher: createPayloadCipher(keys, randomBytes),
    clock,
    newUuid: () => `00000000-0000-4000-8000-${String(++uuidCount).padStart(12, '0')}`,
    randomBytes: size => Uint8Array.from({ length: size }, (_, index) => (index * 7 + uuidCount) % 256),
    noteStateAway,
    logger: silentLogger(),
  }
  const routes = managementRoutes(deps)
  const otherRoutes = options.otherRoutes ?? []
  const server = createHttpServer({
    routes: [...routes, ...otherRoutes, ...openApiRoutes({ version: '1.2.3', managementRoutes: routes, otherRoutes })],
    logger: silentLogger(),
    metrics,
    authorize: createAuthorizer({
      keyCheck,
      noteStateAway,
      operatorsNeedKey: options.operatorsNeedKey ?? false,
    }),
  })
  const url = await server.listen({ port: 0, host: '127.0.0.1' })
  const { ownerId, offset } = { ownerId: 'test', offset: 0 }
  await chunkStore.claimPosition('main', ownerId)
  t.after(async () => {
    await endServer(server)
    await keyUses.close()
    definitions.close()
    await definitionStore.close()
    await loader.close()
    subjects.close()
    hashKeys.close()
    await chunkStore.close()
    await store.close()
  })

  async function addKey(scopes: readonly string[], scopedProjectIds: readonly number[] = [], secret?: string) {
    const value = secret ?? `phx_${++uuidCount}`
    await store.createPersonalKey({
      id: `00000000-0000-4000-9000-${String(++uuidCount).padStart(12, '0')}`,
      label: scopes.join(' '),
      scopes,
      scopedProjectIds,
      createdAtMs: clock.nowMs(),
      lastUsedAtMs: null,
      secretHash: createHash('sha256').update(value).digest('hex'),
    })
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
  const first = await call('POST', '/api/projects/', { body: { name: 'First', api_token: 'phc_first' } })
  assert.equal(first.status, 201, first.text)

  return {
    url,
    management: store,
    keepHashKey: hashKeys.keepHashKey,
    clock,
    routes,
    served,
    addKey,
    call,
    async commit(changes) {
      const position = { lane: 'main', ownerId, offset, committedAtMs: clock.nowMs() } as const
      assert.equal(await chunkStore.commitChunk(chunkChanges(changes), position), 'committed')
    },
  }
}

const none = { count: 0, persons: 0, firstMs: null, lastMs: null }
const noEvents: ManagementDeps['events'] = {
  listEvents: async () => ({ events: [], next: null }),
  findEvent: async () => null,
  listRejected: async () => ({ rejected: [], next: null }),
  listReplays: async () => ({ replays: [], next: null }),
  findReplay: async () => null,
  listEventNames: async () => ({ count: 0, results: [] }),
  listPropertyNames: async () => ({ count: 0, results: [] }),
  countSurveyEvents: async () => ({ shown: none, dismissed: none, sent: none, personsDismissedAndSent: 0 }),
}
