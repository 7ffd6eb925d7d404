// Look-ups of stored subjects with a bound on how long an evaluation waits for them. A store that fails, hangs or is
// known to be down gives an error value at once; what that means for a flag is decided by the evaluator.
// Source: docs/wire/evaluation.md 5.15; design of the breaker: ours.

import type { UnknownReason } from '#core/flags/flag-outcome.ts'
import type { PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { SubjectPerson, SubjectStore } from '#ports/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export type Loaded<T> = Result<T, UnknownReason>

export interface GuardedSubjects {
  findPerson(projectId: number, distinctId: string): MaybePromise<Loaded<SubjectPerson | null>>
  findGroup(projectId: number, typeIndex: number, key: string): MaybePromise<Loaded<{ properties: PropertyBag } | null>>
}

export interface GuardOptions {
  readonly subjects: SubjectStore
  readonly logger: Logger
  readonly metrics: Metrics
  /** How long one look-up may take. */
  readonly timeoutMs: number
  /** After so many failures in a row the store is left alone. */
  readonly failuresMax: number
  /** For how long; then one look-up tries whether it is back. */
  readonly restMs: number
  /** Milliseconds from any start that never jump back. */
  readonly monotonicNowMs: () => number
  /** Calls back later unless cancelled. */
  readonly startTimer: (callback: () => void, delayMs: number) => { cancel(): void }
}

export function guardSubjects(options: GuardOptions): GuardedSubjects {
  const { subjects, logger, metrics } = options
  let failuresInARow = 0
  let restsUntilMs = 0

  return {
    findPerson: (projectId, distinctId) => guarded(() => subjects.findPerson(projectId, distinctId)),
    findGroup: (projectId, typeIndex, key) => guarded(() => subjects.findGroup(projectId, typeIndex, key)),
  }

  function guarded<T>(lookUp: () => MaybePromise<T>): MaybePromise<Loaded<T>> {
    if (failuresInARow >= options.failuresMax) {
      const nowMs = options.monotonicNowMs()
      if (nowMs < restsUntilMs) return err('database_unavailable')
      restsUntilMs = nowMs + options.restMs // this look-up is the one that tries
    }
    try {
      const found = lookUp()
      return found instanceof Promise ? bounded(found) : succeeded(found)
    } catch (cause) {
      return failed(cause)
    }
  }

  function bounded<T>(found: Promise<T>): Promise<Loaded<T>> {
    return new Promise(resolve => {
      let waiting = true
      const settle = (result: () => Loaded<T>) => {
        if (!waiting) return // an answer after the time limit changes nothing
        waiting = false
        timer.cancel()
        resolve(result())
      }
      const timedOut = () => settle(() => failed(new PortError('subject-store', 'timeout')))
      const timer = options.startTimer(timedOut, options.timeoutMs)
      found.then(
        value => settle(() => succeeded(value)),
        cause => settle(() => failed(cause)),
      )
    })
  }

  function succeeded<T>(value: T): Loaded<T> {
    if (failuresInARow >= options.failuresMax) logger.info('stored persons and groups can be read again')
    failuresInARow = 0
    return ok(value)
  }

  function failed(cause: unknown): Loaded<never> {
    const code = cause instanceof PortError ? cause.code : 'corrupt'
    metrics.dependencyFailures.inc({ port: 'subject-store', code })
    failuresInARow++
    if (failuresInARow === options.failuresMax) {
      restsUntilMs = options.monotonicNowMs() + options.restMs
      logger.error({ err: cause }, 'stored persons and groups cannot be read; flags that need them are left out')
    } else logger.debug({ err: cause }, 'a stored subject could not be read')
    return err(code === 'timeout' ? 'timeout' : code === 'unavailable' ? 'database_unavailable' : 'database_error')
  }
}
