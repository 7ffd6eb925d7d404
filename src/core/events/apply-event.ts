// One event against the chunk's working copy: its person and groups after it, and the row it becomes. Rules that concern
// one subject live beside that subject (`persons/`, `groups/`); the order of the steps is decided here.

import { applyGroupEvent, groupEventNames, groupIdentityOf } from '../groups/group-update.ts'
import type { JsonObject } from '../json.ts'
import { mergeEventNames, mergeRequestOf } from '../persons/person-merge.ts'
import { applyPersonEvent, type RaiseWarning } from '../persons/person-step.ts'
import { unsetKeys } from '../persons/person-update.ts'
import { noKeys } from '../persons/profile.ts'
import { snapshotJson } from '../persons/snapshot.ts'
import { buildStoredEvent, type RowPerson } from './build-stored-event.ts'
import type { CapturedEvent } from './captured-event.ts'
import type { ProjectState, WorkingPerson } from './chunk-state.ts'
import { addAddress, addPersonMaps, type GeoipOf, type ProfileUse, type UpdateMaps } from './enrich-event.ts'
import { type DropReason, findDrop } from './event-drops.ts'
import type { ParsedEvent } from './parse-chunk.ts'
import { PropertiesDraft } from './properties-draft.ts'
import type { StoredEvent } from './stored-event.ts'

export interface EventContext {
  readonly state: ProjectState
  readonly warn: RaiseWarning
  readonly geoipOf: GeoipOf
}

export type AppliedEvent =
  | { readonly kind: 'stored'; readonly row: StoredEvent }
  | { readonly kind: 'dropped'; readonly reason: DropReason }

/** Source: docs/wire/ingestion.md 6.1, 6.2, 6.8. */
export function applyEvent(context: EventContext, item: ParsedEvent): AppliedEvent {
  const { state, warn } = context
  const { event, properties } = item
  const use = profileUseOf(event, properties)
  const drop = findDrop(event, properties, use === 'personless' || use === 'forced_off')
  if (drop !== null) {
    if (drop.warning !== null) warn(drop.reason, drop.warning)
    return { kind: 'dropped', reason: drop.reason }
  }
  warnOfOddities(event, properties, warn)
  const keys = Object.keys(properties)
  const draft = new PropertiesDraft(event.propertiesJson, properties)
  const geoip = addAddress(state.project, context.geoipOf, item, draft)
  const maps = addPersonMaps(item, keys, geoip, use, draft)
  const person = tieToPerson(context, item, use, maps)
  if (groupEventNames.has(event.name) && use === 'full') describeGroup(context, item)
  return { kind: 'stored', row: buildStoredEvent(state, item, keys, use, person, draft, warn) }
}

function profileUseOf(event: CapturedEvent, properties: JsonObject): ProfileUse {
  if (event.personProcessingForcedOff) return 'forced_off'
  if (properties.$process_person_profile === false) return 'personless'
  return event.lane === 'ai' ? 'read_only' : 'full'
}

const sevenDigitVersion = '7'
const divergenceMsMax = 3 * 86_400_000

function warnOfOddities(event: CapturedEvent, properties: JsonObject, warn: RaiseWarning): void {
  const wish = properties.$process_person_profile
  if (wish !== undefined && typeof wish !== 'boolean')
    warn('invalid_process_person_profile', { eventUuid: event.uuid, event: event.name, value: wish })
  const { uuid, timestampMs } = event
  if (uuid[14] !== sevenDigitVersion || event.lane === 'historical') return
  const uuidMs = Number.parseInt(uuid.slice(0, 8), 16) * 65_536 + Number.parseInt(uuid.slice(9, 13), 16)
  if (Math.abs(uuidMs - timestampMs) > divergenceMsMax)
    warn('event_uuid_timestamp_divergent', { eventUuid: uuid, event: event.name })
}

/** `person_created_at` of an event without a person. Source: docs/wire/ingestion.md 6.2. */
const noPersonCreatedAtMs = 5_000
const upgradeAfterMs = 60_000

function tieToPerson(context: EventContext, item: ParsedEvent, use: ProfileUse, maps: UpdateMaps): RowPerson {
  const { state, warn } = context
  const { event, properties } = item
  if (use === 'full') {
    const updates = event.name !== '$exception'
    const person = applyPersonEvent(
      state,
      {
        distinctId: event.distinctId,
        merge: mergeRequestOf(event.name, properties),
        set: updates ? maps.set : null,
        setOnce: updates ? maps.setOnce : null,
        unset: updates && properties.$unset !== undefined ? unsetOf(item) : noKeys,
        timestampMs: event.timestampMs,
        uuid: event.uuid,
        importJobId: event.importJobId,
        historical: event.lane === 'historical',
        writesFilteredKeys: event.name === '$set' || mergeEventNames.has(event.name),
      },
      warn,
    )
    return shownPerson(person, 'full', snapshotJson(person, maps.set))
  }
  const known = use === 'forced_off' ? undefined : state.findPerson(event.distinctId)
  if (known === undefined) {
    if (use !== 'forced_off') state.rememberPersonless(event.distinctId)
    const uuid = state.uuidOf(event.distinctId)
    return { uuid, createdAtMs: noPersonCreatedAtMs, mode: 'propertyless', propertiesJson: '{}' }
  }
  if (use === 'read_only') return shownPerson(known, 'full', snapshotJson(known, null))
  const upgrades = event.timestampMs > known.createdAtMs + upgradeAfterMs
  return shownPerson(known, upgrades ? 'force_upgrade' : 'propertyless', '{}')
}

function unsetOf({ event, properties }: ParsedEvent): readonly string[] {
  return groupEventNames.has(event.name) ? noKeys : unsetKeys(properties.$unset)
}

function shownPerson(person: WorkingPerson, mode: RowPerson['mode'], propertiesJson: string): RowPerson {
  return { uuid: person.uuid, createdAtMs: person.createdAtMs, mode, propertiesJson }
}

function describeGroup({ state, warn }: EventContext, { event, properties }: ParsedEvent): void {
  const identity = groupIdentityOf(properties)
  if (identity === null) return
  const warning = applyGroupEvent(state, {
    ...identity,
    set: properties.$group_set,
    timestampMs: event.timestampMs,
    uuid: event.uuid,
    importJobId: event.importJobId,
    historical: event.lane === 'historical',
  })
  if (warning !== null) warn(warning, { eventUuid: event.uuid, groupType: identity.typeName, groupKey: identity.key })
}
