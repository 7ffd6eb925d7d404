// The flags feature of a front over a real server, with definitions and a subject store that the test provides.

import type { TestContext } from 'node:test'
import { composeChangeHub, type FrontDefinitions } from '#compose/front/definitions.ts'
import { composeFlags } from '#compose/front/flags.ts'
import type { FrontParts } from '#compose/front/parts.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { normalizeFilters } from '#core/flags/definitions/normalize-filters.ts'
import { type CompiledProject, compileProject } from '#core/flags/evaluation/compile-project.ts'
import type { GroupType } from '#core/groups/group.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { SubjectStore } from '#ports/state/subject-store.ts'
import type { DecideServiceOptions } from '#services/flags/decide.ts'
import { decodeFlag, type UpdateFlagJson, updateFlagSchema } from '#wire/management/flags/flags.ts'
import { assertKnownFields } from '../conformance/compare.ts'
import { fixedClock } from './fixed-clock.ts'
import { serveParts, testContext, testDecodePool, testParts } from './front-parts.ts'
import { aCohort, aNewFlag, aProject, emptyDefinitions } from './values.ts'

const flagFields = ['id', ...Object.keys(updateFlagSchema.properties)]

/** A stored flag from the snake_case JSON of vectors and the private API; absent fields get their defaults. */
export function flagFromJson(json: JsonObject): Flag {
  assertKnownFields(json, 'a flag', flagFields)
  const filters = (json.filters ?? {}) as JsonObject
  return {
    ...aNewFlag(),
    deleted: false,
    ...decodeFlag(json as UpdateFlagJson),
    filters: normalizeFilters(filters, json.rollout_percentage),
    id: (json.id ?? 1) as number,
    version: (json.version ?? 1) as number,
    hasExperiment: false,
    createdAtMs: 0,
    updatedAtMs: 0,
    conditionsSinceMs: 0,
    createdBy: null,
  }
}

export interface TestDefinitions {
  readonly flags: readonly JsonObject[]
  readonly project?: Partial<Project>
  /** Index (as text) → name. */
  readonly groupTypes?: { readonly [index: string]: string }
  /** Id (as text) → `filters`, or `{"is_static": true}`. */
  readonly cohorts?: { readonly [id: string]: JsonObject }
}

export function compileTestProject({
  flags,
  project = {},
  groupTypes = {},
  cohorts = {},
}: TestDefinitions): CompiledProject {
  const types: GroupType[] = Object.entries(groupTypes).map(([index, name]) => {
    return { projectId: 1, index: Number(index), name }
  })
  const definitions = {
    ...emptyDefinitions(aProject({ apiToken: 'phc_test', propertyMatchingVersion: 1, ...project }), 1),
    flags: flags.map(flagFromJson).filter(flag => !flag.deleted),
    groupTypes: types,
    cohorts: Object.entries(cohorts).map(([id, { is_static = false, ...filters }]) =>
      aCohort({ id: Number(id), isStatic: is_static === true, filters }),
    ),
  }
  return compileProject(definitions)
}

export const emptySubjects: SubjectStore = {
  findPerson: () => null,
  findStaticCohorts: () => new Set(),
  findGroup: () => null,
}

export const noVisitors: CookielessVisitors = { countIdentifies: () => 0 }

export const emptyHashKeys: DecideServiceOptions['hashKeys'] = {
  findHashKeys: () => null,
  addMissingHashKeys: async () => [],
}

export interface DecideAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; an empty object when it is not JSON. */
  readonly json: JsonObject
}

export interface DecideServerOptions
  extends TestDefinitions,
    Partial<Pick<DecideServiceOptions, 'guard' | 'slices' | 'geoip' | 'hashKeys'>> {
  readonly subjects?: SubjectStore
  readonly visitors?: CookielessVisitors
  readonly salts?: Pick<FrontParts['salts'], 'saltOf'>
  /** `PENNON_TRUSTED_PROXIES`; none by default. */
  readonly trustedProxies?: string
  readonly now?: string
  /** Replaces the look-up of the one project. */
  readonly findProject?: FrontDefinitions['findProject']
  /** Whether the change stream accepts another reader; by default, its own limits decide. */
  readonly hasCapacity?: boolean
  readonly isOverRecordingQuota?: (project: Project) => boolean
  readonly threadEntry?: URL
  /** `queuedJobCountMax` limits the jobs that wait for a thread. With both 0, every job is refused. */
  readonly decodeThreads?: { readonly threadCount: number; readonly queuedJobCountMax: number }
}

export type DecideServer = Awaited<ReturnType<typeof startDecideServer>>

/** Starts the flags feature for one project with the test's definitions. */
export async function startDecideServer(t: Pick<TestContext, 'after'>, options: DecideServerOptions) {
  let compiled = compileTestProject(options)
  const context = testContext({
    clock: fixedClock(options.now ?? '2026-01-15T12:00:00Z'),
    geoip: options.geoip ?? null,
    settings: { PENNON_TRUSTED_PROXIES: options.trustedProxies ?? 'none' },
  })
  const counted: number[] = []
  let lookCount = 0
  const { isOverRecordingQuota = () => false, subjects = emptySubjects, hashKeys = emptyHashKeys } = options
  const opened = new AsyncDisposableStack()
  const pool = testDecodePool(context, opened, {
    overrides: { ...options.decodeThreads, ...(options.threadEntry && { entry: options.threadEntry }) },
  })
  const threadJobs: unknown[] = []
  const changes = composeChangeHub(context)
  const parts = testParts(context, opened, {
    definitions: {
      findProject: options.findProject ?? (token => (token === compiled.project.apiToken ? compiled : null)),
      lookForChanges: async () => void lookCount++,
      changes: { ...changes, hasCapacity: projectId => options.hasCapacity ?? changes.hasCapacity(projectId) },
    },
    stores: {
      state: {
        subjects: { ...(options.visitors ?? noVisitors), ...subjects, findHashKeys: hashKeys.findHashKeys },
        loginWritesAtOnceMax: 64,
      },
      management: { addMissingHashKeys: hashKeys.addMissingHashKeys },
    },
    ...(options.salts && { salts: options.salts }),
    counters: {
      flagRequests: { count: projectId => void counted.push(projectId) },
      eventQuotas: { isOverQuota: (project, resource) => resource === 'recordings' && isOverRecordingQuota(project) },
    },
    decodeThreads: {
      run: (kind, job, ...rest) => {
        threadJobs.push(job)
        return pool.run(kind, job, ...rest)
      },
    },
  })
  const { guard, slices } = options
  const { routes } = composeFlags(parts, { ...(guard && { guard }), ...(slices && { slices }) })
  const { url: base } = await serveParts(t, parts, routes, opened)

  return {
    base,
    /** The project served initially. */
    compiled,
    /** The project id of each counted flag request. */
    counted,
    metrics: context.metrics,
    /** The jobs that were passed to a decode thread. */
    threadJobs,
    /** How often the front has checked for changes by other processes. */
    looks: () => lookCount,
    serve: (definitions: TestDefinitions) => {
      compiled = compileTestProject(definitions)
    },
    post: (path: string, body: JsonValue, headers: Record<string, string> = {}) =>
      call(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    call,
  }

  async function call(path: string, init: RequestInit): Promise<DecideAnswer> {
    const response = await fetch(base + path, { redirect: 'manual', ...init })
    const text = await response.text()
    let json: JsonObject = {}
    try {
      json = JSON.parse(text) as JsonObject
    } catch {
      json = {}
    }
    return { status: response.status, headers: response.headers, text, json }
  }
}
