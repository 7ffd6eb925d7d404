// Personal API keys. Only a key with all scopes and all projects manages keys: another one could widen itself.

import { createPersonalKey, deletePersonalKey, type KeyRefusal } from '#services/manage-keys.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import {
  createdPersonalKeySchema,
  createPersonalKeySchema,
  encodePersonalKey,
  personalKeySchema,
} from '#wire/management.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, invalidInput, noContent, notFoundHere, permissionDenied, refusal } from './answers.ts'
import type { ManagementDeps } from './deps.ts'
import { type Call, instanceRoutes, type ManagementRoute } from './endpoint.ts'
import { countedPage } from './page.ts'
import { pageParams, type QuerySpec } from './query-params.ts'

const tag = 'personal_api_keys'
const paths = ['/api/personal_api_keys']
const onePath = ['/api/personal_api_keys/:keyId']

export function personalKeysRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...instanceRoutes(deps, {
      method: 'GET',
      paths,
      id: 'personal_api_keys_list',
      tag,
      summary: 'List personal API keys, without their secrets.',
      scope: '*',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(personalKeySchema) },
      handle: async ({ request, caller, query }) => {
        if (isLimited(caller)) return refuseLimited()
        const keys = await deps.management.listPersonalKeys()
        const results = keys.slice(query.offset, query.offset + query.limit).map(encodePersonalKey)
        return answer(200, countedPage(request, query, keys.length, results))
      },
    }),
    ...instanceRoutes(deps, {
      method: 'POST',
      paths,
      id: 'personal_api_keys_create',
      tag,
      summary: 'Create a personal API key. `value`, the key itself, is in this answer only.',
      scope: '*',
      body: createPersonalKeySchema,
      success: { status: 201, schema: createdPersonalKeySchema },
      handle: async ({ caller, body }) => {
        if (isLimited(caller)) return refuseLimited()
        const created = await createPersonalKey(deps, {
          label: body.label,
          scopes: body.scopes,
          scopedProjectIds: body.scoped_teams ?? [],
        })
        if (!created.ok) return refusal(keyError(created.error))
        return answer(201, { ...encodePersonalKey(created.value.key), value: created.value.secret })
      },
    }),
    ...instanceRoutes(deps, {
      method: 'GET',
      paths: ['/api/personal_api_keys/@current'],
      id: 'personal_api_keys_current',
      tag,
      summary: 'The key that asks: its scopes and projects.',
      scope: 'any',
      success: { status: 200, schema: personalKeySchema },
      handle: async ({ caller }) => answer(200, encodePersonalKey(caller)),
    }),
    ...instanceRoutes(deps, {
      method: 'GET',
      paths: onePath,
      id: 'personal_api_keys_retrieve',
      tag,
      summary: 'One personal API key, without its secret.',
      scope: '*',
      success: { status: 200, schema: personalKeySchema },
      handle: async ({ caller, params }) => {
        if (isLimited(caller)) return refuseLimited()
        const key = (await deps.management.listPersonalKeys()).find(({ id }) => id === params.keyId)
        return key === undefined ? refusal(notFoundHere) : answer(200, encodePersonalKey(key))
      },
    }),
    ...instanceRoutes(deps, {
      method: 'DELETE',
      paths: onePath,
      id: 'personal_api_keys_destroy',
      tag,
      summary: 'Delete a personal API key. It stops working at once.',
      scope: '*',
      success: { status: 204 },
      handle: async ({ caller, params }) => {
        if (isLimited(caller)) return refuseLimited()
        const deleted = await deletePersonalKey(deps, params.keyId!)
        return deleted.ok ? noContent : refusal(notFoundHere)
      },
    }),
  ]
}

function isLimited(caller: Call<QuerySpec, unknown>['caller']): boolean {
  return caller.scopedProjectIds.length > 0
}

function refuseLimited() {
  return refusal(permissionDenied('A key that is limited to some projects cannot manage keys.'))
}

function keyError(error: KeyRefusal): WireError {
  switch (error.kind) {
    case 'no_scopes':
      return invalidInput('scopes', 'Name at least one scope; ["*"] is everything.')
    case 'unknown_scope':
      return invalidInput(`scopes.${error.index}`, `'${error.scope}' is no scope: use * or such as feature_flag:read.`)
    case 'unknown_project':
      return invalidInput(`scoped_teams.${error.index}`, `There is no project ${error.projectId}.`)
    default:
      return error satisfies never
  }
}
