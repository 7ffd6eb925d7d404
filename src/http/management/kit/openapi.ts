// The OpenAPI 3.1 document. The schemas that check the bodies of management routes also describe them; other routes are
// described in `../openapi`.

import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { TSchema } from 'typebox'
import type { ScriptCompression } from '#ports/browser-scripts.ts'
import { organizationId } from '#wire/management/projects.ts'
import { buildComponentSchemas, toDocumentedSchema } from '../../openapi/components.ts'
import { type Json, ref } from '../../openapi/shapes.ts'
import { type WireOperation, wireOperations } from '../../openapi/wire-operations.ts'
import { listAcceptedCompressions } from '../../shared/accepted-compressions.ts'
import { type Route, type RouteAccess, sendJson } from '../../shared/route.ts'
import type { ManagementRoute, Operation } from './endpoint.ts'

export interface OpenApiDeps {
  /** Version of this server. */
  readonly version: string
  readonly managementRoutes: readonly ManagementRoute[]
  /** All other routes: PostHog's public API, health, metrics. */
  readonly otherRoutes: readonly Route[]
}

/** `GET /api/schema/` and `/openapi.json`, which need no key: their contents are public in the source code. */
export function openApiRoutes(deps: OpenApiDeps): Route[] {
  // Built at the first request, then shared by all answers: most instances get no such request.
  let document: Buffer | undefined
  const packed: Partial<Record<ScriptCompression, Promise<Buffer>>> = {}
  return ['/api/schema', '/openapi.json'].map(path => ({
    method: 'GET',
    path,
    access: 'open',
    group: 'management',
    bodyLimitBytes: 1_024,
    handler: async (request, reply) => {
      document ??= Buffer.from(JSON.stringify(buildOpenApiDocument(deps)))
      const [packing] = listAcceptedCompressions(request.headers['accept-encoding'])
      reply.header('vary', 'Accept-Encoding')
      if (packing === undefined) return sendJson(reply, 200, document)
      packed[packing] ??= pack[packing](document)
      const body = await packed[packing]
      sendJson(reply.header('content-encoding', packing), 200, body)
    },
  }))
}

/** Compresses in a pool thread. The best brotli quality would take two seconds to save another tenth of the size. */
const pack: Readonly<Record<ScriptCompression, (text: Buffer) => Promise<Buffer>>> = {
  br: text => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: text => promisify(gzip)(text),
}

export function buildOpenApiDocument(deps: OpenApiDeps): Json {
  const paths: Record<string, Json> = {}
  for (const route of deps.managementRoutes) addOperation(paths, route, describeManagementRoute(route))
  for (const route of deps.otherRoutes) addOperation(paths, route, describeWireRoute(route))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pennon',
      version: deps.version,
      description: 'Feature flags and event ingestion. Every path works with and without its trailing slash.',
    },
    servers: [{ url: '/', description: 'The instance that served this document.' }],
    security: [],
    tags: collectTags(paths),
    paths,
    components: {
      securitySchemes,
      schemas: { Error: errorSchema, Readiness: readinessSchema, ...buildComponentSchemas() },
    },
  }
}

const createBearerScheme = (description: string): Json => ({ type: 'http', scheme: 'bearer', description })
const securitySchemes = {
  personalApiKey: createBearerScheme('A personal API key, phx_…'),
  session: {
    ...{ type: 'apiKey', in: 'cookie', name: 'pennon_session' },
    description:
      'The session of a person who signed in, for pages of this instance. The name of the cookie ends in eight characters of the instance.',
  },
  projectSecretKey: createBearerScheme('A secret key of the project, phs_…'),
  projectApiKey: createBearerScheme('The project API key, phc_…, which is public.'),
  projectApiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The project API key.' },
  projectApiKeyInQuery: { type: 'apiKey', in: 'query', name: 'token', description: 'The project API key.' },
}

const readinessSchema: Json = { type: 'object', description: 'State of flag evaluation, capture and processing.' }

const errorSchema: Json = {
  type: 'object',
  required: ['type', 'code', 'detail', 'attr'],
  properties: {
    type: { type: 'string' },
    code: { type: 'string' },
    detail: { type: 'string' },
    attr: { type: ['string', 'null'], description: 'Path of the invalid field, joined by dots.' },
    hint: { type: 'string', description: 'What to do in Pennon, where the text of `detail` is PostHog’s.' },
    extra: { type: 'object' },
  },
}

