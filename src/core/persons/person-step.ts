// The person that an event belongs to, after the event: found, created, linked and updated in the chunk's working copy.
// Every event with a profile ends here; at most one write per event, so a person's version counts events that changed it.

import type { ProjectState, WorkingPerson } from '../events/chunk-state.ts'
import type { JsonObject } from '../json.ts'
import { linkDistinctIds, type MergeRequest } from './person-merge.ts'
import { applyPersonUpdate, createProfile, creatorKey, exceedsPersonLimit, type PersonUpdate } from './person-update.ts'
import { emptyProfile } from './profile.ts'

export interface PersonEvent extends PersonUpdate {
  readonly distinctId: string
  readonly merge: MergeRequest | null
}

export type RaiseWarning = (type: string, details: JsonObject) => void

/** Source: docs/wire/ingestion.md 6.3, 6.4, 6.6. */
export function applyPersonEvent(state: ProjectState, event: PersonEvent, warn: RaiseWarning): WorkingPerson {
  const { distinctId, merge } = event
  if (merge === null) return updateOrCreate(state, event, warn)
  const outcome = linkDistinctIds(state, distinctId, merge)
  switch (outcome.kind) {
    case 'none':
      return updateOrCreate(state, event, warn)
    case 'illegal': {
      const otherDistinctId = outcome.illegalId === distinctId ? merge.otherId : distinctId
      const ids = { illegalDistinctId: outcome.illegalId, otherDistinctId }
      warn('cannot_merge_with_illegal_distinct_id', { ...ids, eventUuid: event.uuid })
      return updateOrCreate(state, event, warn)
    }
    case 'create': {
      const person = createPerson(state, outcome.uuid, event, true, warn)
      state.attach(distinctId, person, 0)
      state.attach(merge.otherId, person, outcome.otherVersion)
      return person
    }
    case 'refused':
    case 'too_many_ids':
      warn(outcome.kind === 'refused' ? 'cannot_merge_already_identified' : 'cannot_merge_too_many_distinct_ids', {
        sourcePersonDistinctId: merge.otherId,
        targetPersonDistinctId: distinctId,
        eventUuid: event.uuid,
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

function updateOrCreate(state: ProjectState, event: PersonEvent, warn: RaiseWarning): WorkingPerson {
  const known = state.findPerson(event.distinctId)
  if (known !== undefined) return updatePerson(known, event, { identified: false, versionIsRaised: false }, warn)
  const person = createPerson(state, state.uuidOf(event.distinctId), event, false, warn)
  state.attach(event.distinctId, person, 0)
  return person
}

function createPerson(
  state: ProjectState,
  uuid: string,
  event: PersonEvent,
  isIdentified: boolean,
  warn: RaiseWarning,
): WorkingPerson {
  let profile = createProfile(event)
  let propertiesJson = JSON.stringify(profile.properties)
  if (exceedsPersonLimit(propertiesJson)) {
    warnOfSize(event, warn)
    profile = { ...emptyProfile, properties: { [creatorKey]: event.uuid } }
    propertiesJson = JSON.stringify(profile.properties)
  }
  const person = state.createPerson(uuid, profile, event.timestampMs, isIdentified)
  person.propertiesJson = propertiesJson
  return person
}

function updatePerson(
  person: WorkingPerson,
  event: PersonEvent,
  link: { identified: boolean; versionIsRaised: boolean },
  warn: RaiseWarning,
): WorkingPerson {
  let changed = false
  const profile = applyPersonUpdate(person, event)
  if (profile !== null) {
    const propertiesJson = JSON.stringify(profile.properties)
    if (exceedsPersonLimit(propertiesJson)) warnOfSize(event, warn)
    else {
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
  return person
}

function warnOfSize(event: PersonEvent, warn: RaiseWarning): void {
  warn('person_properties_size_violation', { distinctId: event.distinctId, eventUuid: event.uuid })
}
