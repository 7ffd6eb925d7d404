// How the OpenAPI document describes routes outside the private API: their bodies, answers, errors and keys. A route that
// is missing here is described only by its access; a test compares this table with the routes.

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
  /** The name of the schema of errors, for all errors or by status; `Error` when absent. */
  readonly error?: string | Readonly<Record<number, string>>
  /** Names of `securitySchemes`; when absent, they follow from the route's access. */
  readonly security?: readonly string[]
}

/** Keyed by method and path, such as `GET /flags`. */
type Operations = Readonly<Record<string, WireOperation>>

const refused = { 400: 'Malformed body or invalid content; see `code`.' }
const busy = { 503: 'Overloaded or unavailable; nothing was stored. Retry after `Retry-After` seconds.' }
const noSuchKey = { 401: 'Missing or unknown project API key.' }
const tooLarge = { 413: 'The body is too large, compressed or decompressed.' }
const textAnswer = (...contentType: string[]): WireOperation['success'] => ({ schema: text, contentType })
const anyObject: Json = { type: 'object' }

const inBody = 'Send the project API key in the body (`api_key` or `token`).'
const evaluationQuery = {
  v: {
    type: 'integer',
    description: 'Response version. Latest: 4 for /decide; for /flags 2, or 3 for values of any type.',
  },
  config: { type: 'boolean', description: 'Whether to include the client configuration.' },
} satisfies WireOperation['query']

function evaluationOperations(endpoint: 'decide' | 'flags'): Operations {
  const tag = 'flags'
  const summary = endpoint === 'flags' ? 'Evaluate flags for one person.' : 'Evaluate flags for older SDKs.'
  const fixed = 'Return a fixed response without flags.'
  return {
    [`POST /${endpoint}`]: {
      ...{ id: `evaluate_${endpoint}`, tag, summary, query: evaluationQuery, body: ref('EvaluationRequest') },
      description: `${inBody} Accepts JSON, gzip, base64 and form encoding.`,
      success: { schema: ref('EvaluationResponse') },
      statuses: { ...refused, ...noSuchKey, ...tooLarge, 503: 'Overloaded. Retry after `Retry-After` seconds.' },
    },
    [`GET /${endpoint}`]: { id: `${endpoint}_minimal`, tag, summary: fixed, success: { schema: anyObject } },
    [`HEAD /${endpoint}`]: { id: `${endpoint}_head`, tag, summary: 'Health probe.', success: {} },
    [`OPTIONS /${endpoint}`]: { id: `${endpoint}_options`, tag, summary: 'CORS preflight.', success: {} },
  }
}

const captureQuery = {
  data: { type: 'string', description: 'Request body, base64- or form-encoded.' },
  compression: { type: 'string' },
  verbose: { type: 'string', description: '1: store the valid events and return the outcome of each event.' },
} satisfies WireOperation['query']
const captureByGetQuery = { ...captureQuery, data: { ...captureQuery.data, required: true } }
const captureStatuses = {
  ...refused,
  ...noSuchKey,
  408: 'The client stopped sending the body.',
  ...tooLarge,
  503: 'Overloaded or unavailable; nothing was stored. Retry after `Retry-After` seconds.',
}

function captureOperations(path: string, id: string, summary: string): Operations {
  const common = {
    tag: 'capture',
    description: `${inBody} 200 means the events are on disk. Accepts JSON, gzip, base64 and form encoding.`,
    query: captureQuery,
    success: { schema: ref('CaptureAnswer') },
    statuses: captureStatuses,
  }
  const body = path === '/batch' || path === '/i/v0/ai/batch' ? ref('BatchRequest') : ref('CaptureRequest')
  const inQuery = `${summary} Events are in the query string.`
  return {
    [`POST ${path}`]: { ...common, id, summary, body },
    [`GET ${path}`]: { ...common, id: `${id}_by_get`, query: captureByGetQuery, summary: inQuery },
  }
}

function captureV1Operation(path: string, id: string, summary: string): Operations {
  return {
    [`POST ${path}`]: {
      ...{ id, tag: 'capture', summary, body: ref('CaptureV1Request'), security: ['projectApiKey'] },
      description:
        'Requires the headers `PostHog-Sdk-Info`, `PostHog-Attempt`, `PostHog-Request-Id` and `PostHog-Request-Timestamp`.',
      ...{ success: { schema: ref('CaptureV1Answer') }, error: 'CaptureV1Error' },
      statuses: {
        ...captureStatuses,
        402: 'The event quota is exceeded.',
        415: 'Unsupported content type or encoding.',
      },
    },
  }
}

