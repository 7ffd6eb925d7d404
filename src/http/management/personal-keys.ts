// Personal API keys. Only a key with all scopes and all projects may manage keys: a lesser key could extend its own
// rights.

import type { TSchema } from 'typebox'
import type { Change } from '#core/author.ts'
import { findNearestScope, scopeObjects } from '#core/scopes.ts'
import { createPersonalKey, deletePersonalKey, type KeyRefusal } from '#services/manage/manage-keys.ts'
import {
  createdPersonalKeySchema,
  createPersonalKeySchema,
  encodePersonalKey,
  personalKeySchema,
} from '#wire/management/keys.ts'
import { postHogKeyFields } from '#wire/management/posthog-fields.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import {
  answer,
  createInvalidInputError,
  createPermissionDeniedError,
  noContent,
  notFoundHere,
  refusal,
} from './kit/answers.ts'
import { isLimitedToProjects } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type InstanceEndpoint, instanceRoutes, type ManagementRoute } from './kit/endpoint.ts'
import { answerCountedList, encodeObjects } from './kit/list-answers.ts'
import { pageParams, type QuerySpec } from './kit/query-params.ts'

export function personalKeysRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...keyRoutes(deps, {
      route: 'GET /api/personal_api_keys',
      id: 'personal_api_keys_list',
      summary: 'List personal API keys, without their secrets.',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(personalKeySchema) },
      handle: call =>
        answerCountedList(
          call,
          call.query,
          slice => deps.management.listPersonalKeys(slice),
          encodeObjects(encodePersonalKey),
        ),
    }),
    ...keyRoutes(deps, {
      route: 'POST /api/personal_api_keys',
      id: 'personal_api_keys_create',
      summary: 'Create a personal API key. The key itself, `value`, is returned only once.',
      body: createPersonalKeySchema,
      postHogFields: postHogKeyFields,
      success: { status: 201, schema: createdPersonalKeySchema },
      handle: async ({ change, body }) => {
        const { label, scopes, scoped_teams: scopedProjectIds } = body
        const input = { label, scopes, scopedProjectIds: scopedProjectIds ?? [] }
        const created = await createPersonalKey(deps, input, change)
        if (!created.ok) return refusal(toKeyError(created.error))
        return answer(201, { ...encodePersonalKey(created.value.key), value: created.value.secret })
      },
    }),
    ...instanceRoutes(deps, {
      route: 'GET /api/personal_api_keys/@current',
      id: 'personal_api_keys_current',
      summary: 'Get the calling key: its scopes and projects.',
      scope: 'any',
      success: { status: 200, schema: personalKeySchema },
      handle: ({ caller }) => answerKey(deps, caller.id),
    }),
    ...instanceRoutes(deps, {
      route: 'DELETE /api/personal_api_keys/@current',
      id: 'personal_api_keys_current_destroy',
      summary: 'Delete the calling key. It stops working immediately.',
      scope: 'any',
      success: { status: 204 },
      handle: ({ caller, change }) => answerKeyDeletion(deps, caller.id, change),
    }),
    ...keyRoutes(deps, {
      route: 'GET /api/personal_api_keys/:keyId',
      id: 'personal_api_keys_retrieve',
      summary: 'Get one personal API key, without its secret.',
      success: { status: 200, schema: personalKeySchema },
      handle: ({ params }) => answerKey(deps, params.keyId!),
    }),
    ...keyRoutes(deps, {
      route: 'DELETE /api/personal_api_keys/:keyId',
      id: 'personal_api_keys_destroy',
      summary: 'Delete a personal API key. It stops working immediately.',
      success: { status: 204 },
      handle: ({ params, change }) => answerKeyDeletion(deps, params.keyId!, change),
    }),
  ]
}

async function answerKey({ management }: ManagementDeps, keyId: string) {
  const key = await management.findPersonalKey(keyId)
  return key === null ? refusal(notFoundHere) : answer(200, encodePersonalKey(key))
}

async function answerKeyDeletion(deps: ManagementDeps, keyId: string, change: Change) {
  const deleted = await deletePersonalKey(deps, keyId, change)
  return deleted.ok ? noContent : refusal(notFoundHere)
}

/** Endpoints that manage keys, for a key with all scopes and all projects. */
function keyRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: Omit<InstanceEndpoint<Q, S>, 'scope'>,
): ManagementRoute[] {
  return instanceRoutes<Q, S>(deps, {
    ...endpoint,
    scope: '*',
    handle: async call => (isLimitedToProjects(call.caller) ? refusal(limitedKey) : endpoint.handle(call)),
  })
}

const limitedKey = createPermissionDeniedError('A key that is limited to some projects cannot manage keys.')

function formatUnknownScope(scope: string): string {
  const known = `* or ${scopeObjects.join(', ')} with :read or :write`
  return `Unknown scope '${scope}'. Did you mean ${findNearestScope(scope)}? Scopes are ${known}.`
}

function toKeyError(error: KeyRefusal): WireError {
  switch (error.kind) {
    case 'no_scopes':
      return createInvalidInputError('scopes', 'Send at least one scope; ["*"] grants all.')
    case 'unknown_scope':
      return createInvalidInputError(`scopes.${error.index}`, formatUnknownScope(error.scope))
    case 'unknown_project':
      return createInvalidInputError(`scoped_teams.${error.index}`, `Project ${error.projectId} does not exist.`)
    default:
      return error satisfies never
  }
}
