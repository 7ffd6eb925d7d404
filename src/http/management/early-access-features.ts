// Early access features: list, create, read, change, delete.

import type { EarlyAccessFeature } from '#core/early-access/early-access-feature.ts'
import type { PersonalKey } from '#ports/management-store.ts'
import {
  createEarlyAccessFeature,
  deleteEarlyAccessFeature,
  type EarlyAccessRefusal,
  updateEarlyAccessFeature,
} from '#services/manage/manage-early-access.ts'
import {
  createEarlyAccessFeatureSchema,
  decodeEarlyAccessFeature,
  earlyAccessFeatureSchema,
  encodeEarlyAccessFeature,
  updateEarlyAccessFeatureSchema,
} from '#wire/management/early-access.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { type Answer, answer, invalidInput, missing, noContent, refusal } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, projectRoutes } from './kit/endpoint.ts'
import { flagKeepsChanging, flagNotWritable, invalidFlagError, linkedFlagsById, writerOf } from './kit/owned-flags.ts'
import { countedPage } from './kit/page.ts'
import { pageParams } from './kit/query-params.ts'

const tag = 'early_access_feature'
const read = `${tag}:read`
const write = `${tag}:write`
const path = `/${tag}`
const itemPath = `${path}/:featureId`

export function earlyAccessFeaturesRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management } = deps
  const encodeAll = async (caller: PersonalKey, projectId: number, features: readonly EarlyAccessFeature[]) => {
    const ids = features.map(feature => feature.flagId)
    const find = await linkedFlagsById(management, caller, projectId, ids)
    return features.map(feature => encodeEarlyAccessFeature(feature, find(feature.flagId)))
  }
  const encode = async (caller: PersonalKey, feature: EarlyAccessFeature) =>
    (await encodeAll(caller, feature.projectId, [feature]))[0]

  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path,
      id: 'early_access_feature_list',
      tag,
      summary: 'List early access features, newest first.',
      scope: read,
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(earlyAccessFeatureSchema) },
      handle: async ({ request, caller, project, query }) => {
        const { count, results } = await management.listEarlyAccessFeatures(project.id, query)
        return answer(200, countedPage(request, query, count, await encodeAll(caller, project.id, results)))
      },
    }),
    ...projectRoutes(deps, {
      method: 'POST',
      path,
      id: 'early_access_feature_create',
      tag,
      summary:
        'Create a feature that people may try. Its flag then follows their choice; without one given, one is made.',
      scope: write,
      body: createEarlyAccessFeatureSchema,
      success: { status: 201, schema: earlyAccessFeatureSchema },
      handle: async ({ caller, project, body }) => {
        const fields = decodeEarlyAccessFeature(body)
        if (!isWebAddress(fields.documentationUrl)) return refusal(noWebAddress)
        const flag = typeof body.feature_flag_id === 'number' ? { flagId: body.feature_flag_id } : {}
        const input = { ...fields, ...flag, name: body.name }
        const created = await createEarlyAccessFeature(deps, project.id, input, writerOf(caller))
        return created.ok ? answer(201, await encode(caller, created.value)) : refuse(created.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: itemPath,
      id: 'early_access_feature_retrieve',
      tag,
      summary: 'One early access feature.',
      scope: read,
      success: { status: 200, schema: earlyAccessFeatureSchema },
      handle: async ({ caller, project, params }) => {
        const feature = await management.findEarlyAccessFeature(project.id, params.featureId!.toLowerCase())
        return feature === null ? refusal(noSuchFeature) : answer(200, await encode(caller, feature))
      },
    }),
    ...projectRoutes(deps, {
      method: 'PATCH',
      path: itemPath,
      id: 'early_access_feature_partial_update',
      tag,
      summary: 'Change some of a feature. Archiving it ends what people chose; another stage brings it back.',
      scope: write,
      body: updateEarlyAccessFeatureSchema,
      success: { status: 200, schema: earlyAccessFeatureSchema },
      handle: async ({ caller, project, params, body }) => {
        const fields = decodeEarlyAccessFeature(body)
        if (!isWebAddress(fields.documentationUrl)) return refusal(noWebAddress)
        const id = params.featureId!.toLowerCase()
        const updated = await updateEarlyAccessFeature(deps, project.id, id, fields, writerOf(caller))
        return updated.ok ? answer(200, await encode(caller, updated.value)) : refuse(updated.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'DELETE',
      path: itemPath,
      id: 'early_access_feature_destroy',
      tag,
      summary: 'Delete a feature. Its flag stays and no longer follows what people chose.',
      scope: write,
      success: { status: 204 },
      handle: async ({ caller, project, params }) => {
        const id = params.featureId!.toLowerCase()
        const deleted = await deleteEarlyAccessFeature(deps, project.id, id, writerOf(caller))
        return deleted.ok ? noContent : refuse(deleted.error)
      },
    }),
  ]
}

/** It becomes a link in a page: no `javascript:`. */
function isWebAddress(text: string | undefined): boolean {
  return text === undefined || text === '' || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const noWebAddress = invalidInput('documentation_url', 'Must be an http or https address, or empty.')
const noSuchFeature = missing('There is no early access feature with this id here.')

function refuse(error: EarlyAccessRefusal): Answer {
  if (typeof error === 'object') return refusal(invalidFlagError(error, () => 'name'))
  switch (error) {
    case 'not_found':
      return refusal(noSuchFeature)
    case 'no_such_flag':
      return refusal(invalidInput('feature_flag_id', 'There is no feature flag with this id here.'))
    case 'flag_of_groups':
      return refusal(invalidInput('feature_flag_id', 'A flag that decides for groups cannot follow what people chose.'))
    case 'flag_with_variants':
      return refusal(invalidInput('feature_flag_id', 'A flag with variants cannot follow what people chose.'))
    case 'flag_in_use':
      return refusal(invalidInput('feature_flag_id', 'Another early access feature has this flag.'))
    case 'flag_not_writable':
      return refusal(flagNotWritable)
    case 'key_taken':
    case 'flag_changed':
    case 'definitions_changed':
      return refusal(flagKeepsChanging)
    default:
      return error satisfies never
  }
}