function openTelemetryOperation({ path, signal }: OtlpPath): Operations {
  const id = `otlp${path.replaceAll('/', '_')}`
  return {
    [`POST ${path}`]: {
      ...{ id, tag: 'capture', summary: `Accept and discard OpenTelemetry ${signal}.` },
      description: 'OTLP/HTTP in JSON or protobuf. `partialSuccess` says how many items were not stored.',
      ...{ body: ref('OtlpRequest'), query: { token: text }, security: ['projectApiKey'], error: 'OtlpError' },
      success: { schema: ref('OtlpAnswer'), contentType: ['application/json', 'application/x-protobuf'] },
      statuses: { ...refused, ...noSuchKey, ...tooLarge, ...busy },
    },
  }
}

const ofrepKeys = ['projectApiKey', 'projectApiKeyHeader']
const ofrepStatuses = { ...refused, ...noSuchKey, ...tooLarge, 429: 'The quota of flag requests is exceeded.', ...busy }

function definitionsOperations(path: string, id: string, summary: string, schema: Json): Operations {
  const tag = 'definitions'
  const statuses = {
    304: 'Unchanged since the `ETag` in `If-None-Match`.',
    400: 'Missing `token`.',
    401: 'Missing or invalid key.',
    402: 'The quota of flag requests is exceeded.',
    403: 'The key lacks `feature_flag:read` or access to the project.',
    ...busy,
  }
  const query = { token: { ...text, required: true, description: 'The project API key.' } }
  const preflight = { summary: 'CORS preflight.', success: { description: 'Allowed methods in `Allow`.' } }
  return {
    [`GET ${path}`]: { id, tag, summary, query, success: { schema }, statuses },
    [`OPTIONS ${path}`]: { id: `${id}_options`, tag, ...preflight },
  }
}

function pageOperations(
  path: string,
  id: string,
  summary: string,
  rest: Pick<WireOperation, 'success' | 'statuses' | 'query' | 'security'>,
): Operations {
  const tag = 'browser'
  return {
    [`GET ${path}`]: { id, tag, summary, ...rest },
    [`HEAD ${path}`]: { id: `${id}_head`, tag, summary, ...rest, success: {} },
  }
}

const scripts = 'application/javascript'
const badToken = { 400: 'Malformed project API key.' }
const ofProject = {
  query: { token: { ...text, required: true, description: 'The project API key.' } },
  success: { schema: anyObject },
  statuses: noSuchKey,
  security: ['projectApiKeyInQuery'],
}
const asScript = { success: textAnswer(scripts), statuses: badToken, security: [] }
const readiness = {
  type: 'object',
  description: 'State of flag evaluation, capture and processing.',
} satisfies Json

function remoteConfigOperation(prefix: 'projects' | 'environments'): Operations {
  return {
    [`GET /api/${prefix}/:projectId/feature_flags/:flagId/remote_config`]: {
      id: prefix === 'projects' ? 'feature_flags_remote_config' : 'environments_feature_flags_remote_config',
      ...{ tag: 'definitions', summary: 'Get the decrypted payload of a remote configuration flag.' },
      query: { token: { ...text, description: 'Project API key; overrides the project in the path.' } },
      success: { schema: { description: 'The payload: any JSON value.' } },
      statuses: {
        401: 'Missing or invalid key.',
        403: 'The key lacks the scope or access to the project.',
        404: 'No such flag.',
        500: 'The payload cannot be decrypted.',
        ...busy,
      },
    },
  }
}

