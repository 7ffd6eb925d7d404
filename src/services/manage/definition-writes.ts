// Writes of a project's flags and cohorts take turns within a front. A write that checks references is refused when the
// definitions change between its check and its write, so beside writes that check nothing it would rarely succeed.

import { createSerializer, type Serialize } from '#services/shared/serializer.ts'

/** By store and project. */
const serializersOf = new WeakMap<object, Map<number, Serialize>>()

/** @param run must not ask for another turn of the project: it would wait for itself. */
export function serializeDefinitionWrite<T>(store: object, projectId: number, run: () => Promise<T>): Promise<T> {
  const ofStore = serializersOf.get(store) ?? new Map<number, Serialize>()
  serializersOf.set(store, ofStore)
  const serialize = ofStore.get(projectId) ?? createSerializer()
  ofStore.set(projectId, serialize)
  return serialize(run)
}
