// Applies one event to the chunk's working copy: updates its person and groups, and builds its row. This file decides the
// order of the steps; the rules of each step are elsewhere (`apply-person-event.ts`, `group-update.ts`).

import { parseUnsetKeys } from '#core/processing/properties/person-update.ts'
import { aiEventBytesMax, eventBytesMax } from '../capture/normalize-event.ts'
import { cookielessSentinel } from '../cookieless/visitor-hash.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { type DropReason, findEventDropReason } from '../events/event-drops.ts'
import { groupEventNames, mergeEventNames } from '../events/event-names.ts'
import { readGroupIdentity } from '../events/group-identity.ts'
import type { LogStream } from '../events/log-stream.ts'
import { PropertiesDraft } from '../events/properties-draft.ts'
import type { StoredEvent } from '../events/stored-event.ts'
import { truncateForWarning } from '../events/warning-types.ts'
import type { JsonObject } from '../json.ts'
import { noKeys } from '../persons/profile.ts'
import type { Project } from '../project.ts'
import { dayMs } from '../time.ts'
import { applyPersonEvent, type RaiseWarning } from './apply-person-event.ts'
import { buildStoredEvent, type StoredEventPerson } from './build-stored-event.ts'
import type { ProjectState, WorkingPerson } from './chunk-state.ts'
import { type DeduplicatedCall, type FlagCalls, isFlagCall, toDeduplicatedCall } from './deduplicate-flag-calls.ts'
import {
  addAddressAndLocation,
  addPersonSetMaps,
  type LookUpGeoip,
  type ProfileUse,
  type UpdateMaps,
} from './enrich-event.ts'
import { applyGroupEvent } from './group-update.ts'
import type { ParsedEvent } from './parse-chunk.ts'
import { isIllegalDistinctId, type MergeRequest, readMergeRequest } from './person-merge.ts'
import { buildPersonSnapshotJson } from './person-snapshot.ts'

export interface ApplyContext {
  readonly state: ProjectState
  /** The log stream that has the event's record. */
  readonly stream: LogStream
  readonly warn: RaiseWarning
  readonly geoipOf: LookUpGeoip
  /** Whether the event's import job asks for the locations of the addresses recorded in its events. */
  readonly looksUpImport: boolean
  /** The event's merge conflicted with other writers on every try, so the event is processed without the merge. */
  readonly mergeIsLost: boolean
  /** The event would merge with an id that was erased after the event was accepted: it is stored, but merges no persons. */
  readonly mergesErased: boolean
  readonly flagCalls: FlagCalls
}

export type AppliedEvent =
  | { readonly kind: 'stored'; readonly row: StoredEvent }
  | { readonly kind: 'dropped'; readonly reason: DropReason | 'cookieless_team_disabled' }
  /** Not stored, since it repeats a stored flag call. */
  | { readonly kind: 'deduplicated'; readonly call: DeduplicatedCall }
  /** Processing made the event larger than a row may be. */
  | { readonly kind: 'too_large' }

/** Source: docs/wire/ingestion.md 6.1, 6.2, 6.8. */
export function applyEvent(context: ApplyContext, item: ParsedEvent): AppliedEvent {
  const { state, warn } = context
  const { event, properties } = item
  const use = decideProfileUse(event, properties, state.project)
  const drop = findEventDropReason(event, properties, state.project, use === 'personless')
  if (drop !== null) {
    if (drop.warning !== null) warn(drop.reason, drop.warning)
    return { kind: 'dropped', reason: drop.reason }
  }
  if (isUnhashed(event, properties)) {
    warn('cookieless_team_disabled', toEventDetails(event))
    return { kind: 'dropped', reason: 'cookieless_team_disabled' }
  }
  const deduplicates = state.project.ingestion.deduplicatesFlagCalls && isFlagCall(event, properties)
  if (deduplicates && context.flagCalls.isRepeat(event, properties))
    return { kind: 'deduplicated', call: toDeduplicatedCall(event, properties) }
  warnOfOddities(event, properties, use, warn)
  const keys = Object.keys(properties)
  const draft = new PropertiesDraft(event.propertiesJson, properties)
  const geoip = addAddressAndLocation(state.project, context, item, draft)
  const maps = addPersonSetMaps(item, keys, geoip, use, draft)
  const person = resolvePerson(context, item, use, maps)
  if (groupEventNames.has(event.name) && use === 'full') identifyGroup(context, item)
  const linkedId = use === 'full' ? findLinkedId(context, item) : ''
  const row = buildStoredEvent(state, item, keys, use, person, draft, linkedId, context.stream, warn)
  warnOfRefusedGroupType(state, event, warn)
  if (!isTooLarge(row)) {
    if (deduplicates) context.flagCalls.noteStored(event, properties)
    return { kind: 'stored', row }
  }
  warn('message_size_too_large', toEventDetails(event))
  return { kind: 'too_large' }
}

