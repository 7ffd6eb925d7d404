// An endpoint of the private API: its input, its answer and its handler. Routes and the OpenAPI document are both
// derived from it, so they cannot drift apart. Authorization runs first (`authenticate.ts`).

import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import type { Change } from '#core/author.ts'
import type { JsonObject } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { PostHogFields } from '#wire/management/posthog-fields.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { createDisconnectSignal } from '../../bodies/disconnect-signal.ts'
import type { Route, RouteGroup } from '../../shared/route.ts'
import type { LogStateOutage } from '../../shared/state-outage.ts'
import {
  type Answer,
  changedAtOnce,
  createNotFoundError,
  createPermissionDeniedError,
  refusal,
  stateUnavailable,
} from './answers.ts'
import { type Caller, isLimitedToProjects, mayUseProject, readCaller } from './authenticate.ts'
import { type GetBaseUrl, rememberBaseUrl } from './base-url.ts'
import { type QuerySpec, type QueryValues, readQueryParams } from './query-params.ts'
import { createBodyParser } from './request-json.ts'
import { findCrossSiteError } from './session-cookie.ts'

/** Maximum bytes of a body; the largest flags are far smaller. */
export const managementBodyBytesMax = 1024 * 1024

export interface Operation {
  /** The id of the operation, the same on every path of the endpoint. */
  readonly id: string
  readonly tag: string
  readonly summary: string
  readonly query: QuerySpec
  readonly body: TSchema | null
  readonly takesForms: boolean
  readonly success: { readonly status: number; readonly schema: TSchema | null; readonly contentType: string }
}

export interface ManagementRoute extends Route {
  readonly access: 'personal_key' | 'open'
  /** `any` for an open route. */
  readonly scope: string
  readonly operation: Operation
}

export interface OpenCall<Q extends QuerySpec, B> {
  readonly request: FastifyRequest
  readonly params: Readonly<Record<string, string>>
  readonly query: QueryValues<Q>
  readonly body: B
  /** Aborted when the caller disconnects before the answer. */
  readonly signal: AbortSignal
}

export interface Call<Q extends QuerySpec, B> extends OpenCall<Q, B> {
  readonly caller: Caller
  /** The author and time of what the request writes: the caller, and now. */
  readonly change: Change
}

export interface ProjectCall<Q extends QuerySpec, B> extends Call<Q, B> {
  readonly project: Project
}

interface EndpointBase<Q extends QuerySpec, S extends TSchema> {
  /** The method and the path. The path is below the project unless the endpoint belongs to the instance. */
  readonly route: `${Route['method']} /${string}`
  readonly id: string
  /** Groups endpoints in the OpenAPI document; the first name of the path when absent. */
  readonly tag?: string
  readonly summary: string
  /** The scope that a key needs, several separated by spaces when it needs each of them; `any` for every valid key. */
  readonly scope: string
  /** See `Route`. */
  readonly scopeOfPersons?: string
  readonly query?: Q
  readonly body?: S
  /** The body may be absent, although the endpoint creates something (201). */
  readonly bodyIsOptional?: true
  /** Maximum bytes of a body; `managementBodyBytesMax` when absent, and always for JSON. */
  readonly bodyBytesMax?: number
  /** The body may also be multipart/form-data, as browsers' forms and file uploads send it. */
  readonly takesForms?: true
  /** Ignores any body, JSON or not; otherwise an endpoint without a body refuses any field. */
  readonly ignoresBody?: true
  /** Fields of PostHog's object that the body's schema lacks; every other unknown field is a 400. */
  readonly postHogFields?: PostHogFields
  /** Unknown fields that resemble no known field but have an obvious meaning, each with the right name. */
  readonly wrongNames?: Readonly<Record<string, string>>
  /** See `BodyParserOptions`. */
  readonly uniqueKeysIn?: (body: JsonObject) => string | null
  /** `contentType` is given when the answer is not JSON; `schema` then only describes the answer. */
  readonly success: { readonly status: number; readonly schema?: TSchema; readonly contentType?: string }
  /** `management` unless given. */
  readonly group?: RouteGroup
}

/** An answer that stays open; `stream` writes the response. */
export interface StreamAnswer {
  readonly stream: (reply: FastifyReply) => void
}

export interface InstanceEndpoint<Q extends QuerySpec, S extends TSchema> extends EndpointBase<Q, S> {
  /** Other paths of the same endpoint. */
  readonly aliases?: readonly string[]
  readonly handle: (call: Call<Q, Static<S>>) => Promise<Answer>
}

export interface OpenEndpoint<Q extends QuerySpec, S extends TSchema> extends Omit<EndpointBase<Q, S>, 'scope'> {
  readonly handle: (call: OpenCall<Q, Static<S>>) => Promise<Answer>
}

export interface ProjectEndpoint<Q extends QuerySpec, S extends TSchema> extends EndpointBase<Q, S> {
  /** Prefixes that end in `:projectId`; `projectPrefixes` when absent. */
  readonly prefixes?: readonly string[]
  readonly handle: (call: ProjectCall<Q, Static<S>>) => Promise<Answer | StreamAnswer>
}

