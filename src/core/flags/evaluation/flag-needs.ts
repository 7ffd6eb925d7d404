// Which stored data a set of flags may read for one request: known before anything is loaded, so that a request that
// brings its own properties costs no look-up. Source: docs/wire/evaluation.md 5.8 "Database use".

import type { EvaluationSubject } from './evaluation-subject.ts'
import { requestedGroupProperty } from './evaluation-subject.ts'
import { type PersonKey, requestedProperty } from './person-properties.ts'

export interface FlagNeeds {
  /** Reads the stored person whatever the request holds. */
  readonly person: boolean
  /** Person properties it may read. */
  readonly personKeys: ReadonlySet<PersonKey>
  /** Group properties it may read, by group type index. */
  readonly groupKeys: ReadonlyMap<number, ReadonlySet<string>>
  /** May hash what an override row of experience continuity holds. */
  readonly hashKeyOverrides: boolean
  /** Has experience continuity on: a request with an anonymous id leaves rows behind. */
  readonly continuity: boolean
  /** Asks which static cohorts the person is in. */
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

export function unionOfNeeds(flags: readonly { readonly needs: FlagNeeds }[]): FlagNeeds {
  const union = new NeedsCollector()
  for (const flag of flags) union.add(flag.needs)
  return union
}

type Request = Pick<EvaluationSubject, 'personProperties' | 'groupProperties' | 'geoip' | 'distinctId'>

export function needsStoredPerson(needs: FlagNeeds, request: Request): boolean {
  if (needs.person) return true
  const layers = { request: request.personProperties, geoip: request.geoip, distinctId: request.distinctId }
  for (const key of needs.personKeys) if (requestedProperty(layers, key) === undefined) return true
  return false
}

/** Whether a property of the group that the request leaves open may be read. `$group_key` never comes from a row. */
export function needsGroupRow(needs: FlagNeeds, typeIndex: number, typeName: string, request: Request): boolean {
  for (const key of needs.groupKeys.get(typeIndex) ?? []) {
    if (key !== '$group_key' && requestedGroupProperty(request, typeName, key) === undefined) return true
  }
  return false
}
