// How the OpenAPI document describes routes outside the private API: their bodies, answers, errors and keys. A route
// that is missing here is described by its access alone; a test compares this table with the routes.

import { type OtlpPath, otlpPaths } from '#wire/otlp/otlp-paths.ts'
import { type Json, ref, text } from './shapes.ts'

export interface WireOperation {
  readonly id: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  readonly query?: Readonly<Record<string, Json & { required?: boolean }>>
  /** Schema of the request body, as JSON. */
  readonly body?: Json
  readonly success: {
    readonly schema?: Json
    readonly contentType?: string | readonly string[]
    readonly description?: string
  }
  readonly statuses?: Readonly<Record<number, string>>
  /** Name of the schema of errors, for all or by status; `Error` when absent. */
  readonly error?: string | Readonly<Record<number, string>>
  /** Names of `securitySchemes`; when absent, they follow from the route's access. */
  readonly security?: readonly string[]
}

const refused = { 400: 'The body, or what is in it, cannot be read; `code` says what.' }
const busy = { 503: 'Nothing was stored; Retry-After says when to try again.' }
const noSuchKey = { 401: 'No project API key, or nobody’s.' }
const tooLarge = { 413: 'The body is too large, as sent or decompressed.' }
const html = (...contentType: string[]): WireOperation['success'] => ({ schema: text, contentType })
const anyObject: Json = { type: 'object' }

const inBody = 'The project API key stands in the body (`api_key` or `token`).'
const evaluationQuery = {
  v: {
    type: 'integer',
    description:
      'Version of the answer. The newest are 4 of /decide, and of /flags 2, and 3 with values of every type.',
  },
  config: { type: 'boolean', description: 'Whether the answer holds the configuration of clients.' },
} satisfies WireOperation['query']

function evaluation(endpoint: 'decide' | 'flags'): [string, WireOperation][] {
  const common = { tag: 'flags' }
  const summary = endpoint === 'flags' ? 'Evaluate flags for one person.' : 'Evaluate flags, as older SDKs ask.'
  return [
    [
      `POST /${endpoint}`,
      {
        ...common,
        id: `evaluate_${endpoint}`,
        summary,
        query: evaluationQuery,
        description: `${inBody} Also gzip, base64 and forms, as SDKs send them.`,
        body: ref('EvaluationRequest'),
        success: { schema: ref('EvaluationResponse') },
        statuses: { ...refused, ...noSuchKey, ...tooLarge, 503: 'Too much waits; Retry-After says when to try again.' },
      },
    ],
    [
      `GET /${endpoint}`,
      {
        ...common,
        id: `${endpoint}_minimal`,
        summary: 'A fixed answer without flags.',
        success: { schema: anyObject },
      },
    ],
    [`HEAD /${endpoint}`, { ...common, id: `${endpoint}_head`, summary: 'Whether somebody is there.', success: {} }],
    [`OPTIONS /${endpoint}`, { id: `${endpoint}_options`, tag: 'flags', summary: 'For pages.', success: {} }],
  ]
}

const captureQuery = {
  data: { type: 'string', description: 'The body of a GET: base64 or a form, as old SDKs send it.' },
  compression: { type: 'string' },
  verbose: { type: 'string', description: '1: the answer tells what became of each event, and stores the good ones.' },
} satisfies WireOperation['query']
const captureByGetQuery = { ...captureQuery, data: { ...captureQuery.data, required: true } }
const captureStatuses = {
  ...refused,
  ...noSuchKey,
  408: 'The body stopped coming in.',
  ...tooLarge,
  503: 'Nothing was stored; Retry-After says when to try again.',
}

function capture(path: string, id: string, summary: string): [string, WireOperation][] {
  const common = {
    tag: 'capture',
    description: `${inBody} 200 means on disk. Also gzip, base64 and forms, as SDKs send them.`,
    query: captureQuery,
    success: { schema: ref('CaptureAnswer') },
    statuses: captureStatuses,
  }
  const body = path === '/batch' || path === '/i/v0/ai/batch' ? ref('BatchRequest') : ref('CaptureRequest')
  return [
    [`POST ${path}`, { ...common, id, summary, body }],
    [
      `GET ${path}`,
      {
        ...common,
        id: `${id}_by_get`,
        query: captureByGetQuery,
        summary: `${summary} In the address, as old pages send it.`,
      },
    ],
  ]
}

function captureV1(path: string, id: string, summary: string): [string, WireOperation] {
  return [
    `POST ${path}`,
    {
      ...{ id, tag: 'capture', summary, body: ref('CaptureV1Request'), security: ['projectApiKey'] },
      description:
        'With the headers `PostHog-Sdk-Info`, `PostHog-Attempt`, `PostHog-Request-Id` and `PostHog-Request-Timestamp`.',
      success: { schema: ref('CaptureV1Answer') },
      error: 'CaptureV1Error',
      statuses: { ...captureStatuses, 402: 'Over the quota of events.', 415: 'Neither JSON nor a known encoding.' },
    },
  ]
}

