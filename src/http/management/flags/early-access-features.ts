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
import { invalidInput, notFoundError } from '../kit/answers.ts'
import type { EndpointDeps, ManagementRoute } from '../kit/endpoint.ts'
import { flagOwnerRoutes } from '../kit/flag-owner-routes.ts'
import { flagNotWritable, flagOwnerError, loadLinkedFlags, toWriter } from '../kit/owned-flags.ts'

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
        "Create an early access feature. Its flag follows users' opt-ins; without `feature_flag_id`, a flag is created.",
      retrieve: 'Get one early access feature.',
      update:
        "Update fields of an early access feature. Archiving suspends users' choices; any other stage restores them.",
      destroy: "Delete an early access feature. Its flag is kept and no longer follows users' choices.",
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
      const flagOf = await loadLinkedFlags(management, caller, projectId, ids)
      return features.map(feature => encodeEarlyAccessFeature(feature, flagOf(feature.flagId)))
    },
    create: async call => {
      const { project, body } = call
      const fields = decodeEarlyAccessFeature(body)
      if (!isWebAddress(fields.documentationUrl)) return err(noWebAddress)
      const flag = typeof body.feature_flag_id === 'number' ? { flagId: body.feature_flag_id } : {}
      const input = { ...fields, ...flag, name: body.name }
      return toWireResult(await createEarlyAccessFeature(deps, project.id, input, toWriter(call)))
    },
    update: async call => {
      const { project, item, body } = call
      if ((body.feature_flag_id ?? item.flagId) !== item.flagId)
        return err(unfitError('The flag of an early access feature cannot be changed.'))
      const fields = decodeEarlyAccessFeature(body)
      if (!isWebAddress(fields.documentationUrl)) return err(noWebAddress)
      return toWireResult(await updateEarlyAccessFeature(deps, project.id, item.id, fields, toWriter(call)))
    },
    destroy: async call =>
      toWireResult(await deleteEarlyAccessFeature(deps, call.project.id, call.item.id, toWriter(call))),
  })
}

/** The address becomes a link in a page, so it must not be `javascript:`. */
function isWebAddress(text: string | undefined): boolean {
  return text === undefined || text === '' || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const noWebAddress = invalidInput('documentation_url', 'Must be an http or https address, or empty.')
const noSuchFeature = notFoundError('The project has no early access feature with this id.')
const unfitError = (reason: string) => invalidInput('feature_flag_id', reason)
const errors = {
  not_found: noSuchFeature,
  no_such_flag: unfitError('The project has no feature flag with this id.'),
  flag_of_rules: unfitError('A version 2 flag (with rules) cannot be used for early access.'),
  flag_of_groups: unfitError('A flag that targets groups cannot be used for early access.'),
  flag_with_variants: unfitError('A flag with variants cannot be used for early access.'),
  flag_in_use: unfitError('Another early access feature uses this flag.'),
  flag_not_writable: flagNotWritable,
}

function toWireResult<T>(result: Result<T, EarlyAccessRefusal>): Result<T, WireError> {
  return result.ok ? result : err(flagOwnerError(result.error, errors, () => 'name'))
}