const operations: Operations = {
  ...evaluationOperations('flags'),
  ...evaluationOperations('decide'),
  ...captureOperations('/capture', 'capture', 'Capture one or more events.'),
  ...captureOperations('/batch', 'batch', 'Capture a batch of events; with `historical_migration`, import them.'),
  ...captureOperations('/e', 'capture_e', 'Capture events from browsers.'),
  ...captureOperations('/i/v0/e', 'capture_i_v0_e', 'Capture events from newer SDKs.'),
  ...captureOperations('/track', 'track', 'Capture events from SDKs released before 2021.'),
  ...captureOperations('/engage', 'engage', 'Update persons, for SDKs released before 2021.'),
  ...captureOperations('/i/v0/ai/batch', 'capture_ai_batch', 'Capture AI events.'),
  ...captureV1Operation('/i/v1/analytics/events', 'capture_v1', 'Capture events; returns a result for each.'),
  ...captureV1Operation('/i/v1/ai/events', 'capture_v1_ai', 'Capture AI events; returns a result for each.'),
  ...Object.assign({}, ...otlpPaths.map(openTelemetryOperation)),
  'POST /s': {
    ...{ id: 'session_replay', tag: 'capture', summary: 'Capture session recording snapshots.', description: inBody },
    ...{ body: ref('RecordingRequest'), query: captureQuery, success: { schema: ref('CaptureAnswer') } },
    statuses: captureStatuses,
  },
  'GET /s': {
    ...{ id: 'session_replay_by_get', tag: 'capture', query: captureByGetQuery },
    summary: 'Capture session recording snapshots sent in the query string.',
    ...{ description: inBody, success: { schema: ref('CaptureAnswer') }, statuses: captureStatuses },
  },
  'POST /ofrep/v1/evaluate/flags': {
    ...{ id: 'ofrep_evaluate_flags', tag: 'openfeature', summary: 'Evaluate all flags (OpenFeature, OFREP).' },
    ...{ body: ref('OfrepRequest'), security: ofrepKeys, error: 'OfrepError', success: { schema: ref('OfrepFlags') } },
    statuses: { 304: 'Unchanged since the `ETag` in `If-None-Match`.', ...ofrepStatuses },
  },
  'POST /ofrep/v1/evaluate/flags/:key': {
    ...{ id: 'ofrep_evaluate_flag', tag: 'openfeature', summary: 'Evaluate one flag (OpenFeature, OFREP).' },
    ...{ body: ref('OfrepRequest'), security: ofrepKeys, error: 'OfrepError', success: { schema: ref('OfrepFlag') } },
    statuses: {
      ...ofrepStatuses,
      404: 'No such flag, or not available to this client type.',
      500: 'The flag cannot be computed.',
    },
  },
  'GET /ofrep/v1/events': {
    ...{ id: 'ofrep_events', tag: 'openfeature', summary: 'Stream notifications of changed flag definitions.' },
    query: { token: { ...text, description: 'Project API key, for clients that cannot set headers.' } },
    ...{ security: [...ofrepKeys, 'projectApiKeyInQuery'], error: 'OfrepError' },
    success: { schema: text, contentType: 'text/event-stream' },
    statuses: { ...noSuchKey, 429: 'The project has reached its limit of open streams.', ...busy },
  },
  ...definitionsOperations(
    '/flags/definitions',
    'flag_definitions',
    'Get flag definitions for local evaluation.',
    ref('FlagDefinitions'),
  ),
  ...definitionsOperations(
    '/api/feature_flag/local_evaluation',
    'local_evaluation',
    'Get flag definitions for local evaluation, for older SDKs.',
    ref('FlagDefinitions'),
  ),
  ...definitionsOperations('/api/feature_flag', 'flag_list', 'List flags, for SDKs released before 2022.', anyObject),
  ...remoteConfigOperation('projects'),
  ...remoteConfigOperation('environments'),
  ...pageOperations('/array/:token/config', 'client_config', 'Get the client configuration of a web page, as JSON.', {
    success: { schema: anyObject },
    statuses: { ...badToken, 404: 'Unknown project API key.' },
    security: [],
  }),
  ...pageOperations(
    '/array/:token/config.js',
    'client_config_script',
    'Get the client configuration of a web page, as a script.',
    asScript,
  ),
  ...pageOperations(
    '/array/:token/array.js',
    'client_script',
    'Get posthog-js with the client configuration.',
    asScript,
  ),
  ...pageOperations('/api/surveys', 'page_surveys', 'List surveys for web pages.', ofProject),
  ...pageOperations(
    '/api/early_access_features',
    'page_early_access_features',
    'List early access features for web pages.',
    ofProject,
  ),
  ...pageOperations('/api/web_experiments', 'page_web_experiments', 'List web experiments. Always empty.', ofProject),
  ...pageOperations('/api/product_tours', 'page_product_tours', 'List product tours. Always empty.', ofProject),
  ...pageOperations('/static/:file', 'static_file', 'Get a posthog-js script or the loader.', {
    success: textAnswer(scripts),
    statuses: { 404: 'No such file.' },
  }),
  ...pageOperations('/static/:version/:file', 'static_file_of_version', 'Get a script of one posthog-js version.', {
    success: textAnswer(scripts),
    statuses: { 404: 'No such file or version.' },
  }),
  'GET /': {
    ...{ id: 'start_page', tag: 'health', summary: 'Start page of this instance.' },
    success: textAnswer('text/html', 'text/plain'),
  },
  'GET /_liveness': { id: 'liveness', tag: 'health', summary: 'Liveness probe.', success: { schema: anyObject } },
  'GET /_readiness': {
    ...{ id: 'readiness', tag: 'health' },
    summary: 'Readiness probe: whether flags can be evaluated and events accepted.',
    query: { require: { type: 'string', description: '`capture`: also return 503 while events are refused.' } },
    success: { schema: readiness },
    statuses: { 400: 'Unknown part in `require`.', 503: 'Not ready; see the body for the reason.' },
    error: { 503: 'Readiness' },
  },
  'GET /metrics': {
    ...{ id: 'metrics', tag: 'health', summary: 'Prometheus metrics.' },
    ...{ success: textAnswer('text/plain'), statuses: { 401: 'Remote request without a valid key.' } },
  },
}

export const wireOperations: ReadonlyMap<string, WireOperation> = new Map(Object.entries(operations))
