// Writes of a project's flags and cohorts take turns within a front. A write that checks references is refused when the
// definitions change between its check and its write, so beside writes that check nothing it would rarely succeed.

import { createTurns, type InTurn } from '../shared/turns.ts'

/** By store and project. */
const turnsOf = new WeakMap<object, Map<number, InTurn>>()

/** @param run must not ask for another turn of the project: it would wait for itself. */
export function inDefinitionTurn<T>(store: object, projectId: number, run: () => Promise<T>): Promise<T> {
  const ofStore = turnsOf.get(store) ?? new Map<number, InTurn>()
  turnsOf.set(store, ofStore)
  const inTurn = ofStore.get(projectId) ?? createTurns()
  ofStore.set(projectId, inTurn)
  return inTurn(run)
}
