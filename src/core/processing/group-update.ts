// Applies the groups of an event: the group that a `$groupidentify` describes, and the groups that any event names in
// `$groups`. Persons and the stored row are handled elsewhere.

import { applyImportUpdate } from '#core/processing/properties/import-update.ts'
import { exceedsMarksLimit, exceedsUnsetLimit } from '#core/processing/properties/marks-limit.ts'
import { exceedsPersonLimit } from '#core/processing/properties/person-update.ts'
import { type GroupIdentity, replaceUnstorableText, typeNameLengthMax } from '../events/group-identity.ts'
import type { WarningType } from '../events/warning-types.ts'
import type { Group } from '../groups/group.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '../json.ts'
import { isSameJson } from '../json-equal.ts'
import { emptyProfile, type Profile, ProfileDraft } from '../persons/profile.ts'
import type { ProjectState } from './chunk-state.ts'

export interface GroupEvent extends GroupIdentity {
  /** `$group_set` as sent; undefined and `[]` mean `{}`. */
  readonly set: JsonValue | undefined
  /** The keys in `$group_unset`, for imports only: PostHog has no such property, so it is ignored in live events. */
  readonly unset: readonly string[]
  readonly timestampMs: number
  readonly uuid: string
  readonly importJobId: number
  readonly historical: boolean
}

/**
 * Creates or updates the group in the working copy.
 * @returns the type of the warning to raise, or null. Source: docs/wire/ingestion.md 6.7; docs/wire/import.md 3.4 R8.
 */
export function applyGroupEvent(state: ProjectState, event: GroupEvent): WarningType | null {
  // Reads `[]` as `{}`, because PHP writes an empty object as `[]`.
  const sent = Array.isArray(event.set) && event.set.length === 0 ? {} : (event.set ?? null)
  if (sent !== null && !isJsonObject(sent)) return 'invalid_group_set'
  const set = sent ?? {}
  const typeIndex = state.groupTypeIndex(event.typeName)
  if (typeIndex === undefined) return null
  if (event.historical && exceedsUnsetLimit(event.unset)) return 'group_properties_size_violation'
  const before = state.findGroup(typeIndex, event.key)
  const changed = event.historical
    ? applyImportUpdate(before ?? emptyProfile, { ...event, set, setOnce: null })
    : applyLiveSet(before ?? emptyProfile, set)
  const profile = changed ?? before ?? emptyProfile
  if (changed !== null) {
    const propertiesJson = JSON.stringify(profile.properties)
    state.groupTextLength += propertiesJson.length
    if (exceedsPersonLimit(propertiesJson) || exceedsMarksLimit(profile.marks)) return 'group_properties_size_violation'
  }
  if (before === null) state.saveGroup(createGroup(state.subjectsId, typeIndex, event, profile))
  else {
    const createdAtMs = event.historical ? Math.min(before.createdAtMs, event.timestampMs) : before.createdAtMs
    if (changed === null && createdAtMs === before.createdAtMs) return null
    const { properties, marks } = profile
    state.saveGroup({ ...before, properties, marks, createdAtMs, version: before.version + 1 })
  }
  return null
}

function createGroup(projectId: number, typeIndex: number, event: GroupEvent, { properties, marks }: Profile): Group {
  const { key, timestampMs } = event
  return { projectId, typeIndex, key, properties, marks, createdAtMs: timestampMs, version: 1 }
}

/** Merges shallowly, but compares values deeply, so that resending the same values changes nothing. */
function applyLiveSet(before: Profile, set: JsonObject): Profile | null {
  const draft = new ProfileDraft(before)
  for (const key of Object.keys(set)) {
    if (!isSameJson(getOwnValue(before.properties, key), set[key])) draft.setProperty(key, set[key]!)
    draft.removeMark(key)
  }
  return draft.result()
}

/**
 * Type index → value as sent, for the types in `$groups` that have or get an index; new types take free indexes in order.
 */
export function resolveGroups(state: ProjectState, groups: JsonValue | undefined): Map<number, JsonValue> | null {
  if (groups === undefined || !isJsonObject(groups)) return null
  let resolved: Map<number, JsonValue> | null = null
  for (const typeName of Object.keys(groups)) {
    if (typeName === '' || typeName.length > typeNameLengthMax) continue
    const typeIndex = state.groupTypeIndex(replaceUnstorableText(typeName))
    if (typeIndex === undefined) continue
    resolved ??= new Map()
    resolved.set(typeIndex, getOwnValue(groups, typeName)!)
  }
  return resolved
}