export interface EndpointDeps {
  readonly clock: Clock
  readonly addressBase: GetBaseUrl
  readonly management: Pick<ProjectStore, 'findProject' | 'listProjects'>
  readonly noteStateAway: LogStateOutage
}

export const projectPrefixes = ['/api/projects/:projectId', '/api/environments/:projectId'] as const

export function instanceRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: EndpointDeps,
  endpoint: InstanceEndpoint<Q, S>,
): ManagementRoute[] {
  const read = createRequestReader(endpoint)
  return [parsePath(endpoint), ...(endpoint.aliases ?? [])].map(path =>
    toRoute(deps, endpoint, path, async (request, signal) => {
      const call = await read(request, signal)
      return 'status' in call ? call : endpoint.handle(addCaller(deps, call))
    }),
  )
}

/** An endpoint for pages of this instance, before anyone has signed in. */
export function openRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: EndpointDeps,
  endpoint: OpenEndpoint<Q, S>,
): ManagementRoute[] {
  const described = { ...endpoint, scope: 'any' }
  const read = createRequestReader(described)
  const route = toRoute(deps, described, parsePath(endpoint), async (request, signal) => {
    const call = await read(request, signal)
    if ('status' in call) return call
    const crossSite = findCrossSiteError(request, deps.addressBase)
    return crossSite === null ? endpoint.handle(call) : refusal(crossSite)
  })
  return [{ ...route, access: 'open' }]
}

/** The endpoint under every prefix, called with the project: 404 if it is unknown, 403 if the key may not see it. */
export function projectRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: EndpointDeps,
  endpoint: ProjectEndpoint<Q, S>,
): ManagementRoute[] {
  const read = createRequestReader(endpoint)
  return (endpoint.prefixes ?? projectPrefixes).map(prefix =>
    toRoute(deps, endpoint, `${prefix}${parsePath(endpoint)}`, async (request, signal) => {
      const caller = readCaller(request)
      const project = await findRequestedProject(deps.management, caller, request)
      if (project === null) return refusal(noSuchProject)
      if (!mayUseProject(caller, project.id))
        return refusal(createPermissionDeniedError('This API key has no access to this project.'))
      const call = await read(request, signal)
      return 'status' in call ? call : endpoint.handle({ ...addCaller(deps, call), project })
    }),
  )
}

const noSuchProject = createNotFoundError(
  'This project does not exist. @current is the first project that this key can access.',
)

/** Finds the project that `@current` means: the first project that the key may see. */
export async function findCurrentProject(
  management: EndpointDeps['management'],
  caller: Pick<Caller, 'scopedProjectIds'>,
): Promise<Project | null> {
  for (const projectId of [...caller.scopedProjectIds].sort((a, b) => a - b)) {
    const project = await management.findProject(projectId)
    if (project !== null) return project
  }
  if (isLimitedToProjects(caller)) return null
  const { results } = await management.listProjects({ limit: 1, offset: 0 })
  return results[0] ?? null
}

function findRequestedProject(
  management: EndpointDeps['management'],
  caller: Caller,
  request: FastifyRequest,
): Promise<Project | null> {
  const { projectId } = request.params as { projectId: string }
  if (projectId === '@current') return findCurrentProject(management, caller)
  return /^\d{1,15}$/.test(projectId) ? management.findProject(Number(projectId)) : Promise.resolve(null)
}

/**
 * An empty body usually means `{}`. In a write with required fields, `{}` would report only the first missing field,
 * which is less helpful.
 */
const noBody = wireError(
  400,
  'required',
  'The request body is missing: send a JSON object that describes what to create.',
)

/** The schema for a write that needs no body: any field in the body is refused, since it would be ignored. */
const noFields = Type.Object({})

function parseMethod({ route }: { readonly route: string }): Route['method'] {
  return route.slice(0, route.indexOf(' ')) as Route['method']
}

/** The path without a final slash; '' for the project itself. */
function parsePath({ route }: { readonly route: string }): string {
  return route.slice(route.indexOf('/')).replace(/\/$/, '')
}

function addCaller<Q extends QuerySpec, B>({ clock }: EndpointDeps, call: OpenCall<Q, B>): Call<Q, B> {
  const caller = readCaller(call.request)
  const { id, label } = caller
  const email = caller.kind === 'person' ? caller.email : undefined
  const by = { id, label, ...(email !== undefined && { email }) }
  return { ...call, caller, change: { by, atMs: clock.nowMs() } }
}

