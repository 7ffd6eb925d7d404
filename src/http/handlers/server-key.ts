// Definitions and remote configuration need a personal key that may read flags, or a secret key of a project. This file
// identifies the key; handlers ask `mayOpenProject` whether it opens the project in question.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import type { PersonalKey } from '#core/personal-key.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { secretKeyPrefix } from '#services/manage/generate-key.ts'
import type { PersonalKeyCheck } from '#services/manage/personal-key-check.ts'
import { secretLengthMax } from '#services/manage/secret-check.ts'
import { createSecretDigestCache, type SecretDigests } from '#services/manage/secret-digests.ts'
import { serverKeyErrors } from '#wire/flags/server-key-errors.ts'
import type { WireError } from '#wire/wire-error.ts'
import { stateUnavailable } from '../management/kit/answers.ts'
import {
  hasKeyInQuery,
  hasScope,
  keyInQuery,
  mayUseProject,
  readBearerSecret,
  refuseCaller,
} from '../management/kit/authenticate.ts'
import type { Route } from '../shared/route.ts'
import type { LogStateOutage } from '../shared/state-outage.ts'

export type ServerCaller =
  | { readonly kind: 'personal'; readonly key: PersonalKey }
  | { readonly kind: 'secret'; readonly project: CompiledProject }

export interface ServerKeyDeps {
  readonly keyCheck: PersonalKeyCheck
  /** See `DefinitionCache.findBySecretHash`. */
  readonly findBySecretHash: (secretHash: string) => CompiledProject | null
  readonly noteStateAway: LogStateOutage
}

/** A handler of a `server_key` route, called with the caller. Requests with an invalid key never reach the handler. */
export type ServerKeyHandler = (
  caller: ServerCaller,
  request: FastifyRequest,
  reply: FastifyReply,
) => void | Promise<void>

/** How many secret keys' digests each route caches: as many as are usually in use. */
const keptDigestsMax = 1_000

export function requireServerKey(
  deps: ServerKeyDeps,
  route: Pick<Route, 'acceptsKeyInQuery'>,
  handler: ServerKeyHandler,
): Route['handler'] {
  const acceptsKeyInQuery = route.acceptsKeyInQuery === true
  const digests = createSecretDigestCache(keptDigestsMax)
  // Creates no needless promises, since SDKs poll unchanged definitions all the time.
  return (request, reply) => {
    const answer = (caller: Result<ServerCaller, WireError>) =>
      caller.ok ? handler(caller.value, request, reply) : refuseCaller(reply, caller.error)
    const refuseOrRethrow = (error: unknown) => {
      if (!(error instanceof PortError)) throw error
      deps.noteStateAway(error, request)
      refuseCaller(reply, stateUnavailable)
    }
    try {
      const caller = findCaller(deps, digests, request, acceptsKeyInQuery)
      const answered = mapMaybePromise(caller, answer)
      return answered instanceof Promise ? answered.catch(refuseOrRethrow) : answered
    } catch (error) {
      refuseOrRethrow(error)
    }
  }
}

/** Whether the key opens the project. */
export function mayOpenProject(caller: ServerCaller, projectId: number): boolean {
  return caller.kind === 'secret' ? caller.project.project.id === projectId : mayUseProject(caller.key, projectId)
}

function findCaller(
  deps: ServerKeyDeps,
  digests: SecretDigests,
  request: FastifyRequest,
  acceptsKeyInQuery: boolean,
): MaybePromise<Result<ServerCaller, WireError>> {
  if (!acceptsKeyInQuery && hasKeyInQuery(request)) return err(keyInQuery)
  const secret = readBearerSecret(request) ?? (acceptsKeyInQuery ? readQueryKey(request) : null)
  if (secret === null) return err(serverKeyErrors.noCredentials)
  if (secret.startsWith(secretKeyPrefix)) {
    const hash = secret.length > secretLengthMax ? null : digests.of(secret)
    const project = hash === null ? null : deps.findBySecretHash(hash)
    if (hash === null || project === null) return err(serverKeyErrors.secretKeyInvalid)
    digests.keep(secret, hash)
    return ok({ kind: 'secret', project })
  }
  return mapMaybePromise(deps.keyCheck.find(secret), toPersonalCaller)
}

function toPersonalCaller(key: PersonalKey | null): Result<ServerCaller, WireError> {
  if (key === null) return err(serverKeyErrors.personalKeyInvalid)
  return hasScope(key, 'feature_flag:read') ? ok({ kind: 'personal', key }) : err(serverKeyErrors.missingScope)
}

/** posthog-python before 2022 sends its key in the query. */
function readQueryKey(request: FastifyRequest): string | null {
  const sent = (request.query as Record<string, string | string[]>).personal_api_key
  return typeof sent === 'string' && sent !== '' ? sent : null
}
