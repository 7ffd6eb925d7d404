// Writes that change one thing of a flag and leave the rest unchanged: switch it, archive it, set one percentage, roll
// it out to everyone. Each is a function from the flag as it was read to the fields that change. Source:
// docs/wire/private-api.md 4.2.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, mergeObjects, readJsonNumber } from '../../json.ts'
import { err, ok, type Result } from '../../result.ts'
import type { Flag } from './flag.ts'
import { readConfigVersion } from './read-rules.ts'

export interface FlagChangeRefusal {
  readonly code: 'invalid_input' | 'unsupported_config_version'
  /** The field of the request that cannot be applied; null when the flag itself does not allow the write. */
  readonly attr: string | null
  readonly message: string
}

/** The parts of a flag that narrow writes read and change. */
export type ChangeableFlag = Pick<Flag, 'active' | 'archived' | 'filters'>

/**
 * @returns the fields to write, none when the flag is already in that state; or why the write does not fit the flag.
 */
export type SingleFlagChange = (flag: ChangeableFlag) => Result<Partial<ChangeableFlag>, FlagChangeRefusal>

export const enable: SingleFlagChange = flag => {
  if (flag.archived) return refuseWrite(null, 'Cannot enable an archived feature flag. Unarchive it first.')
  return ok(flag.active ? {} : { active: true })
}

export const disable: SingleFlagChange = flag => ok(flag.active ? { active: false } : {})

/** The flag is switched off too, since an archived flag is never active. */
export const archive: SingleFlagChange = flag => ok(flag.archived ? {} : { archived: true })

export const unarchive: SingleFlagChange = flag => ok(flag.archived ? { archived: false } : {})

export function setConditionRollout(conditionIndex: number, rolloutPercentage: number): SingleFlagChange {
  return ({ filters }) => {
    if (readConfigVersion(filters) !== 1) return hasNoConditions
    const sets = readListMember(filters, 'groups')
    const attr = 'condition_index'
    if (sets.length === 0) return refuseWrite(attr, 'This feature flag has no release conditions.')
    if (conditionIndex >= sets.length)
      return refuseWrite(attr, `Condition ${conditionIndex} does not exist. It has ${sets.length}.`)
    const set = sets[conditionIndex]
    if (!isJsonObject(set))
      return refuseWrite(attr, `Condition ${conditionIndex} is not an object. Repair the filters first.`)
    if (readJsonNumber(getOwnValue(set, 'rollout_percentage') ?? null) === rolloutPercentage) return ok({})
    const changed = mergeObjects(set, { rollout_percentage: rolloutPercentage })
    return ok({ filters: mergeObjects(filters, { groups: sets.with(conditionIndex, changed) }) })
  }
}

/** @param variantKey the variant that everyone gets; null for a flag without variants. */
export function rollOutToEveryone(variantKey: string | null): SingleFlagChange {
  return ({ filters }) => {
    if (readConfigVersion(filters) !== 1) return hasNoConditions
    const attr = 'variant_key'
    const variantKeys = variantsOf(filters).map(variant => (isJsonObject(variant) ? getOwnValue(variant, 'key') : null))
    if (variantKey === null && variantKeys.length > 0)
      return refuseWrite(attr, `Name one of its variants: ${variantKeys.join(', ')}`)
    if (variantKey !== null && variantKeys.length === 0) return refuseWrite(attr, 'This feature flag has no variants.')
    if (variantKey !== null && !variantKeys.includes(variantKey))
      return refuseWrite(attr, `This feature flag has no variant '${variantKey}'.`)
    if (getOwnValue(filters, 'feature_enrollment') === true)
      return refuseWrite(
        null,
        'This feature flag belongs to an early access feature: archive or delete that feature first.',
      )
    const isInFront = isForEveryone(readListMember(filters, 'groups')[0], filters)
    if (isInFront && (variantKey === null || isAllOnVariant(filters, variantKey))) return ok({})
    const inFront = isInFront ? filters : prependEveryoneCondition(filters)
    return ok({ filters: variantKey === null ? inFront : assignAllToVariant(inFront, variantKey) })
  }
}

/** The filters with a condition set for everyone in front of the other sets. */
export function prependEveryoneCondition(filters: JsonObject): JsonObject {
  return mergeObjects(filters, {
    groups: [{ properties: [], rollout_percentage: 100 }, ...readListMember(filters, 'groups')],
  })
}

/** The filters with 100 % for one variant and 0 % for the others. */
export function assignAllToVariant(filters: JsonObject, variantKey: string): JsonObject {
  const variants = variantsOf(filters).map(variant =>
    isJsonObject(variant) ? mergeObjects(variant, { rollout_percentage: wantedShare(variant, variantKey) }) : variant,
  )
  const multivariate = getOwnValue(filters, 'multivariate')
  return mergeObjects(filters, {
    multivariate: mergeObjects(isJsonObject(multivariate) ? multivariate : {}, { variants }),
  })
}

function refuseWrite(attr: string | null, message: string): Result<never, FlagChangeRefusal> {
  return err({ code: 'invalid_input', attr, message })
}

const hasNoConditions = err<FlagChangeRefusal>({
  code: 'unsupported_config_version',
  attr: null,
  message: 'This version 2 feature flag has rules and no release conditions: update its filters as a whole.',
})

function readListMember(object: JsonObject, name: string): readonly JsonValue[] {
  const list = getOwnValue(object, name)
  return Array.isArray(list) ? list : []
}

export function variantsOf(filters: JsonObject): readonly JsonValue[] {
  const multivariate = getOwnValue(filters, 'multivariate')
  return isJsonObject(multivariate) ? readListMember(multivariate, 'variants') : []
}

function wantedShare(variant: JsonObject, variantKey: string): number {
  return getOwnValue(variant, 'key') === variantKey ? 100 : 0
}

function isAllOnVariant(filters: JsonObject, variantKey: string): boolean {
  return variantsOf(filters).every(
    variant =>
      isJsonObject(variant) &&
      readJsonNumber(getOwnValue(variant, 'rollout_percentage') ?? null) === wantedShare(variant, variantKey),
  )
}

/** Whether a set includes every subject that the flag is evaluated for, and leaves the variant to the percentages. */
function isForEveryone(set: JsonValue | undefined, filters: JsonObject): boolean {
  if (!isJsonObject(set)) return false
  const ofFlag = getOwnValue(filters, 'aggregation_group_type_index') ?? null
  const ofSet = getOwnValue(set, 'aggregation_group_type_index')
  return (
    readListMember(set, 'properties').length === 0 &&
    readJsonNumber(getOwnValue(set, 'rollout_percentage') ?? 100) === 100 &&
    (getOwnValue(set, 'variant') ?? null) === null &&
    (ofSet === undefined || ofSet === ofFlag)
  )
}
