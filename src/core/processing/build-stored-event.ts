// Builds the stored row: removes internal properties, adds the group columns, and derives the other columns from the
// properties. `apply-event.ts` has already decided which person the row has.

import { formatElementsChain } from '#core/processing/elements/elements-chain.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import type { LogStream } from '../events/log-stream.ts'
import type { PropertiesDraft } from '../events/properties-draft.ts'
import type { StoredEvent } from '../events/stored-event.ts'
import { isUuid } from '../events/uuid.ts'
import { truncateForWarning } from '../events/warning-types.ts'
import { type JsonObject, type JsonValue, toComparableText } from '../json.ts'
import type { RaiseWarning } from './apply-person-event.ts'
import type { ProjectState } from './chunk-state.ts'
import { flagCallTextBytesMax, readFlagCall } from './deduplicate-flag-calls.ts'
import type { ProfileUse } from './enrich-event.ts'
import { isFlagCallStripped, isKeptWhenStripped } from './feature-flag-called.ts'
import { resolveGroups } from './group-update.ts'
import type { ParsedEvent } from './parse-chunk.ts'

export interface StoredEventPerson {
  readonly uuid: string
  readonly createdAtMs: number
  readonly mode: StoredEvent['personMode']
  readonly propertiesJson: string
}

/** The row of an event. `draft` already has all added properties. Source: docs/wire/ingestion.md 6.8, 6.9 (3). */
export function buildStoredEvent(
  state: ProjectState,
  item: ParsedEvent,
  keys: readonly string[],
  use: ProfileUse,
  person: StoredEventPerson,
  draft: PropertiesDraft,
  linkedId: string,
  logStream: LogStream,
  warn: RaiseWarning,
): StoredEvent {
  const { event, properties } = item
  removeInternals(properties, keys, event, use, draft)
  const groups = addGroups(state, item, use, draft)
  const sessionId = addSessionId(item, draft, warn)
  if (isFlagCallStripped(event.name, properties)) draft.keepOnly(isKeptWhenStripped)
  return {
    projectId: event.projectId,
    uuid: event.uuid,
    event: event.name,
    distinctId: event.distinctId,
    timestampMs: event.timestampMs,
    capturedAtMs: event.capturedAtMs,
    chargedAtMs: event.capturedAtMs,
    lane: event.lane,
    historicalMigration: event.historicalMigration,
    importJobId: event.importJobId,
    propertiesJson: draft.json(),
    elementsChain: readElementsChain(properties),
    personId: person.uuid,
    personCreatedAtMs: person.createdAtMs,
    personPropertiesJson: person.propertiesJson,
    personMode: person.mode,
    groups,
    sessionId,
    windowId: toColumnText(properties.$window_id),
    flags: readFlagValues(properties, keys),
    ...readFlagCall(event.name, properties),
    linkedId,
    logStream,
    logOffset: item.offset,
  }
}

/** Properties that are removed from every stored event. */
export const internalKeys = [
  '$elements',
  '$elements_chain',
  '$heatmap_data',
  'ph_product_tours',
  '$product_tours_activated',
  '$override_feature_flag_payloads',
]

function removeInternals(
  properties: JsonObject,
  keys: readonly string[],
  event: CapturedEvent,
  use: ProfileUse,
  draft: PropertiesDraft,
): void {
  for (const key of internalKeys) if (properties[key] !== undefined) draft.remove(key)
  if (use === 'full' || use === 'read_only') draft.remove('$process_person_profile')
  else if (properties.$process_person_profile !== false) draft.set('$process_person_profile', false)
  if (event.lane === 'ai') for (const key of keys) if (key.startsWith('$ai_gateway')) draft.remove(key)
}

const groupColumns = ['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'] as const
const noGroups: StoredEvent['groups'] = ['', '', '', '', '']

function addGroups(
  state: ProjectState,
  { properties }: ParsedEvent,
  use: ProfileUse,
  draft: PropertiesDraft,
): StoredEvent['groups'] {
  if (use === 'personless' || use === 'forced_off') {
    for (const column of groupColumns) if (properties[column] !== undefined) draft.remove(column)
    return noGroups
  }
  const resolved = resolveGroups(state, properties.$groups)
  let texts: [string, string, string, string, string] | null = null
  for (let index = 0; index < groupColumns.length; index++) {
    const column = groupColumns[index]!
    const value = resolved?.get(index)
    if (value !== undefined) draft.set(column, value)
    const shown = value ?? properties[column]
    if (shown === undefined) continue
    texts ??= ['', '', '', '', '']
    texts[index] = toColumnText(shown)
  }
  return texts ?? noGroups
}

function addSessionId({ event, properties }: ParsedEvent, draft: PropertiesDraft, warn: RaiseWarning): string {
  const sessionId = properties.$session_id
  if (sessionId === undefined || sessionId === null) return ''
  if (typeof sessionId !== 'string' || !isUuid(sessionId)) {
    const { uuid, name, distinctId } = event
    warn('invalid_event_session_id', {
      eventUuid: uuid,
      event: name,
      distinctId,
      sessionId: truncateForWarning(sessionId),
    })
    return toColumnText(sessionId)
  }
  const lowered = sessionId.toLowerCase()
  if (lowered !== sessionId) draft.set('$session_id', lowered)
  return lowered
}

function readElementsChain(properties: JsonObject): string {
  const sent = properties.$elements_chain
  if (typeof sent === 'string' && sent !== '') return sent
  const elements = properties.$elements
  return Array.isArray(elements) ? formatElementsChain(elements) : ''
}

const featureKeyBytesMax = '$feature/'.length + flagCallTextBytesMax
const noFlags: ReadonlyMap<string, string> = new Map()

function readFlagValues(properties: JsonObject, keys: readonly string[]): ReadonlyMap<string, string> {
  let flags: Map<string, string> | null = null
  for (const key of keys) {
    // Skips longer keys, which no flag has: invented keys would end up in a dictionary that all projects share.
    if (!key.startsWith('$feature/') || Buffer.byteLength(key) > featureKeyBytesMax) continue
    const value = properties[key]!
    if (value === null) continue
    flags ??= new Map()
    flags.set(key, toComparableText(value))
  }
  return flags ?? noFlags
}

function toColumnText(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : toComparableText(value)
}