const tagDescriptions: Readonly<Record<string, string>> = {
  activity_log: 'Who changed what, and when.',
  browser: 'Scripts and configuration for web pages.',
  capture: 'Event capture, with the project API key.',
  cohorts: 'Sets of persons that flags can target.',
  definitions: 'Flag definitions for local evaluation; names of events and properties.',
  early_access_feature: 'Early access features, which users opt in to.',
  events: 'Stored events and the live event stream.',
  experiments: 'Experiments on flags with variants.',
  feature_flags: 'Feature flags, their history and explanations of their values.',
  flags: 'Flag evaluation, with the project API key.',
  groups: 'Groups and group types.',
  invitations: 'Links for new users.',
  health: 'Health and metrics of the instance.',
  import_jobs: 'Imports that are published together and can be undone.',
  ingestion: 'Event processing status and ingestion warnings.',
  mcp_tools: 'Tools for AI agents: SQL, and the available events and properties.',
  openfeature: 'Remote flag evaluation over the OpenFeature protocol (OFREP).',
  organizations: 'The single organization of the instance.',
  personal_api_keys: 'Personal API keys of the private API.',
  persons: 'Persons, their properties and distinct ids.',
  projects: 'Projects and project settings.',
  query: 'Queries over events.',
  rejected_events: 'Rejected events and their replay.',
  replay: 'Session recordings.',
  surveys: 'Surveys and their statistics.',
  usage: 'Usage per day.',
  session: 'Signing in and out, and the own user.',
  users: 'The caller, and the people who may sign in.',
}

function collectTags(paths: Readonly<Record<string, Json>>): Json[] {
  const operations = Object.values(paths).flatMap(item => Object.values(item) as { tags: string[] }[])
  return [...new Set(operations.flatMap(({ tags }) => tags))]
    .sort()
    .map(name => ({ name, description: tagDescriptions[name] ?? name }))
}

/** The path as the OpenAPI document writes it. Private paths end in a slash, as in PostHog's documentation. */
export function toDocumentedPath(path: string): string {
  const braced = path.replaceAll(/:([A-Za-z]+)/g, (_match, name: string) => `{${toSnakeCase(name)}}`)
  return braced.startsWith('/api/') && !braced.includes('.') && !braced.endsWith('*') ? `${braced}/` : braced
}

function addOperation(paths: Record<string, Json>, route: Route, operation: Json): void {
  const path = toDocumentedPath(route.path)
  paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
}

/** The operation's id, which starts with an extra word for any prefix except the usual prefix. */
function createOperationId(route: ManagementRoute): string {
  const id = route.operation.id
  if (route.path.startsWith('/api/environments')) return `environments_${id}`
  if (route.path.startsWith('/api/organizations/@current/projects')) return `organization_${id}`
  const isById = route.path.startsWith(`/api/organizations/${organizationId}`)
  return isById ? `organization_by_id_${id}` : id
}

function describeManagementRoute(route: ManagementRoute): Json {
  const { operation } = route
  const { status, schema, contentType } = operation.success
  const takesInput = operation.body !== null || Object.keys(operation.query).length > 0
  return {
    operationId: createOperationId(route),
    tags: [operation.tag],
    summary: operation.summary,
    security: route.access === 'open' ? [] : [{ personalApiKey: [] }, { session: [] }],
    'x-scope': route.scope,
    ...(route.scopeOfPersons === undefined ? {} : { 'x-scope-of-persons': route.scopeOfPersons }),
    parameters: [...describePathParameters(route.path), ...describeQueryParameters(operation)],
    ...(operation.body === null ? {} : { requestBody: { required: true, content: describeBodyContent(operation) } }),
    responses: {
      [status]: {
        description: 'Done.',
        ...(schema === null ? {} : { content: { [contentType]: { schema: toDocumentedSchema(schema) } } }),
      },
      ...(operation.id === 'cohorts_recount' ? { 202: describeRunningAnswer(schema) } : {}),
      ...(takesInput || route.path.includes(':') ? { 400: describeErrorAnswer('Invalid input.') } : {}),
      401: describeErrorAnswer('Missing or invalid personal API key or session.'),
      403: describeErrorAnswer('The key or role lacks the scope or access to the project.'),
      404: describeErrorAnswer('Not found.'),
      ...(operation.body === null
        ? {}
        : {
            409: describeErrorAnswer('Changed by another request.'),
            413: describeErrorAnswer('The body is too large.'),
          }),
      431: tooMuchHead,
      503: describeErrorAnswer('A store is unavailable. Retry after `Retry-After` seconds.'),
    },
  }
}

