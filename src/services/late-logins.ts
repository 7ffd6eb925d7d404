// Log-ins that we heard of before their person is stored: an SDK asks for flags and sends its `$identify` at the same moment,
// and the event still has to pass through the log. The row that keeps the bucket is written once the person is there; until
// then, requests with the anonymous id are decided by that id. What waits is only in memory, and bounded, because anybody
// with the public key can make something wait. Source: ours; docs/wire/evaluation.md 5.13 asks for less.

import type { HashKeyAssignment, HashKeyOverrideReader, HashKeyOverrideWriter } from '#ports/hash-key-overrides.ts'
import type { GuardOptions, StoreGuard } from './store-guard.ts'

export interface LateLoginsOptions {
  readonly hashKeys: HashKeyOverrideReader & HashKeyOverrideWriter
  readonly reads: StoreGuard
  readonly writes: StoreGuard
  readonly startTimer: GuardOptions['startTimer']
}

export interface LateLogins {
  /** Looks for the person again for about a minute. Of several anonymous ids for one person, the first stays. */
  note(assignment: HashKeyAssignment): void
}

/** Between one look and the next. Events are usually processed within a second. */
const pausesMs = [300, 700, 1_500, 3_000, 6_000, 15_000, 30_000]
const waitingMax = 2_000

export function createLateLogins({ hashKeys, reads, writes, startTimer }: LateLoginsOptions): LateLogins {
  const waiting = new Set<string>()

  return {
    note(assignment) {
      const name = JSON.stringify([assignment.projectId, assignment.distinctId])
      if (waiting.size >= waitingMax || waiting.has(name)) return
      waiting.add(name)
      lookLater(name, assignment, 0)
    },
  }

  function lookLater(name: string, assignment: HashKeyAssignment, look: number): void {
    const pauseMs = pausesMs[look]
    if (pauseMs === undefined) waiting.delete(name)
    else startTimer(() => void lookNow(name, assignment, look), pauseMs)
  }

  async function lookNow(name: string, assignment: HashKeyAssignment, look: number): Promise<void> {
    const { projectId, distinctId } = assignment
    const found = await reads.run(() => hashKeys.findHashKeys(projectId, distinctId))
    if (found.ok && found.value !== null) {
      const kept = await writes.run(() => hashKeys.keepHashKey(assignment))
      if (kept.ok) {
        waiting.delete(name)
        return
      }
    }
    lookLater(name, assignment, look + 1)
  }
}
