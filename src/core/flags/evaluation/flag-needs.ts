// Which stored data a set of flags may read for one request. Known before anything is loaded, so that a request with
// all properties that the flags read costs no look-up. Source: docs/wire/evaluation.md 5.8 "Database use".

import type { EvaluationSubject } from './evaluation-subject.ts'
import { readRequestedGroupProperty } from './evaluation-subject.ts'
import { type PersonKey, readRequestedProperty } from './person-properties.ts'

export interface FlagNeeds {
  /** Reads the stored person, even if the request contains all properties. */
  readonly person: boolean
  /** The person properties that may be read. */
  readonly personKeys: ReadonlySet<PersonKey>
  /** The group properties that may be read, by group type index. */
  readonly groupKeys: ReadonlyMap<number, ReadonlySet<string>>
  /** May hash the id in an override row of experience continuity. */
  readonly hashKeyOverrides: boolean
  /** Has experience continuity on, so a request with an anonymous id writes override rows. */
  readonly continuity: boolean
  /** Reads which static cohorts the person is in. */
  readonly staticCohorts: boolean
}

export class NeedsCollector implements FlagNeeds {
  person = false
  hashKeyOverrides = false
  continuity = false
  staticCohorts = false
  readonly personKeys = new Set<PersonKey>()
  readonly groupKeys = new Map<number, Set<string>>()

  addPerson(): void {
    this.person = true
  }

  addPersonKey(key: PersonKey): void {
    this.personKeys.add(key)
  }

  addGroupKey(typeIndex: number, key: string): void {
    const keys = this.groupKeys.get(typeIndex)
    if (keys === undefined) this.groupKeys.set(typeIndex, new Set([key]))
    else keys.add(key)
  }

  add(needs: FlagNeeds): void {
    this.person ||= needs.person
    this.hashKeyOverrides ||= needs.hashKeyOverrides
    this.staticCohorts ||= needs.staticCohorts
    this.continuity ||= needs.continuity
    for (const key of needs.personKeys) this.addPersonKey(key)
    for (const [typeIndex, keys] of needs.groupKeys) for (const key of keys) this.addGroupKey(typeIndex, key)
  }
}

export function mergeFlagNeeds(flags: readonly { readonly needs: FlagNeeds }[]): FlagNeeds {
  const union = new NeedsCollector()
  for (const flag of flags) union.add(flag.needs)
  return union
}

type Request = Pick<EvaluationSubject, 'personProperties' | 'groupProperties' | 'geoip' | 'distinctId'>

export function needsStoredPerson(needs: FlagNeeds, request: Request): boolean {
  if (needs.person) return true
  const layers = { request: request.personProperties, geoip: request.geoip, distinctId: request.distinctId }
  for (const key of needs.personKeys) if (readRequestedProperty(layers, key) === undefined) return true
  return false
}

/** Whether a group property that is missing from the request may be read. `$group_key` is never read from a row. */
export function needsGroupRow(needs: FlagNeeds, typeIndex: number, typeName: string, request: Request): boolean {
  for (const key of needs.groupKeys.get(typeIndex) ?? []) {
    if (key !== '$group_key' && readRequestedGroupProperty(request, typeName, key) === undefined) return true
  }
  return false
}