function openTelemetry({ path, signal }: OtlpPath): [string, WireOperation] {
  const id = `otlp${path.replaceAll('/', '_')}`
  return [
    `POST ${path}`,
    {
      ...{ id, tag: 'capture', summary: `Take ${signal} of OpenTelemetry, of which none is stored.` },
      description: 'OTLP/HTTP in JSON or protobuf. `partialSuccess` says how many items were not stored.',
      ...{ body: ref('OtlpRequest'), query: { token: text }, security: ['projectApiKey'] },
      success: { schema: ref('OtlpAnswer'), contentType: ['application/json', 'application/x-protobuf'] },
      error: 'OtlpError',
      statuses: { ...refused, ...noSuchKey, ...tooLarge, ...busy },
    },
  ]
}

const ofrepKeys = ['projectApiKey', 'projectApiKeyHeader']
const ofrepStatuses = { ...refused, ...noSuchKey, ...tooLarge, 429: 'Over the quota of flag requests.', ...busy }

function definitions(path: string, id: string, summary: string, schema: Json): [string, WireOperation][] {
  const statuses = {
    ...{ 304: 'Unchanged since the `ETag` in `If-None-Match`.', 400: 'No `token`.', 401: 'No valid key.' },
    ...{ 402: 'Over the quota of flag requests.', 403: 'The key lacks `feature_flag:read` or the project.', ...busy },
  }
  const query = { token: { ...text, required: true, description: 'The project API key.' } }
  return [
    [`GET ${path}`, { id, tag: 'definitions', summary, query, success: { schema }, statuses }],
    [
      `OPTIONS ${path}`,
      {
        id: `${id}_options`,
        tag: 'definitions',
        summary: 'For pages.',
        success: { description: 'The methods, in `Allow`.' },
      },
    ],
  ]
}

function forPages(
  path: string,
  id: string,
  summary: string,
  rest: Pick<WireOperation, 'success' | 'statuses' | 'query' | 'security'>,
): [string, WireOperation][] {
  return (['GET', 'HEAD'] as const).map(method => [
    `${method} ${path}`,
    {
      ...{ id: method === 'GET' ? id : `${id}_head`, tag: 'browser', summary, ...rest },
      ...(method === 'HEAD' && { success: {} }),
    },
  ])
}

const scripts = 'application/javascript'
const badToken = { 400: 'Not the form of a project API key.' }
const withToken = {
  query: { token: { ...text, required: true, description: 'The project API key.' } },
  statuses: noSuchKey,
  security: ['projectApiKeyInQuery'],
}
const readiness = {
  type: 'object',
  description: 'The state of flags, capture and processing.',
} satisfies Json

function remoteConfig(prefix: 'projects' | 'environments'): [string, WireOperation] {
  return [
    `GET /api/${prefix}/:projectId/feature_flags/:flagId/remote_config`,
    {
      id: prefix === 'projects' ? 'feature_flags_remote_config' : 'environments_feature_flags_remote_config',
      ...{ tag: 'definitions', summary: 'The payload of a flag that is remote configuration, decrypted.' },
      query: { token: { ...text, description: 'The project API key, in place of the project of the path.' } },
      success: { schema: { description: 'Whatever JSON the payload is.' } },
      statuses: {
        ...{ 401: 'No valid key.', 403: 'The key lacks the scope or the project.', 404: 'No such flag.' },
        ...{ 500: 'The payload cannot be decrypted.', ...busy },
      },
    },
  ]
}

