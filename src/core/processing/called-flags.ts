// Collects which flags a chunk's events called, and when each was last called: the source of a flag's `last_called_at` and
// status. Imports do not count: they describe other times and often other instances.

import type { CapturedEvent } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'
import type { CalledFlag } from './chunk.ts'
import { isFlagCall } from './deduplicate-flag-calls.ts'

/** No flag has a longer key (`validate-flag.ts`), but a client may send any text as `$feature_flag`. */
const keyCharsMax = 400

export class CalledFlags {
  /** When each flag was last called, epoch ms, by project and then by flag key. */
  readonly #calledAtMs = new Map<number, Map<string, number>>()

  /**
   * Notes the event if it is a live flag call. The noted time is at most the time of acceptance, because a client's clock
   * may be ahead.
   */
  note(event: CapturedEvent, properties: JsonObject): void {
    if (!isFlagCall(event, properties)) return
    const key = properties.$feature_flag as string
    // The state store cannot store NUL or lone surrogates, so no flag has such a key.
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