/**
 * Whether a live event of cookieless mode was not hashed: the log may contain some from a version without hashing. An import
 * is stored as it was sent, unless it has the id that all visitors share.
 */
function isUnhashed({ visitor, historicalMigration, distinctId }: CapturedEvent, properties: JsonObject): boolean {
  if (properties.$cookieless_mode !== true || visitor !== null) return false
  return !historicalMigration || distinctId === cookielessSentinel
}

function decideProfileUse(event: CapturedEvent, properties: JsonObject, project: Project): ProfileUse {
  if (event.personProcessingForcedOff) return 'forced_off'
  if (properties.$process_person_profile === false || project.ingestion.personProcessingOptOut) return 'personless'
  return event.lane === 'ai' ? 'read_only' : 'full'
}

const divergenceMsMax = 3 * dayMs

function warnOfOddities(event: CapturedEvent, properties: JsonObject, use: ProfileUse, warn: RaiseWarning): void {
  const { uuid, timestampMs } = event
  const wish = properties.$process_person_profile
  if (wish !== undefined && typeof wish !== 'boolean' && (use === 'full' || use === 'read_only'))
    warn('invalid_process_person_profile', {
      ...toEventDetails(event),
      $process_person_profile: truncateForWarning(wish),
    })
  // Uuids of imports are not checked, because they may have been generated on the day of the import.
  if (uuid[14] !== '7' || event.historicalMigration) return
  const uuidMs = Number.parseInt(uuid.slice(0, 8), 16) * 65_536 + Number.parseInt(uuid.slice(9, 13), 16)
  const apartMs = Math.abs(uuidMs - timestampMs)
  if (apartMs > divergenceMsMax)
    warn('event_uuid_timestamp_divergent', {
      ...toEventDetails(event),
      lib: truncateForWarning(properties.$lib ?? ''),
      eventTimestamp: new Date(timestampMs).toISOString(),
      uuidTimestamp: new Date(uuidMs).toISOString(),
      divergenceDays: Math.round(apartMs / dayMs),
    })
}

function toEventDetails({ uuid, name, distinctId }: CapturedEvent): JsonObject {
  return { eventUuid: uuid, event: name, distinctId }
}

/** A row has the same size limit as a message of the log. Source: docs/wire/ingestion.md 9. */
function isTooLarge({ lane, propertiesJson, personPropertiesJson, elementsChain }: StoredEvent): boolean {
  const bytesMax = lane === 'ai' ? aiEventBytesMax : eventBytesMax
  // A UTF-16 unit takes at most three bytes of UTF-8, so only large rows are measured.
  if ((propertiesJson.length + personPropertiesJson.length + elementsChain.length) * 3 <= bytesMax) return false
  const bytes =
    Buffer.byteLength(propertiesJson) + Buffer.byteLength(personPropertiesJson) + Buffer.byteLength(elementsChain)
  return bytes > bytesMax
}

/** `person_created_at` of an event without a person. Source: docs/wire/ingestion.md 6.2. */
const noPersonCreatedAtMs = 5_000
const upgradeAfterMs = 60_000

