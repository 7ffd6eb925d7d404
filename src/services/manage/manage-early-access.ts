// Manages early access features. Each controls one flag, which was made for it or existed before. While the feature is
// open, a person's own choice decides the flag (`filters.feature_enrollment`). Feature and flag are written in one
// transaction.
// Source: docs/wire/evaluation.md 5.7, 7.4.

import type { Flag } from '#core/flags/definitions/flag.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { getOwnValue, isJsonObject, type JsonObject, mergeObjects } from '#core/json.ts'
import type { EarlyAccessFeature, EarlyAccessStage } from '#core/resources/early-access-feature.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagStore, FlagWrite, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { ResourceStore } from '#ports/state/resource-store.ts'
import {
  type FlagOwnerDeps,
  findFreeFlagKey,
  findUndeletedFlag,
  prepareCheckedNewFlag,
  toFlagChange,
  type WriterAccess,
  writeDefinitionWithFlags,
} from './flag-with-owner.ts'
import type { InvalidFlag } from './manage-flags.ts'

export interface ManageEarlyAccessDeps extends FlagOwnerDeps {
  readonly management: Omit<ResourceStore, 'listResources'> & Pick<FlagStore, 'findFlag'>
}

export type NewEarlyAccessFeature = Partial<EarlyAccessFeature> & {
  readonly name: string
  /** When null, a flag is created that is on only for people who opted in. */
  readonly flagId: number | null
}

export type EarlyAccessRefusal =
  | 'not_found'
  /** The given flag does not exist, decides for groups, has rules of version 2, has variants, or belongs to another feature. */
  | 'no_such_flag'
  | 'flag_of_groups'
  | 'flag_of_rules'
  | 'flag_with_variants'
  | 'flag_in_use'
  /** The flag was not made for the feature, and the key may not write flags. */
  | 'flag_not_writable'
  /** Other writers repeatedly changed the flag first. */
  | FlagWriteRefusal
  | InvalidFlag

export function createEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  input: NewEarlyAccessFeature,
  { change, mayWriteFlags }: WriterAccess,
): Promise<Result<EarlyAccessFeature, EarlyAccessRefusal>> {
  const { flagId, ...fields } = input
  if (flagId !== null && !mayWriteFlags) return Promise.resolve(err('flag_not_writable'))
  return writeDefinitionWithFlags<EarlyAccessFeature, EarlyAccessRefusal>(deps, async () => {
    const feature = { stage: 'draft' as const, ...fields, id: deps.newUuid(), projectId }
    const flag =
      flagId === null
        ? await prepareNewFlagFor(deps, feature)
        : await prepareExistingFlag(deps, projectId, flagId, isOpen(feature.stage))
    if (!flag.ok) return flag
    return deps.management.createResource('early_access_feature', feature, { flagId: flag.value }, change)
  })
}

/** Archiving closes the feature: people's choices do not count until it is opened again. */
export function updateEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  id: string,
  patch: Partial<EarlyAccessFeature>,
  writer: WriterAccess,
): Promise<Result<EarlyAccessFeature, EarlyAccessRefusal>> {
  return writeDefinitionWithFlags<EarlyAccessFeature, EarlyAccessRefusal>(deps, async () => {
    const current = await deps.management.findResource('early_access_feature', projectId, id)
    if (current === null) return err('not_found')
    const isStageKept = patch.stage === undefined || isOpen(patch.stage) === isOpen(current.stage)
    const flag = isStageKept ? null : await prepareEnrolmentWrite(deps, current, isOpen(patch.stage!))
    if (isFlagWriteForbidden(current, flag, writer)) return err('flag_not_writable')
    return deps.management.updateResource(
      'early_access_feature',
      projectId,
      id,
      patch,
      { flagId: flag },
      writer.change,
      current,
    )
  })
}

/** The flag stays, and is then decided by its condition sets alone. */
export function deleteEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  id: string,
  writer: WriterAccess,
): Promise<Result<null, EarlyAccessRefusal>> {
  return writeDefinitionWithFlags<null, EarlyAccessRefusal>(deps, async () => {
    const current = await deps.management.findResource('early_access_feature', projectId, id)
    if (current === null) return err('not_found')
    const flag = await prepareEnrolmentWrite(deps, current, false)
    if (isFlagWriteForbidden(current, flag, writer)) return err('flag_not_writable')
    const basedOn = { basedOn: current }
    return deps.management.deleteResource(
      'early_access_feature',
      projectId,
      id,
      { flagId: flag },
      writer.change,
      basedOn,
    )
  })
}

/** Whether the write changes a flag that was not made for the feature and that the key may not write. */
function isFlagWriteForbidden(feature: EarlyAccessFeature, flag: FlagWrite | null, writer: WriterAccess): boolean {
  return flag !== null && !feature.flagIsOwn && !writer.mayWriteFlags
}

function isOpen(stage: EarlyAccessStage): boolean {
  return stage !== 'archived'
}

async function prepareNewFlagFor(
  deps: ManageEarlyAccessDeps,
  feature: Pick<EarlyAccessFeature, 'projectId' | 'name' | 'stage'>,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const key = await findFreeFlagKey(deps.management, feature.projectId, feature.name)
  const filters: JsonObject = { groups: [{ properties: [], rollout_percentage: 0 }] }
  if (isOpen(feature.stage)) filters.feature_enrollment = true
  const fields = { key, name: `Feature flag for ${feature.name}`, filters }
  const checked = await prepareCheckedNewFlag(deps, feature.projectId, fields)
  return checked.ok ? ok({ kind: 'create', flag: checked.value }) : checked
}

async function prepareExistingFlag(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  flagId: number,
  isEnrolling: boolean,
): Promise<Result<FlagWrite, EarlyAccessRefusal>> {
  const flag = await findUndeletedFlag(deps.management, projectId, flagId)
  if (flag === null) return err('no_such_flag')
  if ((getOwnValue(flag.filters, 'aggregation_group_type_index') ?? null) !== null) return err('flag_of_groups')
  if (readConfigVersion(flag.filters) !== 1) return err('flag_of_rules')
  // Refused: people who opt in would get the flag without a variant, which its readers would not expect.
  if (hasVariants(flag)) return err('flag_with_variants')
  return ok(toFlagChange(flag, { filters: buildEnrolmentFilters(flag, isEnrolling) }))
}

/** Null when there is nothing to change: the flag was deleted, or already has that state. */
async function prepareEnrolmentWrite(
  { management }: ManageEarlyAccessDeps,
  feature: EarlyAccessFeature,
  isEnrolling: boolean,
): Promise<FlagWrite | null> {
  const flag = feature.flagId === null ? null : await findUndeletedFlag(management, feature.projectId, feature.flagId)
  if (flag === null || readConfigVersion(flag.filters) !== 1) return null
  if ((getOwnValue(flag.filters, 'feature_enrollment') === true) === isEnrolling) return null
  return toFlagChange(flag, { filters: buildEnrolmentFilters(flag, isEnrolling) })
}

function buildEnrolmentFilters(flag: Flag, isEnrolling: boolean): JsonObject {
  if (isEnrolling) return mergeObjects(flag.filters, { feature_enrollment: true })
  const filters = mergeObjects(flag.filters, {})
  delete filters.feature_enrollment
  return filters
}

function hasVariants(flag: Flag): boolean {
  const multivariate = getOwnValue(flag.filters, 'multivariate')
  const variants = isJsonObject(multivariate) ? getOwnValue(multivariate, 'variants') : undefined
  return Array.isArray(variants) && variants.length > 0
}
