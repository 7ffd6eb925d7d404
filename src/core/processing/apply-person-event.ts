// Finds or creates the person of an event in the chunk's working copy, links the event's distinct ids and updates the
// person. Every event with a profile ends up here. An event raises a person's version at most once, so the version counts
// the events that changed the person.

import { exceedsMarksLimit, exceedsUnsetLimit } from '#core/processing/properties/marks-limit.ts'
import {
  applyPersonUpdate,
  createProfile,
  exceedsPersonLimit,
  type PersonUpdate,
} from '#core/processing/properties/person-update.ts'
import { truncateForWarning } from '../events/warning-types.ts'
import type { JsonObject } from '../json.ts'
import { emptyProfile, noKeys, restoreReplacedValues } from '../persons/profile.ts'
import type { ProjectState, WorkingPerson } from './chunk-state.ts'
import { isIllegalDistinctId, linkDistinctIds, type MergeRequest } from './person-merge.ts'
import { updatePropertiesText } from './person-snapshot.ts'

export interface PersonEvent extends PersonUpdate {
  readonly distinctId: string
  readonly merge: MergeRequest | null
  /** If false, only a person that the event creates gets its properties. Source: docs/wire/ingestion.md 6.3, 6.6. */
  readonly writesKnownPersons: boolean
}

/** Characters of a person's JSON text. Copying a smaller person is faster than tracking its changes. */
const inPlaceFromLength = 4_096

export type RaiseWarning = (type: string, details: JsonObject) => void

export interface PersonOutcome {
  readonly person: WorkingPerson
  /** The event's properties would not fit, so the person's properties were left unchanged. */
  readonly isTooLarge: boolean
}

/** Source: docs/wire/ingestion.md 6.3, 6.4, 6.6. */
export function applyPersonEvent(state: ProjectState, event: PersonEvent, warn: RaiseWarning): PersonOutcome {
  const { distinctId, merge } = event
  if (merge === null) return updateOrCreate(state, event, warn)
  if (state.isStaging) return stageLink(state, event, merge, warn)
  const outcome = linkDistinctIds(state, distinctId, merge)
  switch (outcome.kind) {
    case 'none':
      return updateOrCreate(state, event, warn)
    case 'illegal':
      warnOfIllegalId(event, merge, outcome.illegalId, warn)
      return updateOrCreate(state, event, warn)
    case 'full':
      warn('cannot_merge_too_many_distinct_ids', {
        sourcePersonDistinctId: merge.otherId,
        targetPersonDistinctId: distinctId,
        distinctId,
        eventUuid: event.uuid,
        personId: outcome.person.uuid,
      })
      return outcome.leavesOwnId
        ? updateOrCreate(state, event, warn)
        : updatePerson(outcome.person, event, { identified: true, versionIsRaised: false }, warn)
    case 'create': {
      const created = createPerson(state, outcome.uuid, event, true, warn)
      state.attach(distinctId, created.person, outcome.ownVersion)
      state.attach(merge.otherId, created.person, outcome.otherVersion)
      return created
    }
    case 'refused':
      warn(outcome.reason, {
        sourcePersonDistinctId: merge.otherId,
        targetPersonDistinctId: distinctId,
        distinctId,
        eventUuid: event.uuid,
        personId: outcome.person.uuid,
        otherPersonId: outcome.other.uuid,
      })
      return updatePerson(outcome.person, event, { identified: true, versionIsRaised: false }, warn)
    case 'linked':
      return updatePerson(outcome.person, event, { identified: true, versionIsRaised: false }, warn)
    case 'merged':
      return updatePerson(outcome.person, event, { identified: true, versionIsRaised: true }, warn)
    default:
      return outcome satisfies never
  }
}

/**
 * A pending job makes no links: they are made when it is published, with the persons that exist then. Until then each
 * distinct id of its staging overlay has a separate person.
 */
function stageLink(state: ProjectState, event: PersonEvent, merge: MergeRequest, warn: RaiseWarning): PersonOutcome {
  const { distinctId, timestampMs, uuid } = event
  const illegalId = [distinctId, merge.otherId].find(isIllegalDistinctId)
  if (illegalId === undefined && merge.otherId !== distinctId) {
    const { otherId, dangerously } = merge
    state.links.push({ distinctId, otherId, dangerously, timestampMs, uuid })
    return updateOrCreate(state, event, warn, true)
  }
  if (illegalId !== undefined) warnOfIllegalId(event, merge, illegalId, warn)
  return updateOrCreate(state, event, warn)
}