function resolvePerson(context: ApplyContext, item: ParsedEvent, use: ProfileUse, maps: UpdateMaps): StoredEventPerson {
  const { state, warn } = context
  const { event, properties } = item
  if (use === 'full') {
    const { person, isTooLarge } = applyPersonEvent(
      state,
      {
        distinctId: event.distinctId,
        merge: findMerge(context, item),
        set: maps.set,
        setOnce: maps.setOnce,
        unset: properties.$unset === undefined ? noKeys : readUnsetKeys(item),
        timestampMs: event.timestampMs,
        uuid: event.uuid,
        importJobId: event.importJobId,
        historical: event.historicalMigration,
        // An imported exception writes to known persons too: otherwise the result would depend on the order of events.
        writesKnownPersons: event.name !== '$exception' || event.historicalMigration,
        writesFilteredKeys: event.name === '$set' || mergeEventNames.has(event.name),
      },
      warn,
    )
    return toRowPerson(person, 'full', buildPersonSnapshotJson(person, isTooLarge ? null : maps.set))
  }
  const known = use === 'forced_off' ? undefined : state.findPerson(event.distinctId)
  if (known === undefined) {
    if (use !== 'forced_off') state.rememberPersonless(event.distinctId)
    const uuid = state.uuidOf(event.distinctId)
    const mode = use === 'read_only' ? 'full' : 'propertyless'
    return { uuid, createdAtMs: noPersonCreatedAtMs, mode, propertiesJson: '{}' }
  }
  if (use === 'read_only') return toRowPerson(known, 'full', buildPersonSnapshotJson(known, null))
  const mayUpgrade = !state.project.ingestion.personProcessingOptOut
  const upgrades = mayUpgrade && event.timestampMs > known.createdAtMs + upgradeAfterMs
  return toRowPerson(known, upgrades ? 'force_upgrade' : 'propertyless', '{}')
}

function findMerge(
  { mergeIsLost, mergesErased }: ApplyContext,
  { event, properties }: ParsedEvent,
): MergeRequest | null {
  if (mergesErased) return null
  const merge = readMergeRequest(event.name, properties)
  return merge !== null && mergeIsLost ? { ...merge, isLost: true } : merge
}

/**
 * The other id that the event may link; '' for none. It does not matter whether the link was made, because a fold over the
 * stored events decides that again.
 */
function findLinkedId(context: ApplyContext, item: ParsedEvent): string {
  if (context.mergeIsLost || !mergeEventNames.has(item.event.name)) return ''
  const otherId = findMerge(context, item)?.otherId ?? ''
  const { distinctId } = item.event
  return otherId === distinctId || [distinctId, otherId].some(isIllegalDistinctId) ? '' : otherId
}

function readUnsetKeys({ event, properties }: ParsedEvent): readonly string[] {
  return groupEventNames.has(event.name) ? noKeys : parseUnsetKeys(properties.$unset)
}

function toRowPerson(
  person: WorkingPerson,
  mode: StoredEventPerson['mode'],
  propertiesJson: string,
): StoredEventPerson {
  return { uuid: person.uuid, createdAtMs: person.createdAtMs, mode, propertiesJson }
}

/**
 * Raises at most one warning per event, since an event may name thousands of types. Source: docs/wire/ingestion.md 6.7;
 * ours.
 */
function warnOfRefusedGroupType(state: ProjectState, event: CapturedEvent, warn: RaiseWarning): void {
  const refused = state.takeRefusedGroupType()
  if (refused !== null)
    warn('group_type_refused', {
      ...toEventDetails(event),
      groupType: truncateForWarning(refused.name),
      why: refused.reason,
    })
}

function identifyGroup({ state, warn }: ApplyContext, { event, properties }: ParsedEvent): void {
  const identity = readGroupIdentity(properties)
  if (identity === null) return
  const warning = applyGroupEvent(state, {
    ...identity,
    set: properties.$group_set,
    unset: event.historicalMigration ? parseUnsetKeys(properties.$group_unset) : noKeys,
    timestampMs: event.timestampMs,
    uuid: event.uuid,
    importJobId: event.importJobId,
    historical: event.historicalMigration,
  })
  if (warning === null) return
  warn(warning, { ...toEventDetails(event), groupType: identity.typeName, groupKey: identity.key })
}
