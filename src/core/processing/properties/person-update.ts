// Applies an event's `$set`, `$set_once` and `$unset` to a person: for live events in order of arrival, for imported events
// by the rules of imports. The maps come from `mapped-properties.ts`.

import { type JsonObject, type PropertyBag, setOwnValue } from '#core/json.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import {
  type ChangedProfile,
  emptyProfile,
  isSamePropertyValue,
  noKeys,
  type Profile,
  ProfileDraft,
  type ProfileUpdate,
} from '#core/persons/profile.ts'
import { applyImportUpdate } from './import-update.ts'
import { filteredProperties, mappedProperties } from './mapped-properties.ts'

export interface PersonUpdate extends ProfileUpdate {
  readonly historical: boolean
  /** The event is about the person (`$identify`, `$set`, …), so changes to only `filteredProperties` are written too. */
  readonly writesFilteredKeys: boolean
}

/** Largest stored properties of a person, in bytes of JSON text. Source: docs/wire/ingestion.md 6.6, 9. */
export const personPropertiesBytesMax = 655_360
const trimTargetBytes = 524_288
export const creatorKey = '$creator_event_uuid'

/**
 * Applies an event to an existing person, in place if `before` owns its properties.
 * @returns null if there is nothing to write. Source: docs/wire/ingestion.md 6.6.
 */
export function applyPersonUpdate(before: Profile, update: PersonUpdate): ChangedProfile | null {
  return update.historical ? applyImportUpdate(before, addCreator(update)) : applyLiveUpdate(before, update)
}

/** The profile of a person that an event creates. Source: docs/wire/ingestion.md 6.3; docs/wire/import.md 3.4. */
export function createProfile(update: PersonUpdate): Profile {
  if (update.historical) return applyImportUpdate(emptyProfile, addCreator(update)) ?? emptyProfile
  const draft = new ProfileDraft(emptyProfile)
  const { set, setOnce } = update
  if (setOnce !== null) {
    const mark = createLiveOnceMark(update)
    for (const key of Object.keys(setOnce)) {
      draft.setProperty(key, setOnce[key]!)
      if (set === null || !Object.hasOwn(set, key)) draft.setMark(key, mark)
    }
  }
  if (set !== null) for (const key of Object.keys(set)) draft.setProperty(key, set[key]!)
  draft.setProperty(creatorKey, update.uuid)
  return draft.result() ?? emptyProfile
}

/** Adds a `$set_once` with the creating event, so that an import's earliest event is the creator in any order. */
function addCreator(update: PersonUpdate): ProfileUpdate {
  return { ...update, setOnce: { ...update.setOnce, [creatorKey]: update.uuid } }
}

function applyLiveUpdate(before: Profile, update: PersonUpdate): ChangedProfile | null {
  const { set, setOnce, unset } = update
  if (set === null && setOnce === null && unset.length === 0) return null
  const worthWriting = update.writesFilteredKeys || changesLastingKey(before, update)
  if (!worthWriting) return null
  const draft = new ProfileDraft(before)
  // `$unset` keeps a key that the same event adds, so the keys to remove are listed before anything changes in place.
  const removed = unset.length === 0 ? noKeys : unset.filter(key => Object.hasOwn(before.properties, key))
  if (setOnce !== null) {
    let mark: PropertyMark | null = null
    for (const key of Object.keys(setOnce)) {
      if (!setOnceApplies(before.properties, setOnce, key) || (set !== null && Object.hasOwn(set, key))) continue
      mark ??= createLiveOnceMark(update)
      draft.setProperty(key, setOnce[key]!)
      draft.setMark(key, mark)
    }
  }
  if (set !== null)
    for (const key of Object.keys(set)) {
      if (!Object.hasOwn(before.properties, key) || !isSamePropertyValue(before.properties[key], set[key]))
        draft.setProperty(key, set[key]!)
      draft.removeMark(key)
    }
  for (const key of removed) {
    draft.removeProperty(key)
    draft.removeMark(key)
  }
  return draft.result()
}

/** Whether the event changes anything besides the keys whose values change with every page. */
function changesLastingKey({ properties, marks }: Profile, { set, setOnce, unset }: PersonUpdate): boolean {
  if (set !== null)
    for (const key of Object.keys(set)) {
      if (!Object.hasOwn(properties, key) || Object.hasOwn(marks, key)) return true
      if (!isSamePropertyValue(properties[key], set[key]) && !filteredProperties.has(key)) return true
    }
  if (setOnce !== null)
    for (const key of Object.keys(setOnce)) {
      if (!setOnceApplies(properties, setOnce, key) || (set !== null && Object.hasOwn(set, key))) continue
      if (!Object.hasOwn(properties, key) || !filteredProperties.has(key)) return true
    }
  for (const key of unset) if (Object.hasOwn(properties, key)) return true
  return false
}

/** `$set_once` writes a key that is absent or stored as null. */
function setOnceApplies(properties: PropertyBag, setOnce: JsonObject, key: string): boolean {
  return !Object.hasOwn(properties, key) || (properties[key] === null && setOnce[key] !== null)
}

function createLiveOnceMark(update: PersonUpdate): PropertyMark {
  return { kind: 'live_once', timestampMs: update.timestampMs, uuid: update.uuid, importJobId: 0 }
}

/** Names in `$unset`: a list of names or the keys of an object. Source: docs/wire/ingestion.md 6.6. */
export function parseUnsetKeys(value: JsonObject[string] | undefined): readonly string[] {
  if (value === undefined || value === null || typeof value !== 'object') return []
  return Array.isArray(value) ? value.filter(key => typeof key === 'string') : Object.keys(value)
}

/** Whether properties with this JSON text are too large to be stored. Counts the bytes of long texts only. */
export function exceedsPersonLimit(propertiesJson: string): boolean {
  if (propertiesJson.length * 3 <= personPropertiesBytesMax) return false
  return Buffer.byteLength(propertiesJson) > personPropertiesBytesMax
}

const protectedKeys = new Set([
  creatorKey,
  ...`email name first_name last_name username $session_id $window_id $pageview_id $host $user_id $device_id
    $anon_distinct_id $fbc $initial_referrer $initial_referring_domain $initial_utm_source $initial_utm_medium
    $initial_utm_campaign $initial_utm_content $initial_utm_term`.split(/\s+/),
  ...mappedProperties.keys(),
])

/**
 * Trims properties that a merge made too large: removes unprotected keys in alphabetical order until 512 KiB are left.
 * Source: docs/wire/ingestion.md 6.6.
 */
export function trimProfile(profile: Profile): Profile {
  const draft = new ProfileDraft(profile)
  let bytes = Buffer.byteLength(JSON.stringify(profile.properties))
  for (const key of Object.keys(profile.properties).sort()) {
    if (bytes <= trimTargetBytes) break
    if (protectedKeys.has(key)) continue
    const entry: JsonObject = {}
    setOwnValue(entry, key, profile.properties[key]!)
    bytes -= Buffer.byteLength(JSON.stringify(entry)) - 1
    draft.removeProperty(key)
    draft.removeMark(key)
  }
  return draft.result() ?? profile
}
