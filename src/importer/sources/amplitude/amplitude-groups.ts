// The groups that Amplitude's records name. Source: docs/wire/import.md §1.1 (groups).

import { isJsonObject, type JsonObject, type JsonValue, ownValue, setOwn } from '#core/json.ts'
import { idText } from '#importer/records/distinct-ids.ts'
import type { GroupSnapshot } from '#importer/records/imported-event.ts'
import { isEmptyInAmplitude, readObject, removeEmptyValues } from './amplitude-values.ts'

export interface RecordGroups {
  /** The first key of each type, since an event can have only one. */
  readonly inEvent: JsonObject
  /** Every key, in the order listed. */
  readonly snapshots: readonly GroupSnapshot[]
  /** Keys beyond the first of their type. */
  readonly droppedCount: number
}

/** @throws RecordReject */
export function readGroups(record: JsonObject, distinctId: string, timeUs: number): RecordGroups {
  const groups = readObject(record, 'groups')
  const described = readObject(record, 'group_properties')
  const inEvent: JsonObject = {}
  const snapshots: GroupSnapshot[] = []
  let droppedCount = 0
  for (const type of listKeysOfBoth(groups, described)) {
    const named = readKeys(ownValue(groups, type))
    const ofType = ownValue(described, type)
    const byKey = isJsonObject(ofType) ? ofType : {}
    if (named.length > 0) setOwn(inEvent, type, named[0]!)
    droppedCount += Math.max(0, named.length - 1)
    for (const key of new Set([...named, ...Object.keys(byKey).filter(each => !isEmptyInAmplitude(each))])) {
      const properties = ownValue(byKey, key)
      snapshots.push({
        type,
        key,
        properties: isJsonObject(properties) ? removeEmptyValues(properties) : null,
        distinctId,
        timeUs,
      })
    }
  }
  return { inEvent, snapshots, droppedCount }
}

function listKeysOfBoth(a: JsonObject, b: JsonObject): Iterable<string> {
  const [keysOfA, keysOfB] = [Object.keys(a), Object.keys(b)]
  // Fast path: most records have no groups at all.
  return keysOfB.length === 0 ? keysOfA : new Set([...keysOfA, ...keysOfB])
}

/** Texts that are illegal as ids of persons, such as 0 or guest, are valid keys of groups. */
function readKeys(value: JsonValue | undefined): string[] {
  const list = Array.isArray(value) ? value : [value]
  return [...new Set(list.map(key => (isEmptyInAmplitude(key) ? null : idText(key))).filter(key => key !== null))]
}