/** Applies an event as if its link had been refused. */
export function applyEventWithoutLink(state: ProjectState, event: PersonEvent, warn: RaiseWarning): PersonOutcome {
  return updateOrCreate(state, event, warn, true)
}

function updateOrCreate(
  state: ProjectState,
  event: PersonEvent,
  warn: RaiseWarning,
  identified = false,
): PersonOutcome {
  const known = state.findPerson(event.distinctId)
  if (known !== undefined) return updatePerson(known, event, { identified, versionIsRaised: false }, warn)
  const uuid = state.uuidOf(event.distinctId)
  const created = createPerson(state, uuid, event, identified, warn)
  state.attach(event.distinctId, created.person, state.versionFor(event.distinctId, uuid))
  return created
}

function warnOfIllegalId(event: PersonEvent, merge: MergeRequest, illegalId: string, warn: RaiseWarning): void {
  const { distinctId, uuid } = event
  warn('cannot_merge_with_illegal_distinct_id', {
    illegalDistinctId: truncateForWarning(illegalId),
    otherDistinctId: truncateForWarning(illegalId === distinctId ? merge.otherId : distinctId),
    distinctId,
    eventUuid: uuid,
  })
}

function createPerson(
  state: ProjectState,
  uuid: string,
  event: PersonEvent,
  isIdentified: boolean,
  warn: RaiseWarning,
): PersonOutcome {
  const takesTooMuchBack = event.historical && exceedsUnsetLimit(event.unset)
  let profile = takesTooMuchBack ? emptyProfile : createProfile(event)
  let propertiesJson = JSON.stringify(profile.properties)
  const isTooLarge = takesTooMuchBack || exceedsPersonLimit(propertiesJson) || exceedsMarksLimit(profile.marks)
  if (isTooLarge) {
    warnOfSize(event, uuid, warn)
    profile = createProfile({ ...event, set: null, setOnce: null, unset: noKeys })
    propertiesJson = JSON.stringify(profile.properties)
  }
  const person = state.createPerson(uuid, profile, event.timestampMs, isIdentified)
  person.propertiesJson = propertiesJson
  return { person, isTooLarge }
}

function updatePerson(
  person: WorkingPerson,
  event: PersonEvent,
  link: { identified: boolean; versionIsRaised: boolean },
  warn: RaiseWarning,
): PersonOutcome {
  let changed = false
  let isTooLarge = event.historical && exceedsUnsetLimit(event.unset)
  const profile = event.writesKnownPersons && !isTooLarge ? applyPersonUpdate(person, event) : null
  if (isTooLarge) warnOfSize(event, person.uuid, warn)
  if (profile !== null) {
    const propertiesJson = updatePropertiesText(person.propertiesJson, profile)
    isTooLarge = exceedsPersonLimit(propertiesJson) || (event.historical && exceedsMarksLimit(profile.marks))
    if (isTooLarge) {
      if (profile.replaced !== null) restoreReplacedValues(person.properties, profile.replaced)
      warnOfSize(event, person.uuid, warn)
    } else {
      const isCopy = profile.properties !== person.properties
      if (isCopy) person.ownsProperties = propertiesJson.length >= inPlaceFromLength
      person.properties = profile.properties
      person.marks = profile.marks
      person.propertiesJson = propertiesJson
      changed = true
    }
  }
  if (link.identified && !person.isIdentified) {
    person.isIdentified = true
    changed = true
  }
  if (event.historical && event.timestampMs < person.createdAtMs) {
    person.createdAtMs = event.timestampMs
    changed = true
  }
  if (changed && !link.versionIsRaised) person.version += 1
  if (changed) {
    person.changed = true
    person.lastSeenAtMs = Math.max(person.lastSeenAtMs, event.timestampMs)
  }
  return { person, isTooLarge }
}

function warnOfSize(event: PersonEvent, personId: string, warn: RaiseWarning): void {
  const { distinctId, uuid } = event
  warn('person_properties_size_violation', { distinctId, eventUuid: uuid, personId })
}