function createRequestReader<Q extends QuerySpec, S extends TSchema>(endpoint: EndpointBase<Q, S>) {
  const { body: schema = noFields, postHogFields, wrongNames, uniqueKeysIn } = endpoint
  const method = parseMethod(endpoint)
  const parseBody =
    method === 'GET' || endpoint.ignoresBody === true
      ? null
      : createBodyParser(schema, endpoint.success.schema ?? null, {
          jsonBytesMax: managementBodyBytesMax,
          takesForms: endpoint.takesForms === true,
          ...(postHogFields === undefined ? {} : { postHogFields }),
          ...(wrongNames === undefined ? {} : { wrongNames }),
          ...(uniqueKeysIn === undefined ? {} : { uniqueKeysIn }),
        })
  const makesSomething = method === 'POST' && endpoint.success.status === 201
  const needsBody = makesSomething && endpoint.body !== undefined && endpoint.bodyIsOptional !== true
  return async (request: FastifyRequest, signal: AbortSignal): Promise<OpenCall<Q, Static<S>> | Answer> => {
    const query = readQueryParams(endpoint.query ?? {}, request.query as object)
    if (!query.ok) return refusal(query.error)
    if (needsBody && (request.body as Buffer).length === 0) return refusal(noBody)
    const body = await parseBody?.(request.body as Buffer, request.headers['content-type'] ?? '')
    if (body?.ok === false) return refusal(body.error)
    return {
      request,
      params: request.params as Record<string, string>,
      query: query.value as QueryValues<Q>,
      body: body?.value as Static<S>,
      signal,
    }
  }
}

function toRoute(
  deps: EndpointDeps,
  endpoint: EndpointBase<QuerySpec, TSchema>,
  path: string,
  run: (request: FastifyRequest, signal: AbortSignal) => Promise<Answer | StreamAnswer>,
): ManagementRoute {
  const contentType = endpoint.success.contentType ?? 'application/json'
  return {
    method: parseMethod(endpoint),
    path,
    access: 'personal_key',
    scope: endpoint.scope,
    ...(endpoint.scopeOfPersons !== undefined && { scopeOfPersons: endpoint.scopeOfPersons }),
    group: endpoint.group ?? 'management',
    bodyLimitBytes: endpoint.bodyBytesMax ?? managementBodyBytesMax,
    tooLarge: tooLargeError(endpoint),
    operation: {
      id: endpoint.id,
      tag:
        endpoint.tag ??
        parsePath(endpoint)
          .replace(/^\/api/, '')
          .split('/')[1]!,
      summary: endpoint.summary,
      query: endpoint.query ?? {},
      body: endpoint.body ?? null,
      takesForms: endpoint.takesForms === true,
      success: { status: endpoint.success.status, schema: endpoint.success.schema ?? null, contentType },
    },
    handler: async (request, reply) => {
      rememberBaseUrl(request, deps.addressBase)
      const gone = createDisconnectSignal(reply)
      try {
        const answered = await run(request, gone)
        if ('stream' in answered) answered.stream(reply)
        else sendAnswer(reply, answered)
      } catch (error) {
        // Not logged as a failure: the client has disconnected, which cancelled its query.
        if (gone.aborted) return sendAnswer(reply, refusal(stateUnavailable))
        if (!(error instanceof PortError)) throw error
        deps.noteStateAway(error, request)
        sendAnswer(reply, refusal(error.code === 'conflict' ? changedAtOnce : stateUnavailable))
      }
    },
  }
}

function tooLargeError(endpoint: EndpointBase<QuerySpec, TSchema>): WireError {
  const bytesMax = endpoint.bodyBytesMax ?? managementBodyBytesMax
  const remedy = ' Split the rows into several requests: PATCH adds members.'
  const detail =
    endpoint.takesForms === true
      ? `The request body is too large: a form may have at most ${bytesMax} bytes, a JSON body ${managementBodyBytesMax}.${remedy}`
      : `The request body exceeds ${bytesMax} bytes.`
  return wireError(413, 'payload_too_large', detail)
}

function sendAnswer(reply: FastifyReply, { status, json, retryAfterSeconds, setCookie }: Answer): void {
  reply.code(status)
  if (setCookie !== undefined) reply.header('set-cookie', setCookie)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (json === null) reply.send()
  else reply.header('content-type', 'application/json').send(json)
}

export interface ProjectItem<T> {
  /** The parameter of the path that names the item. */
  readonly param: string
  /** @param id the value of the parameter. */
  readonly find: (projectId: number, id: string) => Promise<T | null>
  /** The 404 when there is no such item. */
  readonly missing: WireError
}

export interface ItemCall<T, Q extends QuerySpec, B> extends ProjectCall<Q, B> {
  readonly item: T
}

export interface ItemEndpoint<T, Q extends QuerySpec, S extends TSchema>
  extends Omit<ProjectEndpoint<Q, S>, 'prefixes' | 'handle'> {
  readonly handle: (call: ItemCall<T, Q, Static<S>>) => Promise<Answer>
}

export function itemRoutes<T, Q extends QuerySpec, S extends TSchema>(
  deps: EndpointDeps,
  { param, find, missing }: ProjectItem<T>,
  endpoint: ItemEndpoint<T, Q, S>,
): ManagementRoute[] {
  return projectRoutes<Q, S>(deps, {
    ...endpoint,
    handle: async call => {
      const item = await find(call.project.id, call.params[param]!)
      return item === null ? refusal(missing) : endpoint.handle({ ...call, item })
    },
  })
}

/** Reads a numeric path parameter; null when the text is not a number. */
export function parseIdNumber(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null
}
