// The OpenAPI 3.1 document, built once, for the first client that asks: the schemas that check the bodies of management
// routes also describe them; other routes are described in `../openapi`.

import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { TSchema } from 'typebox'
import type { ScriptPacking } from '#ports/browser-scripts.ts'
import { organizationId } from '#wire/management/projects.ts'
import { componentSchemas, documented } from '../../openapi/components.ts'
import { type Json, ref } from '../../openapi/shapes.ts'
import { type WireOperation, wireOperations } from '../../openapi/wire-operations.ts'
import { acceptedPackings } from '../../shared/accepted-packings.ts'
import { type Route, type RouteAccess, sendJson } from '../../shared/route.ts'
import type { ManagementRoute, Operation } from './endpoint.ts'

export interface OpenApiDeps {
  /** Version of this server. */
  readonly version: string
  readonly managementRoutes: readonly ManagementRoute[]
  /** All other routes: wire, health, metrics. */
  readonly otherRoutes: readonly Route[]
}

/** `GET /api/schema/` and `/openapi.json`, which are open: they hold nothing that is not in the source. */
export function openApiRoutes(deps: OpenApiDeps): Route[] {
  // Made for the first client that asks, then shared by all: most instances are never asked.
  let document: Buffer | undefined
  const packed: Partial<Record<ScriptPacking, Promise<Buffer>>> = {}
  return ['/api/schema', '/openapi.json'].map(path => ({
    method: 'GET',
    path,
    access: 'open',
    group: 'management',
    bodyLimitBytes: 1_024,
    handler: async (request, reply) => {
      document ??= Buffer.from(JSON.stringify(openApiDocument(deps)))
      const [packing] = acceptedPackings(request.headers['accept-encoding'])
      reply.header('vary', 'Accept-Encoding')
      if (packing === undefined) return sendJson(reply, 200, document)
      packed[packing] ??= pack[packing](document)
      const body = await packed[packing]
      sendJson(reply.header('content-encoding', packing), 200, body)
    },
  }))
}

/** Off the event loop. The best brotli would take two seconds for a tenth less. */
const pack: Readonly<Record<ScriptPacking, (text: Buffer) => Promise<Buffer>>> = {
  br: text => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: text => promisify(gzip)(text),
}

export function openApiDocument(deps: OpenApiDeps): Json {
  const paths: Record<string, Json> = {}
  for (const route of deps.managementRoutes) add(paths, route, describeManagement(route))
  for (const route of deps.otherRoutes) add(paths, route, describeOther(route))
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pennon',
      version: deps.version,
      description: 'Feature flags and event ingestion. Paths are served with and without their trailing slash.',
    },
    servers: [{ url: '/', description: 'The instance that answered this.' }],
    security: [],
    tags: tagsOf(paths),
    paths,
    components: { securitySchemes, schemas: { Error: errorSchema, Readiness: readinessSchema, ...componentSchemas() } },
  }
}

const bearer = (description: string): Json => ({ type: 'http', scheme: 'bearer', description })
const securitySchemes = {
  personalApiKey: bearer('A personal API key, phx_…'),
  projectSecretKey: bearer('A secret key of the project, phs_…'),
  projectApiKey: bearer('The project API key, phc_…, which is public.'),
  projectApiKeyHeader: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The project API key.' },
  projectApiKeyInQuery: { type: 'apiKey', in: 'query', name: 'token', description: 'The project API key.' },
}

const readinessSchema: Json = { type: 'object', description: 'The state of flags, capture and processing.' }

const errorSchema: Json = {
  type: 'object',
  required: ['type', 'code', 'detail', 'attr'],
  properties: {
    type: { type: 'string' },
    code: { type: 'string' },
    detail: { type: 'string' },
    attr: { type: ['string', 'null'], description: 'The field that was wrong, as a path joined by dots.' },
    hint: { type: 'string', description: "The way out here, where the text of `detail` is PostHog's." },
    extra: { type: 'object' },
  },
}

const tagDescriptions: Readonly<Record<string, string>> = {
  browser: 'What pages load and are told.',
  capture: 'Events come in, with the project API key.',
  cohorts: 'Groups of people that flags ask for.',
  definitions: 'Definitions for SDKs that evaluate by themselves, and names of events and properties.',
  early_access_feature: 'Features that people may try.',
  events: 'Stored events, and those that come in now.',
  experiments: 'Flags with variants, and why they run.',
  feature_flags: 'Feature flags, their history and why they have a value.',
  flags: 'Flags are evaluated, with the project API key.',
  groups: 'Groups and their types.',
  health: 'Whether the instance works, and numbers of it.',
  import_jobs: 'Imports that wait until they are published, and can be undone.',
  ingestion: 'What became of events, and what deserves a look.',
  mcp_tools: 'What agents are told to call first: SQL, and which events and properties there are.',
  openfeature: 'Remote evaluation by the protocol of OpenFeature.',
  organizations: 'The one organization of an instance.',
  personal_api_keys: 'Keys of the private API.',
  persons: 'Persons with their properties and distinct ids.',
  projects: 'Projects and their settings.',
  query: 'Counts over events.',
  rejected_events: 'Events that were refused, and their replay.',
  replay: 'Recordings of sessions.',
  surveys: 'Surveys, and what became of them.',
  usage: 'What was used, by day.',
  users: 'Who asks.',
}

