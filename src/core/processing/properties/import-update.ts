// Property updates from imports, for persons and groups: an import never overwrites a live value, and its events give the
// same profile in any order. `import-registers.ts` defines the state that is kept for each property to ensure this.

import { type ImportOptions, usualOptions } from '#core/imports/import-job.ts'
import { getOwnValue, type JsonValue } from '#core/json.ts'
import { type ChangedProfile, type Profile, ProfileDraft, type ProfileUpdate } from '#core/persons/profile.ts'
import {
  type ImportRegisters,
  isImportTimeLater,
  mergeRegisters,
  noRegisters,
  readRegisters,
  toMarkAndValue,
} from './import-registers.ts'

/**
 * Applies one event of an import. Keys with a live value (unmarked, or marked `live_once`) are never touched.
 * @returns null if nothing changes. Source: docs/wire/import.md 3.4 R3–R6, R8.
 */
export function applyImportUpdate(before: Profile, update: ProfileUpdate): ChangedProfile | null {
  const draft = new ProfileDraft(before)
  const { timestampMs, uuid, importJobId, set, setOnce } = update
  if (setOnce !== null)
    for (const key of Object.keys(setOnce))
      joinKey(draft, key, { importJobId, latest: null, once: { timestampMs, uuid, value: setOnce[key]! } })
  if (set !== null)
    for (const key of Object.keys(set))
      joinKey(draft, key, { importJobId, latest: { kind: 'set', timestampMs, uuid, value: set[key]! }, once: null })
  for (const key of update.unset)
    joinKey(draft, key, { importJobId, latest: { kind: 'unset', timestampMs, uuid }, once: null })
  return draft.result()
}

/**
 * Merges the properties of two persons that become one. The survivor's value wins, but a live value wins over an import's
 * value, and import values of both are joined. Source: docs/wire/ingestion.md 6.4; docs/wire/import.md 3.4.
 */
export function mergeProfiles(survivor: Profile, other: Profile, options: ImportOptions = usualOptions): Profile {
  const draft = new ProfileDraft(survivor)
  const keys = new Set([...Object.keys(other.properties), ...Object.keys(other.marks)])
  for (const key of keys) {
    const otherValue = getOwnValue(other.properties, key)
    const otherMark = Object.hasOwn(other.marks, key) ? other.marks[key] : undefined
    if (isLive(draft, key)) {
      if (otherMark !== undefined && winsOverLive(draft, key, readRegisters(otherMark, otherValue), options))
        updateProperty(
          draft,
          key,
          getOwnValue(draft.properties, key),
          markAsImported(draft, key, readRegisters(otherMark, otherValue)),
        )
      continue
    }
    if (otherMark === undefined || otherMark.kind === 'live_once') {
      if (otherValue === undefined) continue
      draft.setProperty(key, otherValue)
      if (otherMark === undefined) draft.removeMark(key)
      else draft.setMark(key, otherMark)
    } else joinKey(draft, key, readRegisters(otherMark, otherValue))
  }
  return draft.result() ?? survivor
}

/** Whether the import's options let its value replace a live value. Source: docs/wire/import.md 3.4 R4, R9. */
function winsOverLive(
  draft: ProfileDraft,
  key: string,
  { latest, once }: ImportRegisters,
  options: ImportOptions,
): boolean {
  if (options.overwritesPersons && latest?.kind === 'set') return true
  const mark = draft.mark(key)
  if (!options.backdatesFirstTouch || mark?.kind !== 'live_once' || once?.value === undefined) return false
  return isImportTimeLater(mark, once)
}

/** Marks the key as the import's. @returns the key's new value. */
function markAsImported(draft: ProfileDraft, key: string, registers: ImportRegisters): JsonValue | undefined {
  const shown = toMarkAndValue(registers)
  draft.setMark(key, shown.mark)
  return shown.value
}

function isLive(draft: ProfileDraft, key: string): boolean {
  const kind = draft.mark(key)?.kind
  return Object.hasOwn(draft.properties, key) && (kind === undefined || kind === 'live_once')
}

function joinKey(draft: ProfileDraft, key: string, added: ImportRegisters): void {
  if (isLive(draft, key)) return
  const mark = draft.mark(key)
  const value = getOwnValue(draft.properties, key)
  const before = mark === undefined || mark.kind === 'live_once' ? noRegisters : readRegisters(mark, value)
  const joined = mergeRegisters(before, added)
  if (joined === before) return
  const shown = toMarkAndValue(joined)
  draft.setMark(key, shown.mark)
  updateProperty(draft, key, value, shown.value)
}

function updateProperty(
  draft: ProfileDraft,
  key: string,
  before: JsonValue | undefined,
  after: JsonValue | undefined,
): void {
  if (after === undefined) draft.removeProperty(key)
  else if (after !== before) draft.setProperty(key, after)
}
