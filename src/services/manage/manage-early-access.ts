// Early access features: each decides one flag, made for it or given. While the feature is open, a person's own choice
// decides the flag (`filters.feature_enrollment`); feature and flag are written in one transaction.
// Source: docs/wire/evaluation.md 5.7, 7.4.

import type { EarlyAccessFeature, EarlyAccessStage } from '#core/early-access/early-access-feature.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { isJsonObject, type JsonObject, mergeObjects, ownValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { EarlyAccessFeatureWithoutFlag, EarlyAccessPatch, EarlyAccessStore } from '#ports/early-access-store.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/flag-write.ts'
import type { FlagStore } from '#ports/management-store.ts'
import {
  type Change,
  changeOf,
  findLivingFlag,
  freeFlagKey,
  retryingFlagWrite,
  type Writer,
} from './flag-with-owner.ts'
import { type InvalidFlag, prepareNewFlag } from './manage-flags.ts'

export interface ManageEarlyAccessDeps {
  readonly management: EarlyAccessStore & FlagStore
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly clock: Clock
  readonly newUuid: () => string
}

export interface NewEarlyAccessFeature {
  readonly name: string
  readonly description?: string
  readonly stage?: EarlyAccessStage
  readonly documentationUrl?: string
  readonly payload?: JsonObject
  /** When absent, a flag is made that is off for everyone who has not opted in. */
  readonly flagId?: number
}

export type EarlyAccessRefusal =
  | 'not_found'
  /** The flag that was named does not exist, decides for groups, has variants, or belongs to another feature. */
  | 'no_such_flag'
  | 'flag_of_groups'
  | 'flag_with_variants'
  | 'flag_in_use'
  /** The flag is not its own, and the key may not write flags. */
  | 'flag_not_writable'
  /** Others kept changing the flag. */
  | FlagWriteRefusal
  | InvalidFlag

export function createEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  input: NewEarlyAccessFeature,
  { by, mayWriteFlags }: Writer,
): Promise<Result<EarlyAccessFeature, EarlyAccessRefusal>> {
  const { flagId, ...fields } = input
  if (flagId !== undefined && !mayWriteFlags) return Promise.resolve(err('flag_not_writable'))
  return retryingFlagWrite<EarlyAccessFeature, EarlyAccessRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    const feature = { ...featureDefaults, ...fields, id: deps.newUuid(), projectId, createdAtMs: change.nowMs }
    const flag =
      flagId === undefined
        ? await newFlagFor(deps, feature, change)
        : await givenFlag(deps, projectId, flagId, isOpen(feature.stage), change)
    if (!flag.ok) return flag
    const written = await deps.management.createEarlyAccessFeature(feature, flag.value)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
  })
}

const featureDefaults = { description: '', stage: 'draft', documentationUrl: '', payload: {} } as const

/** Archiving closes the feature: choices that were made count no more until it is opened again. */
export function updateEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  id: string,
  patch: EarlyAccessPatch,
  writer: Writer,
): Promise<Result<EarlyAccessFeature, EarlyAccessRefusal>> {
  return retryingFlagWrite<EarlyAccessFeature, EarlyAccessRefusal>(async () => {
    const current = await deps.management.findEarlyAccessFeature(projectId, id)
    if (current === null) return err('not_found')
    const isStageKept = patch.stage === undefined || isOpen(patch.stage) === isOpen(current.stage)
    const flag = isStageKept ? null : await enrolmentWrite(deps, current, isOpen(patch.stage!), writer.by)
    if (isForeign(current, flag, writer)) return err('flag_not_writable')
    const written = await deps.management.updateEarlyAccessFeature(projectId, id, patch, flag, current)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
  })
}

/** The flag stays, and is decided by its condition sets alone again. */
export function deleteEarlyAccessFeature(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  id: string,
  writer: Writer,
): Promise<Result<null, EarlyAccessRefusal>> {
  return retryingFlagWrite<null, EarlyAccessRefusal>(async () => {
    const current = await deps.management.findEarlyAccessFeature(projectId, id)
    if (current === null) return err('not_found')
    const flag = await enrolmentWrite(deps, current, false, writer.by)
    if (isForeign(current, flag, writer)) return err('flag_not_writable')
    const written = await deps.management.deleteEarlyAccessFeature(projectId, id, flag, current)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(null)
  })
}

/** Whether a flag would change that is not the feature's own, and not the key's to write. */
function isForeign(feature: EarlyAccessFeature, flag: FlagWrite | null, writer: Writer): boolean {
  return flag !== null && !feature.flagIsOwn && !writer.mayWriteFlags
}

function isOpen(stage: EarlyAccessStage): boolean {
  return stage !== 'archived'
}

async function newFlagFor(
  deps: ManageEarlyAccessDeps,
  feature: EarlyAccessFeatureWithoutFlag,
  { by, nowMs }: Change,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const key = await freeFlagKey(deps.management, feature.projectId, feature.name)
  const filters: JsonObject = { groups: [{ properties: [], rollout_percentage: 0 }] }
  if (isOpen(feature.stage)) filters.feature_enrollment = true
  const fields = { key, name: `Feature flag for ${feature.name}`, filters }
  const prepared = prepareNewFlag(feature.projectId, fields, { skipValidation: false, by }, nowMs)
  return prepared.ok ? ok({ kind: 'create', flag: prepared.value.flag }) : prepared
}

async function givenFlag(
  deps: ManageEarlyAccessDeps,
  projectId: number,
  flagId: number,
  isEnrolling: boolean,
  change: Change,
): Promise<Result<FlagWrite, EarlyAccessRefusal>> {
  const flag = await findLivingFlag(deps.management, projectId, flagId)
  if (flag === null) return err('no_such_flag')
  if ((ownValue(flag.filters, 'aggregation_group_type_index') ?? null) !== null) return err('flag_of_groups')
  // Whoever opts in gets a flag without a variant, which its readers would not expect.
  if (hasVariants(flag)) return err('flag_with_variants')
  return ok(changeOf(flag, { filters: withEnrolment(flag, isEnrolling) }, change))
}

/** Null when there is nothing to change, for the flag was deleted or is that way already. */
async function enrolmentWrite(
  { management, clock }: ManageEarlyAccessDeps,
  feature: EarlyAccessFeature,
  isEnrolling: boolean,
  by: string,
): Promise<FlagWrite | null> {
  const flag = feature.flagId === null ? null : await findLivingFlag(management, feature.projectId, feature.flagId)
  if (flag === null || (ownValue(flag.filters, 'feature_enrollment') === true) === isEnrolling) return null
  return changeOf(flag, { filters: withEnrolment(flag, isEnrolling) }, { by, nowMs: clock.nowMs() })
}

function withEnrolment(flag: Flag, isEnrolling: boolean): JsonObject {
  if (isEnrolling) return mergeObjects(flag.filters, { feature_enrollment: true })
  const filters = mergeObjects(flag.filters, {})
  delete filters.feature_enrollment
  return filters
}

function hasVariants(flag: Flag): boolean {
  const multivariate = ownValue(flag.filters, 'multivariate')
  const variants = isJsonObject(multivariate) ? ownValue(multivariate, 'variants') : undefined
  return Array.isArray(variants) && variants.length > 0
}