function tagsOf(paths: Readonly<Record<string, Json>>): Json[] {
  const operations = Object.values(paths).flatMap(item => Object.values(item) as { tags: string[] }[])
  return [...new Set(operations.flatMap(({ tags }) => tags))]
    .sort()
    .map(name => ({ name, description: tagDescriptions[name] ?? name }))
}

/** The path as the document writes it. Private paths end in a slash, as in PostHog's documentation. */
export function documentedPath(path: string): string {
  const braced = path.replaceAll(/:([A-Za-z]+)/g, (_match, name: string) => `{${snakeCase(name)}}`)
  return braced.startsWith('/api/') && !braced.includes('.') && !braced.endsWith('*') ? `${braced}/` : braced
}

function add(paths: Record<string, Json>, route: Route, operation: Json): void {
  const path = documentedPath(route.path)
  paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
}

/** The operation's id; under another prefix, a word in front says which. */
function operationId(route: ManagementRoute): string {
  const id = route.operation.id
  if (route.path.startsWith('/api/environments')) return `environments_${id}`
  if (route.path.startsWith('/api/organizations/@current/projects')) return `organization_${id}`
  const isById = route.path.startsWith(`/api/organizations/${organizationId}`)
  return isById ? `organization_by_id_${id}` : id
}

function describeManagement(route: ManagementRoute): Json {
  const { operation } = route
  const { status, schema, contentType } = operation.success
  const takesInput = operation.body !== null || Object.keys(operation.query).length > 0
  return {
    operationId: operationId(route),
    tags: [operation.tag],
    summary: operation.summary,
    security: [{ personalApiKey: [] }],
    'x-scope': route.scope,
    parameters: [...pathParameters(route.path), ...queryParameters(operation)],
    ...(operation.body === null ? {} : { requestBody: { required: true, content: bodyContent(operation) } }),
    responses: {
      [status]: {
        description: 'Done.',
        ...(schema === null ? {} : { content: { [contentType]: { schema: documented(schema) } } }),
      },
      ...(operation.id === 'cohorts_recount' ? { 202: laterAnswer(schema) } : {}),
      ...(takesInput || route.path.includes(':') ? { 400: errorAnswer('Wrong input.') } : {}),
      401: errorAnswer('No valid personal API key.'),
      403: errorAnswer('The key lacks the scope or the project.'),
      404: errorAnswer('Not found.'),
      ...(operation.body === null
        ? {}
        : { 409: errorAnswer('It was changed meanwhile.'), 413: errorAnswer('The body is too large.') }),
      431: tooMuchHead,
      503: errorAnswer('A store cannot be reached; Retry-After says when to try again.'),
    },
  }
}

function contentOf(types: string | readonly string[], schema: Json): Json {
  return Object.fromEntries([types].flat().map(type => [type, { schema }]))
}

function laterAnswer(schema: TSchema | null): Json {
  return { description: 'Under way: ask again.', content: { 'application/json': { schema: documented(schema) } } }
}

function describeOther(route: Route): Json {
  const operation = wireOperations.get(`${route.method} ${route.path}`)
  const security = securityOf(route, operation)
  if (operation === undefined) {
    return {
      operationId: `${route.method.toLowerCase()}_${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_')}`,
      tags: [route.group],
      summary: accessSummaries[route.access],
      security,
      parameters: pathParameters(route.path),
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
      ...pathParameters(route.path),
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
          : { content: contentOf(success.contentType ?? 'application/json', success.schema) }),
      },
      ...Object.fromEntries(
        Object.entries(statuses).map(([code, description]) => [
          code,
          code.startsWith('3')
            ? { description }
            : errorAnswer(description, typeof error === 'string' ? error : error[Number(code)]),
        ]),
      ),
      431: tooMuchHead,
    },
  }
}

function securityOf(route: Route, operation: WireOperation | undefined): Json[] {
  const named = operation?.security?.map(scheme => ({ [scheme]: [] }))
  return named ?? accessSecurity[route.access]
}

const accessSummaries: Record<RouteAccess, string> = {
  open: 'Open to everyone.',
  project_key: 'With the project API key in the request.',
  personal_key: 'With a personal API key.',
  server_key: 'With a personal API key, or a secret key of the project.',
  operator: 'From this machine, or with a personal API key.',
}

/** `{}` means no key, for processes on this machine. OpenAPI cannot describe a `project_key`, which is in the body. */
const accessSecurity: Record<RouteAccess, Json[]> = {
  open: [],
  project_key: [],
  personal_key: [{ personalApiKey: [] }],
  server_key: [{ personalApiKey: [] }, { projectSecretKey: [] }],
  operator: [{}, { personalApiKey: [] }],
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => ({
    name: snakeCase(name!),
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(name === 'projectId'
      ? { description: 'Id of a project, or @current: the first one that the key may see.' }
      : {}),
  }))
}

function queryParameters(operation: Operation): Json[] {
  return Object.entries(operation.query).map(([name, param]) => ({
    name,
    in: 'query',
    required: param.required,
    schema: param.schema,
  }))
}

function bodyContent({ body, takesForms }: Operation): Json {
  const content = jsonContent(body!)
  return takesForms ? { ...content, 'multipart/form-data': { schema: documented(body) } } : content
}

function jsonContent(schema: TSchema): Json {
  return { 'application/json': { schema: documented(schema) } }
}

function errorAnswer(description: string, component = 'Error'): Json {
  return { description, content: { 'application/json': { schema: ref(component) } } }
}

const tooMuchHead = errorAnswer('More than 16 KiB of address and headers.')

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
