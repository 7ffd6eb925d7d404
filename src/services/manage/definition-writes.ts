// Serialises the writes of a project's flags and cohorts within a front. A write that checks references is refused when the
// definitions change between its check and its write, so it would rarely succeed while other writes, which check nothing,
// run at the same time.

import { ok, type Result } from '#core/result.ts'
import type { Written } from '#ports/state/written.ts'
import { createSerialQueue, type Serialize } from '../shared/serial-queue.ts'

/** By store and project. */
const serializersOf = new WeakMap<object, Map<number, Serialize>>()

/** @param run must not serialise another write of the project: it would wait for itself. */
export function queueDefinitionWrite<T>(store: object, projectId: number, run: () => Promise<T>): Promise<T> {
  const ofStore = serializersOf.get(store) ?? new Map<number, Serialize>()
  serializersOf.set(store, ofStore)
  const serialize = ofStore.get(projectId) ?? createSerialQueue()
  ofStore.set(projectId, serialize)
  return serialize(run)
}

/** The value of a write, once this front serves it. */
export async function waitUntilServed<T, E>(
  { definitionsReady }: { readonly definitionsReady: (revision: number) => Promise<void> },
  written: Result<Written<T>, E>,
): Promise<Result<T, E>> {
  if (!written.ok) return written
  await definitionsReady(written.value.revision)
  return ok(written.value.value)
}
