// Splits a person: each of its distinct ids gets a separate person, made from the events of that id. Pure.

import { getOwnValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { Person } from '#core/persons/person.ts'
import type { SplitDistinctId } from '#core/persons/person-repair.ts'
import { ProjectState } from '#core/processing/chunk-state.ts'
import type { JobBatch, PublishedBatch } from '#core/processing/imports/publish-staging.ts'
import { applyHistoryDifference } from './apply-difference.ts'
import { foldHistory, type History } from './fold-history.ts'

export interface SplitBatch extends JobBatch {
  /** The person to split; no other person is loaded. */
  readonly person: Person
  /** The events of the person's distinct ids and of the ids linked with them, and the earlier splits of these ids. */
  readonly history: History
  /** One entry for each of the person's distinct ids; the main id keeps the person's uuid. */
  readonly splits: readonly SplitDistinctId[]
}

/** Values of the person that its events do not explain stay with the main distinct id. */
export function splitPerson({ person, history, splits, ...batch }: SplitBatch): PublishedBatch {
  const ids = splits.map(({ distinctId }) => distinctId)
  const others = (history.splits ?? []).filter(({ distinctId }) => !ids.includes(distinctId))
  const wanted = pickIds(foldHistory({ ...history, splits: [...others, ...splits] }), ids)
  const folded = pickIds(foldHistory(history), ids)
  const foldedUuids = new Set(ids.map(id => folded.mappings.get(id)?.person.uuid))
  const isExplained = foldedUuids.size === 1 && !foldedUuids.has(undefined)
  const was = isExplained ? folded : assumePast(person, ids, wanted)
  const { changes, overrides } = applyHistoryDifference({ ...batch, was, wanted, idsWithEvents: new Set(ids) })
  const isWritten = changes.persons.some(({ row }) => row.uuid === person.uuid)
  // The version is raised, so that a chunk that has loaded the person with all of its ids conflicts.
  const row = { row: { ...person, version: person.version + 1 }, loadedVersion: person.version }
  const persons = isWritten ? changes.persons : [...changes.persons, row]
  return { overrides, changes: { ...changes, persons, splits } }
}

function pickIds(state: ProjectState, ids: readonly string[]): ProjectState {
  const picked = new ProjectState(state.project)
  for (const id of ids) {
    const mapping = state.mappings.get(id)
    if (mapping !== undefined) picked.mappings.set(id, mapping)
  }
  return picked
}

/** The person reduced to the values that the events of at least one id make, as if these events had created the person. */
function assumePast(person: Person, ids: readonly string[], wanted: ProjectState): ProjectState {
  const persons = [...wanted.mappings.values()].map(mapping => mapping.person)
  const isMade = (key: string) => {
    const value = getOwnValue(person.properties, key)
    return persons.some(each => isSameJson(getOwnValue(each.properties, key), value))
  }
  const pick = <Value>(from: Readonly<Record<string, Value>>) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => isMade(key)))
  const state = new ProjectState(wanted.project)
  const row = { ...person, properties: pick(person.properties) as Person['properties'], marks: pick(person.marks) }
  const past = state.loadPerson(row, null)
  for (const distinctId of ids)
    state.loadMapping({ projectId: person.projectId, distinctId, personUuid: person.uuid, version: 0 }, past)
  return state
}
