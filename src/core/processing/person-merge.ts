// Which distinct ids an event links, and who survives when both already lead to persons. Property updates of the same
// event come after (`person-step.ts`); moving rows and override versions is `chunk-state.ts`.

import { type JsonObject, ownValue } from '../json.ts'
import type { ProjectState, WorkingPerson } from './chunk-state.ts'
import { mergeProfiles } from './import-update.ts'
import { exceedsPersonLimit, trimProfile } from './person-update.ts'

export interface MergeRequest {
  readonly otherId: string
  /** `$merge_dangerously` merges persons that are identified already. */
  readonly dangerously: boolean
  /** Other writers were faster every time: two persons stay two. */
  readonly isLost?: boolean
}

export type MergeOutcome =
  /** The event goes on as an ordinary one. */
  | { readonly kind: 'none' }
  | { readonly kind: 'illegal'; readonly illegalId: string }
  /** Neither id leads to a person: one is to be created for both. */
  | { readonly kind: 'create'; readonly uuid: string; readonly otherVersion: 0 | 1 }
  /** The survivor's version is already raised when `merged`. */
  | { readonly kind: 'linked' | 'merged'; readonly person: WorkingPerson }
  /** The person has as many ids as one may have; the other id stays without a person. */
  | { readonly kind: 'full'; readonly person: WorkingPerson; readonly leavesOwnId: boolean }
  /** Both persons go on, the survivor's is identified. */
  | {
      readonly kind: 'refused'
      readonly why: MergeRefusal
      readonly person: WorkingPerson
      readonly other: WorkingPerson
    }

/** The warning of a merge that is not made. */
export type MergeRefusal =
  | 'cannot_merge_already_identified'
  | 'cannot_merge_too_many_distinct_ids'
  | 'merge_race_condition'

/**
 * A person has at most so many distinct ids: no link and no merge goes beyond. Each of them is a row of the state, and for a
 * merge one of the event store as well, written in one transaction. Persons from before this limit may have more.
 * Source: ours, docs/decisions/0027-ids-per-person.md; docs/wire/ingestion.md 6.4. PostHog reads 2,500 ids of a person.
 */
export const personDistinctIdCountMax = 2_500

/**
 * The link an event asks for; null when it lacks what that needs and is an ordinary event. Ids of another type are none:
 * their event is dropped. Source: docs/wire/ingestion.md 6.4, 6.5.
 */
export function mergeRequestOf(eventName: string, properties: JsonObject): MergeRequest | null {
  if (eventName === '$identify') {
    const otherId = ownValue(properties, '$anon_distinct_id')
    if (otherId === null) return linkTo('null', false)
    return typeof otherId === 'string' ? linkTo(otherId, false) : null
  }
  if (eventName !== '$create_alias' && eventName !== '$merge_dangerously') return null
  const alias = ownValue(properties, 'alias')
  if (typeof alias !== 'string' || alias === '') return null
  return linkTo(alias, eventName === '$merge_dangerously')
}

/** Ids are stored as well-formed text; what the event's own id has gone through at the edge is made up for here. */
function linkTo(otherId: string, dangerously: boolean): MergeRequest {
  return { otherId: otherId.toWellFormed(), dangerously }
}

/** Links `otherId` to the person of `survivorId`. Source: docs/wire/ingestion.md 6.4 steps 1–6; vectors. */
export function linkDistinctIds(state: ProjectState, survivorId: string, request: MergeRequest): MergeOutcome {
  const { otherId } = request
  if (survivorId === otherId) return { kind: 'none' }
  for (const id of [survivorId, otherId]) if (isIllegalDistinctId(id)) return { kind: 'illegal', illegalId: id }
  const survivor = state.findPerson(survivorId)
  const other = state.findPerson(otherId)
  if (survivor === undefined && other === undefined) {
    const otherWasPersonless = state.isPersonless(otherId)
    const survivorWasPersonless = state.isPersonless(survivorId)
    const keepsOther = otherWasPersonless && !survivorWasPersonless
    return {
      kind: 'create',
      uuid: state.uuidOf(keepsOther ? otherId : survivorId),
      otherVersion: otherWasPersonless && survivorWasPersonless ? 1 : 0,
    }
  }
  if (survivor === undefined || other === undefined) {
    const [person, newId] = survivor === undefined ? [other!, survivorId] : [survivor, otherId]
    if (person.mappings.length >= personDistinctIdCountMax)
      return { kind: 'full', person, leavesOwnId: survivor === undefined }
    state.attach(newId, person, state.isPersonless(newId) ? 1 : 0)
    return { kind: 'linked', person }
  }
  if (survivor === other) return { kind: 'linked', person: survivor }
  const why = refusalOf(survivor, other, request)
  if (why !== null) return { kind: 'refused', why, person: survivor, other }
  mergePersons(state, survivor, other)
  return { kind: 'merged', person: survivor }
}

function refusalOf(survivor: WorkingPerson, other: WorkingPerson, request: MergeRequest): MergeRefusal | null {
  if (other.isIdentified && !request.dangerously) return 'cannot_merge_already_identified'
  if (survivor.mappings.length + other.mappings.length > personDistinctIdCountMax)
    return 'cannot_merge_too_many_distinct_ids'
  return request.isLost === true ? 'merge_race_condition' : null
}

function mergePersons(state: ProjectState, survivor: WorkingPerson, other: WorkingPerson): void {
  const merged = mergeProfiles(survivor, other)
  const profile = exceedsPersonLimit(JSON.stringify(merged.properties)) ? trimProfile(merged) : merged
  survivor.properties = profile.properties
  survivor.ownsProperties = false
  survivor.marks = profile.marks
  survivor.propertiesJson = null
  survivor.createdAtMs = Math.min(survivor.createdAtMs, other.createdAtMs)
  survivor.lastSeenAtMs = Math.max(survivor.lastSeenAtMs, other.lastSeenAtMs)
  survivor.version = Math.max(survivor.version, other.version) + 1
  survivor.changed = true
  state.moveDistinctIds(other, survivor)
}

const illegalInAnyCase = new Set([
  'anonymous',
  'guest',
  'distinctid',
  'distinct_id',
  'id',
  'not_authenticated',
  'email',
  'undefined',
  'true',
  'false',
])
const illegalAsWritten = new Set(['[object Object]', 'NaN', 'None', 'none', 'null', '0', 'undefined'])
const distinctIdCodePointsMax = 400

/** Ids that stand for nobody in particular, and would tie strangers together. Source: docs/wire/ingestion.md 6.4. */
export function isIllegalDistinctId(distinctId: string): boolean {
  if (distinctId.trim() === '' || distinctId.includes('\0')) return true
  if (distinctId.length > distinctIdCodePointsMax && Array.from(distinctId).length > distinctIdCodePointsMax)
    return true
  const bare = /^(?:'.*'|".*")$/s.test(distinctId) ? distinctId.slice(1, -1) : distinctId
  return illegalInAnyCase.has(bare.toLowerCase()) || illegalAsWritten.has(bare)
}
