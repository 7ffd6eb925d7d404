// Early access features: list, create, read, change, delete.

import { err, type Result } from '#core/result.ts'
import type { EarlyAccessStore } from '#ports/state/early-access-store.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { ManageEarlyAccessDeps } from '#services/manage/manage-early-access.ts'
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
} from '#wire/management/flags/early-access.ts'
import { postHogFeatureFields } from '#wire/management/posthog-fields.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalidInput, missing } from '../kit/answers.ts'
import type { EndpointDeps, ManagementRoute } from '../kit/endpoint.ts'
import { flagOwnerRoutes } from '../kit/flag-owner-routes.ts'
import { flagNotWritable, flagOwnerError, linkedFlagsById, writerOf } from '../kit/owned-flags.ts'

type EarlyAccessDeps = EndpointDeps &
  ManageEarlyAccessDeps & { readonly management: EarlyAccessStore & Pick<FlagStore, 'listFlagsById'> }

export function earlyAccessFeaturesRoutes(deps: EarlyAccessDeps): ManagementRoute[] {
  const { management } = deps
  return flagOwnerRoutes(deps, {
    tag: 'early_access_feature',
    scope: 'early_access_feature',
    itemPath: '/early_access_feature/:featureId',
    missing: noSuchFeature,
    summaries: {
      list: 'List early access features, newest first.',
      create:
        'Create a feature that people may try. Its flag then follows their choice; without one given, one is made.',
      retrieve: 'One early access feature.',
      update: 'Change some of a feature. Archiving it ends what people chose; another stage brings it back.',
      destroy: 'Delete a feature. Its flag stays and no longer follows what people chose.',
    },
    schemas: {
      item: earlyAccessFeatureSchema,
      create: createEarlyAccessFeatureSchema,
      update: updateEarlyAccessFeatureSchema,
    },
    postHogFields: postHogFeatureFields,
    filters: {},
    find: (projectId, id) => management.findEarlyAccessFeature(projectId, id.toLowerCase()),
    list: (projectId, page) => management.listEarlyAccessFeatures(projectId, page),
    encode: async (caller, projectId, features) => {
      const ids = features.map(feature => feature.flagId)
      const flagOf = await linkedFlagsById(management, caller, projectId, ids)
      return features.map(feature => encodeEarlyAccessFeature(feature, flagOf(feature.flagId)))
    },
    create: async ({ caller, project, body }) => {
      const fields = decodeEarlyAccessFeature(body)
      if (!isWebAddress(fields.documentationUrl)) return err(noWebAddress)
      const flag = typeof body.feature_flag_id === 'number' ? { flagId: body.feature_flag_id } : {}
      const input = { ...fields, ...flag, name: body.name }
      return orError(await createEarlyAccessFeature(deps, project.id, input, writerOf(caller)))
    },
    update: async ({ caller, project, item, body }) => {
      if ((body.feature_flag_id ?? item.flagId) !== item.flagId) return err(unfit('A feature keeps its flag.'))
      const fields = decodeEarlyAccessFeature(body)
      if (!isWebAddress(fields.documentationUrl)) return err(noWebAddress)
      return orError(await updateEarlyAccessFeature(deps, project.id, item.id, fields, writerOf(caller)))
    },
    destroy: async ({ caller, project, item }) =>
      orError(await deleteEarlyAccessFeature(deps, project.id, item.id, writerOf(caller))),
  })
}

/** The address becomes a link in a page, so it must not be `javascript:`. */
function isWebAddress(text: string | undefined): boolean {
  return text === undefined || text === '' || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const noWebAddress = invalidInput('documentation_url', 'Must be an http or https address, or empty.')
const noSuchFeature = missing('There is no early access feature with this id here.')
const unfit = (why: string) => invalidInput('feature_flag_id', why)
const errors = {
  not_found: noSuchFeature,
  no_such_flag: unfit('There is no feature flag with this id here.'),
  flag_of_rules: unfit('A flag with rules of version 2 cannot follow what people chose.'),
  flag_of_groups: unfit('A flag that decides for groups cannot follow what people chose.'),
  flag_with_variants: unfit('A flag with variants cannot follow what people chose.'),
  flag_in_use: unfit('Another early access feature has this flag.'),
  flag_not_writable: flagNotWritable,
}

function orError<T>(result: Result<T, EarlyAccessRefusal>): Result<T, WireError> {
  return result.ok ? result : err(flagOwnerError(result.error, errors, () => 'name'))
}
