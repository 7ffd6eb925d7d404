// Which flags a chunk's events say were called, and when last: what `last_called_at` and the status of a flag follow.
// Imports do not count, since they tell of other times and often of other instances.

import type { CapturedEvent } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'
import type { CalledFlag } from './chunk.ts'
import { isFlagCall } from './deduplicate-flag-calls.ts'

/** Longer keys are no flag's (`validate-flag.ts`), and a client may send any text as `$feature_flag`. */
const keyCharsMax = 400

export class CalledFlags {
  /** By project, then by key. */
  readonly #calledAtMs = new Map<number, Map<string, number>>()

  /** Notes the event if it is a live flag call. A client's clock may be ahead, so the time of acceptance is the latest. */
  note(event: CapturedEvent, properties: JsonObject): void {
    if (!isFlagCall(event, properties)) return
    const key = properties.$feature_flag as string
    // The state can store no other texts, so no flag has such a key.
    if (key.length > keyCharsMax || key.includes('\0') || !key.isWellFormed()) return
    const calledAtMs = Math.min(event.timestampMs, event.capturedAtMs)
    let ofProject = this.#calledAtMs.get(event.projectId)
    if (ofProject === undefined) {
      ofProject = new Map()
      this.#calledAtMs.set(event.projectId, ofProject)
    }
    const known = ofProject.get(key)
    if (known === undefined || known < calledAtMs) ofProject.set(key, calledAtMs)
  }

  all(): CalledFlag[] {
    return Array.from(this.#calledAtMs, ([projectId, ofProject]) =>
      Array.from(ofProject, ([flagKey, calledAtMs]) => ({ projectId, flagKey, calledAtMs })),
    ).flat()
  }
}