/** Keyed by method and path, such as `GET /flags`. */
export const wireOperations: ReadonlyMap<string, WireOperation> = new Map([
  ...evaluation('flags'),
  ...evaluation('decide'),
  ...capture('/capture', 'capture', 'Take one event, or several.'),
  ...capture('/batch', 'batch', 'Take events; with `historical_migration` an import.'),
  ...capture('/e', 'capture_e', 'Take events of browsers.'),
  ...capture('/i/v0/e', 'capture_i_v0_e', 'Take events of newer SDKs.'),
  ...capture('/track', 'track', 'Take events of SDKs of before 2021.'),
  ...capture('/engage', 'engage', 'Take changes of persons, of SDKs of before 2021.'),
  ...capture('/i/v0/ai/batch', 'capture_ai_batch', 'Take events of language models.'),
  captureV1('/i/v1/analytics/events', 'capture_v1', 'Take events, with a result for each.'),
  captureV1('/i/v1/ai/events', 'capture_v1_ai', 'Take events of language models, with a result for each.'),
  ...otlpPaths.map(openTelemetry),
  [
    'POST /s',
    {
      ...{ id: 'session_replay', tag: 'capture', summary: 'Take snapshots of a session.', description: inBody },
      ...{ body: ref('RecordingRequest'), query: captureQuery, success: { schema: ref('CaptureAnswer') } },
      statuses: captureStatuses,
    },
  ],
  [
    'GET /s',
    {
      ...{
        id: 'session_replay_by_get',
        tag: 'capture',
        summary: 'The same, in the address.',
        query: captureByGetQuery,
      },
      ...{ description: inBody, success: { schema: ref('CaptureAnswer') }, statuses: captureStatuses },
    },
  ],
  [
    'POST /ofrep/v1/evaluate/flags',
    {
      ...{ id: 'ofrep_evaluate_flags', tag: 'openfeature', summary: 'Evaluate all flags (OpenFeature, OFREP).' },
      ...{
        body: ref('OfrepRequest'),
        security: ofrepKeys,
        error: 'OfrepError',
        success: { schema: ref('OfrepFlags') },
      },
      statuses: { 304: 'Unchanged since the `ETag` in `If-None-Match`.', ...ofrepStatuses },
    },
  ],
  [
    'POST /ofrep/v1/evaluate/flags/:key',
    {
      ...{ id: 'ofrep_evaluate_flag', tag: 'openfeature', summary: 'Evaluate one flag (OpenFeature, OFREP).' },
      ...{ body: ref('OfrepRequest'), security: ofrepKeys, error: 'OfrepError', success: { schema: ref('OfrepFlag') } },
      statuses: { ...ofrepStatuses, 404: 'No such flag for this kind of client.', 500: 'It cannot be computed.' },
    },
  ],
  [
    'GET /ofrep/v1/events',
    {
      ...{ id: 'ofrep_events', tag: 'openfeature', summary: 'The change stream: that definitions changed.' },
      query: { token: { ...text, description: 'The project API key, where no header can be set.' } },
      ...{ security: [...ofrepKeys, 'projectApiKeyInQuery'], error: 'OfrepError' },
      success: { schema: text, contentType: 'text/event-stream' },
      statuses: { ...noSuchKey, 429: 'As many streams of the project are open as may be.', ...busy },
    },
  ],
  ...definitions('/flags/definitions', 'flag_definitions', 'Definitions for local evaluation.', ref('FlagDefinitions')),
  ...definitions(
    '/api/feature_flag/local_evaluation',
    'local_evaluation',
    'The same, where older SDKs ask for it.',
    ref('FlagDefinitions'),
  ),
  ...definitions('/api/feature_flag', 'flag_list', 'The list of flags that SDKs of before 2022 read.', anyObject),
  remoteConfig('projects'),
  remoteConfig('environments'),
  ...forPages('/array/:token/config', 'client_config', 'What a page is told, as JSON.', {
    success: { schema: anyObject },
    statuses: { ...badToken, 404: 'The key is nobody’s.' },
    security: [],
  }),
  ...forPages('/array/:token/config.js', 'client_config_script', 'What a page is told, as a script.', {
    success: html(scripts),
    statuses: badToken,
    security: [],
  }),
  ...forPages('/array/:token/array.js', 'client_script', 'posthog-js with what a page is told.', {
    success: html(scripts),
    statuses: badToken,
    security: [],
  }),
  ...forPages('/api/surveys', 'page_surveys', 'Surveys, as pages read them.', {
    ...withToken,
    success: { schema: anyObject },
  }),
  ...forPages('/api/early_access_features', 'page_early_access_features', 'Features that people may try.', {
    ...withToken,
    success: { schema: anyObject },
  }),
  ...forPages('/api/web_experiments', 'page_web_experiments', 'Changes of a page without code: there are none.', {
    ...withToken,
    success: { schema: anyObject },
  }),
  ...forPages('/api/product_tours', 'page_product_tours', 'Tours through a page: there are none.', {
    ...withToken,
    success: { schema: anyObject },
  }),
  ...forPages('/static/:file', 'static_file', 'Scripts of posthog-js, and the loader.', {
    success: html(scripts),
    statuses: { 404: 'No such file.' },
  }),
  ...forPages('/static/:version/:file', 'static_file_of_version', 'Scripts of one version of posthog-js.', {
    success: html(scripts),
    statuses: { 404: 'No such file or version.' },
  }),
  ['GET /', { id: 'start_page', tag: 'health', summary: 'What runs here.', success: html('text/html', 'text/plain') }],
  [
    'GET /_liveness',
    { id: 'liveness', tag: 'health', summary: 'The process answers.', success: { schema: anyObject } },
  ],
  [
    'GET /_readiness',
    {
      ...{ id: 'readiness', tag: 'health', summary: 'Whether flags can be answered, and events taken.' },
      query: { require: { type: 'string', description: '`capture`: 503 while events are refused, too.' } },
      success: { schema: readiness },
      statuses: { 400: '`require` names no part.', 503: 'Not now; the body says why.' },
      error: { 503: 'Readiness' },
    },
  ],
  [
    'GET /metrics',
    {
      ...{ id: 'metrics', tag: 'health', summary: 'Numbers for Prometheus.' },
      ...{ success: html('text/plain'), statuses: { 401: 'From elsewhere without a valid key.' } },
    },
  ],
])
