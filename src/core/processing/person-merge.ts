// Decides which distinct ids an event links, and merges their persons if both already have one. `apply-person-event.ts` then
// applies the event's property updates; `chunk-state.ts` moves the mappings and raises override versions.

import { mergeProfiles } from '#core/processing/properties/import-update.ts'
import { trimPropertyMarks } from '#core/processing/properties/marks-limit.ts'
import { exceedsPersonLimit, trimProfile } from '#core/processing/properties/person-update.ts'
import { cookielessSentinel } from '../cookieless/visitor-hash.ts'
import { getOwnValue, type JsonObject } from '../json.ts'
import type { ProjectState, WorkingPerson } from './chunk-state.ts'

export interface MergeRequest {
  readonly otherId: string
  /** True for `$merge_dangerously`, which also merges persons that are already identified. */
  readonly dangerously: boolean
  /** The merge conflicted with other writers on every try: the persons stay separate. */
  readonly isLost?: boolean
}

export type MergeOutcome =
  /** The event is processed as an ordinary event, without a link. */
  | { readonly kind: 'none' }
  | { readonly kind: 'illegal'; readonly illegalId: string }
  /** Neither id has a person: the caller creates one for both. */
  | { readonly kind: 'create'; readonly uuid: string; readonly ownVersion: number; readonly otherVersion: number }
  /** With `merged`, `person` is the survivor, whose version is already raised. */
  | { readonly kind: 'linked' | 'merged'; readonly person: WorkingPerson }
  /** The person has the maximum number of ids. With `leavesOwnId`, the event's own id is left without a person. */
  | { readonly kind: 'full'; readonly person: WorkingPerson; readonly leavesOwnId: boolean }
  /** The merge is refused and both persons remain; `person`, which would have survived, becomes identified. */
  | {
      readonly kind: 'refused'
      readonly reason: MergeRefusal
      readonly person: WorkingPerson
      readonly other: WorkingPerson
    }

/** The type of the warning for a refused merge. */
export type MergeRefusal =
  | 'cannot_merge_already_identified'
  | 'cannot_merge_too_many_distinct_ids'
  | 'merge_race_condition'

/**
 * Maximum number of a person's distinct ids: no link and no merge exceeds it. Each id is a row of the state store and, in a
 * merge, of the event store, all written in one transaction. Persons from before this limit may have more.
 * Source: ours, docs/decisions/0027-ids-per-person.md; docs/wire/ingestion.md 6.4. PostHog reads 2,500 ids of a person.
 */
export const personDistinctIdCountMax = 2_500

/**
 * The link that an event requests; null for an ordinary event and for one without the required id. Events whose id is
 * neither text nor null were dropped before (`findEventDropReason`). Source: docs/wire/ingestion.md 6.4, 6.5.
 */
export function readMergeRequest(eventName: string, properties: JsonObject): MergeRequest | null {
  if (eventName === '$identify') {
    const otherId = getOwnValue(properties, '$anon_distinct_id')
    if (otherId === null) return createMergeRequest('null', false)
    return typeof otherId === 'string' ? createMergeRequest(otherId, false) : null
  }
  if (eventName !== '$create_alias' && eventName !== '$merge_dangerously') return null
  const alias = getOwnValue(properties, 'alias')
  if (typeof alias !== 'string' || alias === '') return null
  return createMergeRequest(alias, eventName === '$merge_dangerously')
}

/** Makes the other id well-formed, as stored. The event's own id is already well-formed. */
function createMergeRequest(otherId: string, dangerously: boolean): MergeRequest {
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
    const keepsOther = state.hasPersonlessRows(otherId) && !state.hasPersonlessRows(survivorId)
    const uuid = state.uuidOf(keepsOther ? otherId : survivorId)
    return {
      kind: 'create',
      uuid,
      ownVersion: state.versionFor(survivorId, uuid),
      otherVersion: state.versionFor(otherId, uuid),
    }
  }
  if (survivor === undefined || other === undefined) {
    const [person, newId] = survivor === undefined ? [other!, survivorId] : [survivor, otherId]
    if (person.mappings.length >= personDistinctIdCountMax)
      return { kind: 'full', person, leavesOwnId: survivor === undefined }
    state.attach(newId, person, state.nextVersionOf(newId))
    return { kind: 'linked', person }
  }
  if (survivor === other) return { kind: 'linked', person: survivor }
  const reason = findMergeRefusal(survivor, other, request)
  if (reason !== null) return { kind: 'refused', reason, person: survivor, other }
  mergePersons(state, survivor, other)
  return { kind: 'merged', person: survivor }
}

function findMergeRefusal(survivor: WorkingPerson, other: WorkingPerson, request: MergeRequest): MergeRefusal | null {
  if (other.isIdentified && !request.dangerously) return 'cannot_merge_already_identified'
  if (survivor.mappings.length + other.mappings.length > personDistinctIdCountMax)
    return 'cannot_merge_too_many_distinct_ids'
  return request.isLost === true ? 'merge_race_condition' : null
}

function mergePersons(state: ProjectState, survivor: WorkingPerson, other: WorkingPerson): void {
  const merged = mergeProfiles(survivor, other)
  const profile = trimPropertyMarks(
    exceedsPersonLimit(JSON.stringify(merged.properties)) ? trimProfile(merged) : merged,
  )
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
const illegalAsWritten = new Set([
  '[object Object]',
  'NaN',
  'None',
  'none',
  'null',
  '0',
  'undefined',
  cookielessSentinel,
])
const distinctIdCodePointsMax = 400

/** Whether an id is a placeholder that would link unrelated persons. Source: docs/wire/ingestion.md 6.4. */
export function isIllegalDistinctId(distinctId: string): boolean {
  if (distinctId.trim() === '' || distinctId.includes('\0')) return true
  if (distinctId.length > distinctIdCodePointsMax && Array.from(distinctId).length > distinctIdCodePointsMax)
    return true
  const bare = /^(?:'.*'|".*")$/s.test(distinctId) ? distinctId.slice(1, -1) : distinctId
  return illegalInAnyCase.has(bare.toLowerCase()) || illegalAsWritten.has(bare)
}