function describeContent(types: string | readonly string[], schema: Json): Json {
  return Object.fromEntries([types].flat().map(type => [type, { schema }]))
}

function describeRunningAnswer(schema: TSchema | null): Json {
  return {
    description: 'Still running: repeat the request.',
    content: { 'application/json': { schema: toDocumentedSchema(schema) } },
  }
}

function describeWireRoute(route: Route): Json {
  const operation = wireOperations.get(`${route.method} ${route.path}`)
  const security = describeSecurity(route, operation)
  if (operation === undefined) {
    return {
      operationId: `${route.method.toLowerCase()}_${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_')}`,
      tags: [route.group],
      summary: accessSummaries[route.access],
      security,
      parameters: describePathParameters(route.path),
      responses: { 200: { description: 'Done.' } },
    }
  }
  const { success, statuses = {}, error = 'Error' } = operation
  const status = operation.id.endsWith('_options') && route.group === 'definitions' ? 204 : 200
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: route.access === 'operator' ? accessSummaries.operator : operation.summary,
    description: operation.description ?? operation.summary,
    security,
    parameters: [
      ...describePathParameters(route.path),
      ...Object.entries(operation.query ?? {}).map(([name, { required = false, ...schema }]) => ({
        ...{ name, in: 'query', required, schema },
      })),
    ],
    ...(operation.body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: operation.body } } } }),
    responses: {
      [status]: {
        description: success.description ?? 'Done.',
        ...(success.schema === undefined
          ? {}
          : { content: describeContent(success.contentType ?? 'application/json', success.schema) }),
      },
      ...Object.fromEntries(
        Object.entries(statuses).map(([code, description]) => [
          code,
          code.startsWith('3')
            ? { description }
            : describeErrorAnswer(description, typeof error === 'string' ? error : error[Number(code)]),
        ]),
      ),
      431: tooMuchHead,
    },
  }
}

function describeSecurity(route: Route, operation: WireOperation | undefined): Json[] {
  const named = operation?.security?.map(scheme => ({ [scheme]: [] }))
  return named ?? accessSecurity[route.access]
}

const accessSummaries: Record<RouteAccess, string> = {
  open: 'No authentication.',
  project_key: 'Requires the project API key in the request.',
  personal_key: 'Requires a personal API key.',
  server_key: 'Requires a personal API key or a secret key of the project.',
  operator: 'From this machine without authentication, otherwise with a personal API key.',
}

/** `{}` means no key, for processes on this machine. OpenAPI cannot describe a `project_key`, which is in the body. */
const accessSecurity: Record<RouteAccess, Json[]> = {
  open: [],
  project_key: [],
  personal_key: [{ personalApiKey: [] }],
  server_key: [{ personalApiKey: [] }, { projectSecretKey: [] }],
  operator: [{}, { personalApiKey: [] }],
}

function describePathParameters(path: string): Json[] {
  return [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => ({
    name: toSnakeCase(name!),
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(name === 'projectId'
      ? { description: 'Project id, or `@current` for the first project that the key can access.' }
      : {}),
  }))
}

function describeQueryParameters(operation: Operation): Json[] {
  return Object.entries(operation.query).map(([name, param]) => ({
    name,
    in: 'query',
    required: param.required,
    schema: param.schema,
  }))
}

function describeBodyContent({ body, takesForms }: Operation): Json {
  const content = describeJsonContent(body!)
  return takesForms ? { ...content, 'multipart/form-data': { schema: toDocumentedSchema(body) } } : content
}

function describeJsonContent(schema: TSchema): Json {
  return { 'application/json': { schema: toDocumentedSchema(schema) } }
}

function describeErrorAnswer(description: string, component = 'Error'): Json {
  return { description, content: { 'application/json': { schema: ref(component) } } }
}

const tooMuchHead = describeErrorAnswer('URL and headers exceed 16 KiB.')

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
