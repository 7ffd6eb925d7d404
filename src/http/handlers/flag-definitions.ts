// Definitions for SDKs that evaluate locally, and the list of flags for SDKs from before 2022: one body per project and
// revision, encoded at the first request; a client that already has the body gets 304. Source: docs/wire/evaluation.md 7.1;
// docs/wire/clients.md 2, 7.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { encodeDefinitions, encodeFlagList } from '#wire/flags/flag-definitions.ts'
import { serverKeyErrors } from '#wire/flags/server-key-errors.ts'
import { computeContentHash, matchesEtag } from '../shared/etag.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { readHeaderKey } from './key-outside-body.ts'
import {
  mayOpenProject,
  requireServerKey,
  type ServerCaller,
  type ServerKeyDeps,
  type ServerKeyHandler,
} from './server-key.ts'

export interface FlagDefinitionsOptions extends ServerKeyDeps {
  readonly findProject: (token: string) => CompiledProject | null
  /** Whether the project has used up its flag requests. */
  readonly isOverFlagQuota: (project: Project) => boolean
}

interface PreparedBody {
  /** The encoded body, shared by all answers. */
  readonly bytes: Buffer
  readonly etag: string
}

const noBodyBytes = 1_024
/** posthog-python before 2022 sends its key in the query. */
const keyInQuery = { acceptsKeyInQuery: true } as const

export function flagDefinitionsRoutes(options: FlagDefinitionsOptions): Route[] {
  const answerDefinitions = createBodyHandler(options, encodeDefinitions)
  return [
    ...createRoutes('/flags/definitions', keyInQuery, answerDefinitions),
    ...createRoutes('/api/feature_flag/local_evaluation', keyInQuery, answerDefinitions),
    ...createRoutes('/api/feature_flag', {}, createBodyHandler(options, encodeFlagList)),
  ]

  function createRoutes(path: string, key: Pick<Route, 'acceptsKeyInQuery'>, handler: ServerKeyHandler): Route[] {
    return [
      {
        method: 'GET',
        path,
        access: 'server_key',
        ...key,
        group: 'definitions',
        bodyLimitBytes: noBodyBytes,
        handler: requireServerKey(options, key, handler),
      },
      {
        method: 'OPTIONS',
        path,
        access: 'open',
        group: 'definitions',
        bodyLimitBytes: noBodyBytes,
        handler: (_request, reply) => void reply.code(204).header('allow', 'GET, OPTIONS, HEAD').send(),
      },
    ]
  }
}

type Encode = (definitions: ProjectDefinitions) => Iterator<void, string>

/** Answers with what `encode` returns for the project; calls it once per revision. */
function createBodyHandler(options: FlagDefinitionsOptions, encode: Encode): ServerKeyHandler {
  const prepared = new WeakMap<CompiledProject, MaybePromise<PreparedBody>>()
  return answer

  function answer(caller: ServerCaller, request: FastifyRequest, reply: FastifyReply): MaybePromise<void> {
    const token = readProjectKey(request)
    if (token === null) return sendError(reply, serverKeyErrors.missingToken)
    const project = options.findProject(token)
    if (project === null) return sendError(reply, serverKeyErrors.unknownToken)
    if (!mayOpenProject(caller, project.project.id)) {
      const { otherProject, secretKeyInvalid } = serverKeyErrors
      return sendError(reply, caller.kind === 'secret' ? secretKeyInvalid : otherProject)
    }
    if (options.isOverFlagQuota(project.project)) return sendError(reply, serverKeyErrors.overQuota)
    const body = prepared.get(project) ?? prepareAndCache(project)
    return body instanceof Promise ? body.then(made => sendBody(made, request, reply)) : sendBody(body, request, reply)
  }

  /** Concurrent requests wait for the same body; after a failure, the next request tries again. */
  function prepareAndCache(project: CompiledProject): Promise<PreparedBody> {
    const making = prepareBody(encode(project.definitions))
    prepared.set(project, making)
    making.then(
      made => prepared.set(project, made),
      () => prepared.delete(project),
    )
    return making
  }
}

function sendBody({ bytes, etag }: PreparedBody, request: FastifyRequest, reply: FastifyReply): void {
  reply.header('etag', etag).header('cache-control', 'private, must-revalidate')
  if (matchesEtag(request.headers['if-none-match'], etag)) reply.code(304).send()
  else sendJson(reply, 200, bytes)
}

/** Encodes in time slices, so that a project with thousands of flags does not block the event loop. */
async function prepareBody(steps: Iterator<void, string>): Promise<PreparedBody> {
  const text = await runInSlices(steps)
  return { bytes: Buffer.from(text), etag: `W/"${computeContentHash(text)}"` }
}

/** The project key from the query, or from the header of clients that keep keys out of URLs. */
function readProjectKey(request: FastifyRequest): string | null {
  const { token } = request.query as { token?: string | string[] }
  const named = Array.isArray(token) ? token[0] : token
  return named !== undefined && named !== '' ? named : readHeaderKey(request)
}
