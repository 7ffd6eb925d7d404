// The OpenAPI 3.1 document: management routes describe themselves by the very schemas that check their bodies; of the
// other routes it says that they exist and who may call them. Built once, at start.

import type { TSchema } from 'typebox'
import { type Route, type RouteAccess, sendJson } from '../route.ts'
import type { ManagementRoute, Operation } from './endpoint.ts'

export interface OpenApiDeps {
  /** Version of this server. */
  readonly version: string
  readonly managementRoutes: readonly ManagementRoute[]
  /** Every other route of the table: wire, health, metrics. */
  readonly otherRoutes: readonly Route[]
}

type Json = Record<string, unknown>

/** `GET /api/schema/` and `/openapi.json`: open, they hold nothing that is not in the source. */
export function openApiRoutes(deps: OpenApiDeps): Route[] {
  const document = JSON.stringify(openApiDocument(deps))
  return ['/api/schema', '/openapi.json'].map(path => ({
    method: 'GET',
    path,
    access: 'open',
    group: 'management',
    bodyLimitBytes: 1_024,
    handler: (_request, reply) => sendJson(reply, 200, document),
  }))
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
    paths,
    components: {
      securitySchemes: {
        personalApiKey: { type: 'http', scheme: 'bearer', description: 'A personal API key, phx_…' },
        projectSecretKey: { type: 'http', scheme: 'bearer', description: 'A secret key of the project, phs_…' },
      },
      schemas: { Error: errorSchema },
    },
  }
}

const errorSchema: Json = {
  type: 'object',
  required: ['type', 'code', 'detail', 'attr'],
  properties: {
    type: { type: 'string' },
    code: { type: 'string' },
    detail: { type: 'string' },
    attr: { type: ['string', 'null'], description: 'The field that was wrong, as a path joined by dots.' },
    extra: { type: 'object' },
  },
}

/** Every private path ends in a slash, as PostHog documents them. */
export function documentedPath(path: string): string {
  const braced = path.replaceAll(/:([A-Za-z]+)/g, (_match, name: string) => `{${snakeCase(name)}}`)
  return braced.startsWith('/api/') && !braced.includes('.') && !braced.endsWith('*') ? `${braced}/` : braced
}

function add(paths: Record<string, Json>, route: Route, operation: Json): void {
  const path = documentedPath(route.path)
  paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
}

function describeManagement(route: ManagementRoute): Json {
  const { operation } = route
  const { status, schema, contentType } = operation.success
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    security: [{ personalApiKey: [] }],
    'x-scope': route.scope,
    parameters: [...pathParameters(route.path), ...queryParameters(operation)],
    ...(operation.body === null ? {} : { requestBody: { required: true, content: bodyContent(operation) } }),
    responses: {
      [status]: { description: 'Done.', ...(schema === null ? {} : { content: { [contentType]: { schema } } }) },
      ...(operation.body === null && Object.keys(operation.query).length === 0
        ? {}
        : { 400: errorAnswer('Wrong input.') }),
      401: errorAnswer('No valid personal API key.'),
      403: errorAnswer('The key lacks the scope or the project.'),
      404: errorAnswer('Not found.'),
      503: errorAnswer('A store cannot be reached; Retry-After says when to try again.'),
    },
  }
}

function describeOther(route: Route): Json {
  return {
    operationId: `${route.method.toLowerCase()}_${route.path.replaceAll(/[^A-Za-z0-9]+/g, '_')}`,
    tags: [route.group],
    summary: accessSummaries[route.access],
    ...(route.access in accessSecurity ? { security: accessSecurity[route.access] } : {}),
    parameters: pathParameters(route.path),
    responses: { 200: { description: 'Done.' } },
  }
}

const accessSummaries: Record<RouteAccess, string> = {
  open: 'Open to everyone.',
  project_key: 'With the project API key in the request.',
  personal_key: 'With a personal API key.',
  server_key: 'With a personal API key, or a secret key of the project.',
  operator: 'From this machine, or with a personal API key.',
}

/** `{}`: without any, which is what a process on this machine may. */
const accessSecurity: Partial<Record<RouteAccess, Json[]>> = {
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
  return takesForms ? { ...content, 'multipart/form-data': { schema: body } } : content
}

function jsonContent(schema: TSchema): Json {
  return { 'application/json': { schema } }
}

function errorAnswer(description: string): Json {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
