// Early access features: list, create, read, change, delete.

import { type EarlyAccessFeature, earlyAccessFeatureResource } from '#core/resources/early-access-feature.ts'
import { err, type Result } from '#core/result.ts'
import {
  createEarlyAccessFeature,
  deleteEarlyAccessFeature,
  type EarlyAccessRefusal,
  updateEarlyAccessFeature,
} from '#services/manage/manage-early-access.ts'
import {
  createEarlyAccessFeatureSchema,
  earlyAccessFeatureSchema,
  encodeEarlyAccessFeature,
  updateEarlyAccessFeatureSchema,
} from '#wire/management/flags/early-access.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidInputError } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ManagementRoute, ProjectCall } from '../kit/endpoint.ts'
import { flagNotWritable, loadLinkedFlags, toFlagOwnerError, toWriter } from '../kit/linked-flags.ts'
import type { QuerySpec } from '../kit/query-params.ts'
import { createNoSuchItemError, readBodyFields, resourceRoutes } from '../kit/resource-routes.ts'

export function earlyAccessFeaturesRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management } = deps
  return resourceRoutes(deps, {
    tag: 'early_access_feature',
    resource: 'early_access_feature',
    summaries: {
      create:
        "Create an early access feature. Its flag follows users' opt-ins; without `feature_flag_id`, a flag is created.",
      update:
        "Update fields of an early access feature. Archiving suspends users' choices; any other stage restores them.",
      destroy: "Delete an early access feature. Its flag is kept and no longer follows users' choices.",
    },
    schemas: {
      item: earlyAccessFeatureSchema,
      create: createEarlyAccessFeatureSchema,
      update: updateEarlyAccessFeatureSchema,
    },
    encode: async (caller, projectId, features: readonly EarlyAccessFeature[]) => {
      const ids = features.map(feature => feature.flagId)
      const flagOf = await loadLinkedFlags(management, caller, projectId, ids)
      return features.map(feature => encodeEarlyAccessFeature(feature, flagOf(feature.flagId)))
    },
    create: async call => {
      const fields = readFields(call)
      if (!fields.ok) return fields
      const { name, feature_flag_id: flagId = null } = call.body
      const input = { ...fields.value, name, flagId }
      return toWireResult(await createEarlyAccessFeature(deps, call.project.id, input, toWriter(call)))
    },
    update: async call => {
      const { project, item, body } = call
      if ((body.feature_flag_id ?? item.flagId) !== item.flagId)
        return err(unfitError('The flag of an early access feature cannot be changed.'))
      const fields = readFields(call)
      if (!fields.ok) return fields
      return toWireResult(await updateEarlyAccessFeature(deps, project.id, item.id, fields.value, toWriter(call)))
    },
    destroy: async call =>
      toWireResult(await deleteEarlyAccessFeature(deps, call.project.id, call.item.id, toWriter(call))),
  })
}

function readFields({
  change,
  project,
  body,
}: ProjectCall<QuerySpec, object>): Result<Partial<EarlyAccessFeature>, WireError> {
  const fields = readBodyFields(earlyAccessFeatureResource, body, project, change.atMs)
  return fields.ok && !isWebAddress(fields.value.documentationUrl) ? err(noWebAddress) : fields
}

/** The address becomes a link in a page, so it must not be `javascript:`. */
function isWebAddress(text: string | undefined): boolean {
  return text === undefined || text === '' || (/^https?:\/\//i.test(text) && URL.canParse(text))
}

const noWebAddress = createInvalidInputError('documentation_url', 'Must be an http or https address, or empty.')
const unfitError = (reason: string) => createInvalidInputError('feature_flag_id', reason)
const errors = {
  not_found: createNoSuchItemError('early_access_feature'),
  no_such_flag: unfitError('The project has no feature flag with this id.'),
  flag_of_rules: unfitError('A version 2 flag (with rules) cannot be used for early access.'),
  flag_of_groups: unfitError('A flag that targets groups cannot be used for early access.'),
  flag_with_variants: unfitError('A flag with variants cannot be used for early access.'),
  flag_in_use: unfitError('Another early access feature uses this flag.'),
  flag_not_writable: flagNotWritable,
}

function toWireResult<T>(result: Result<T, EarlyAccessRefusal>): Result<T, WireError> {
  return result.ok ? result : err(toFlagOwnerError(result.error, errors, () => 'name'))
}
