// The evaluation endpoints over a real server, with flags that a test writes down and a subject store of its own.

import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { createDecodeThreads, decodeThreadDefaults } from '#adapters/decode-threads/decode-threads.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { normalizeFilters } from '#core/flags/definitions/normalize-filters.ts'
import { emptyDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { type CompiledProject, compileProject } from '#core/flags/evaluation/compile-project.ts'
import type { GroupType } from '#core/groups/group.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { decideRoutes } from '#http/handlers/decide.ts'
import { createHttpServer } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import type { Clock } from '#ports/clock.ts'
import type { SubjectStore } from '#ports/subject-store.ts'
import { createDecideService, type DecideService, type DecideServiceOptions } from '#services/flags/decide.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import {
  type DecodeJob,
  type DecodeOutcome,
  decodePool,
  decodeThreadEntry,
  isUrgentDecodeJob,
} from '#wire/threads/decode-thread.ts'
import { endServer } from './end-server.ts'
import { fixedClock } from './fixed-clock.ts'
import { aCohort, aNewFlag, aProject } from './state-builders.ts'

/** A stored flag out of the snake_case JSON that vectors and the private API use; absent fields are the defaults. */
export function flagFromJson(json: JsonObject): Flag {
  const filters = (json.filters ?? {}) as JsonObject
  return {
    ...aNewFlag({ key: json.key as string, filters: normalizeFilters(filters, json.rollout_percentage) }),
    id: (json.id ?? 1) as number,
    version: (json.version ?? 1) as number,
    active: (json.active ?? true) as boolean,
    deleted: (json.deleted ?? false) as boolean,
    ensureExperienceContinuity: (json.ensure_experience_continuity ?? false) as boolean,
    bucketingIdentifier: (json.bucketing_identifier ?? null) as string | null,
    evaluationRuntime: (json.evaluation_runtime ?? 'all') as string,
    evaluationContexts: (json.evaluation_contexts ?? []) as string[],
    hasEncryptedPayloads: (json.has_encrypted_payloads ?? false) as boolean,
    hasExperiment: false,
    updatedAtMs: 0,
  }
}

export interface TestDefinitions {
  readonly flags: readonly JsonObject[]
  readonly project?: Partial<Project>
  /** Index as text → name. */
  readonly groupTypes?: { readonly [index: string]: string }
  /** Id as text → `filters`, or `{"is_static": true}`. */
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

export const emptyHashKeys: DecideServiceOptions['hashKeys'] = {
  findHashKeys: () => null,
  keepHashKey: async () => [],
}

export interface DecideAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; empty when it is none. */
  readonly json: JsonObject
}

export interface DecideServerOptions
  extends TestDefinitions,
    Partial<Pick<DecideServiceOptions, 'guard' | 'slices' | 'geoip' | 'hashKeys'>> {
  readonly subjects?: SubjectStore
  readonly now?: string
  /** Other routes over the same service. */
  readonly otherRoutes?: (deps: { decide: DecideService; clock: Clock }) => readonly Route[]
  readonly isOverRecordingQuota?: (project: Project) => boolean
  readonly threadEntry?: URL
  /** Jobs beyond what the threads work on; 0 with `threadCount` 0: every job is refused. */
  readonly decodeThreads?: { readonly threadCount: number; readonly queuedJobCountMax: number }
}

export type DecideServer = Awaited<ReturnType<typeof startDecideServer>>

export async function startDecideServer(t: Pick<TestContext, 'after'>, options: DecideServerOptions) {
  let compiled = compileTestProject(options)
  const clock = fixedClock(options.now ?? '2026-01-15T12:00:00Z')
  const metrics = createMetrics()
  const counted: number[] = []
  const { isOverRecordingQuota = () => false } = options
  const decide = createDecideService({
    findProject: apiKey => (apiKey === compiled.project.apiToken ? compiled : null),
    subjects: options.subjects ?? emptySubjects,
    hashKeys: options.hashKeys ?? emptyHashKeys,
    geoip: options.geoip ?? null,
    guard: options.guard,
    slices: options.slices,
    writesAtOnceMax: 64,
    countFlagRequest: projectId => counted.push(projectId),
    logger: silentLogger(),
    metrics,
  })
  const decodeThreads = createDecodeThreads<DecodeJob, DecodeOutcome>({
    ...decodeThreadDefaults,
    ...options.decodeThreads,
    entry: options.threadEntry ?? decodeThreadEntry,
    isUrgent: isUrgentDecodeJob,
    logger: silentLogger(),
    onRestart: () => metrics.childRestarts.inc({ process: 'decode-thread' }),
  })
  const threadJobs: DecodeJob[] = []
  const recording = {
    run: (job: DecodeJob, bytes: number, buffers: ArrayBuffer[]) => {
      threadJobs.push(job)
      return decodeThreads.run(job, bytes, buffers)
    },
  }
  const server = createHttpServer({
    routes: [
      ...decideRoutes({
        decide,
        decodeThreads: decodePool(recording),
        trustedProxies: { trusts: () => false },
        clock,
        isOverRecordingQuota,
        newUuid: randomUUID,
      }),
      ...(options.otherRoutes?.({ decide, clock }) ?? []),
    ],
    logger: silentLogger(),
    metrics,
    authorize: async () => false,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  t.after(async () => {
    await endServer(server)
    await decodeThreads.close()
  })
  const base = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`

  return {
    base,
    /** Project ids whose flag requests were counted. */
    counted,
    metrics,
    /** What was handed to a decode thread. */
    threadJobs,
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
