// Remembers log-ins whose person is not stored yet: an SDK requests flags and sends its `$identify` at the same time,
// and the event still has to pass through the log. The row that keeps the bucket is written once the person is stored;
// until then, requests with the anonymous id are decided by that id. Waiting log-ins are held in memory only, and their
// number is bounded, because any client with a public key can add some. Source: ours; docs/wire/evaluation.md 5.13
// requires less.

import type { HashKeyAssignment, HashKeyOverrideReader } from '#ports/state/subject-store.ts'
import type { HashKeyWrites } from './hash-key-writes.ts'
import type { CircuitBreakerOptions, StoreCircuitBreaker } from './store-circuit-breaker.ts'

export interface LateLoginsOptions {
  readonly hashKeys: HashKeyOverrideReader
  readonly reads: StoreCircuitBreaker
  readonly writes: HashKeyWrites
  readonly startTimer: CircuitBreakerOptions['startTimer']
  /** Called for each log-in that is dropped because too many wait. */
  readonly onDropped: () => void
}

export type LateLogins = ReturnType<typeof createLateLoginRetrier>

interface LateLogin {
  readonly assignment: HashKeyAssignment
  timer: { cancel(): void } | null
  isDropped: boolean
}

/** Pauses between tries. Events are usually processed within a second. */
const pausesMs = [300, 700, 1_500, 3_000, 6_000, 15_000, 30_000]
/** How many log-ins of all projects may wait. */
const waitingMax = 2_000

export function createLateLoginRetrier(options: LateLoginsOptions) {
  const { hashKeys, reads, writes, startTimer, onDropped } = options
  /** By project, then by distinct id, oldest first. A project without log-ins has no entry. */
  const waiting = new Map<number, Map<string, LateLogin>>()
  let waitingCount = 0

  return {
    /**
     * Retries finding the person for about a minute. Of several anonymous ids for one person, the first counts. At the
     * limit, the project with the most waiting log-ins loses its oldest one.
     */
    note(assignment: HashKeyAssignment): void {
      const { projectId, distinctId } = assignment
      if (waiting.get(projectId)?.has(distinctId)) return
      if (waitingCount >= waitingMax) dropOldest(projectId)
      const login: LateLogin = { assignment, timer: null, isDropped: false }
      const ofProject = waiting.get(projectId) ?? new Map<string, LateLogin>()
      waiting.set(projectId, ofProject.set(distinctId, login))
      waitingCount++
      tryLater(login, 0)
    },
  }

  /** @param newcomerId the project that needs the place; it loses its own oldest log-in when no other project has more. */
  function dropOldest(newcomerId: number): void {
    let largest = waiting.get(newcomerId)
    for (const ofProject of waiting.values())
      if (largest === undefined || ofProject.size > largest.size) largest = ofProject
    const [oldest] = largest!.values()
    oldest!.isDropped = true
    oldest!.timer?.cancel()
    remove(oldest!)
    onDropped()
  }

  function remove({ assignment }: LateLogin): void {
    const ofProject = waiting.get(assignment.projectId)!
    ofProject.delete(assignment.distinctId)
    if (ofProject.size === 0) waiting.delete(assignment.projectId)
    waitingCount--
  }

  function tryLater(login: LateLogin, look: number): void {
    const pauseMs = pausesMs[look]
    if (pauseMs === undefined) remove(login)
    else login.timer = startTimer(() => void tryNow(login, look), pauseMs)
  }

  async function tryNow(login: LateLogin, look: number): Promise<void> {
    const { projectId, distinctId } = login.assignment
    const found = await reads.run(() => hashKeys.findHashKeys(projectId, distinctId))
    if (login.isDropped) return
    const kept = found.ok && found.value !== null && (await writes.keep(login.assignment)).ok
    if (login.isDropped) return
    if (kept) remove(login)
    else tryLater(login, look + 1)
  }
}
