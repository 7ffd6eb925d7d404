// Bounds how long an evaluation waits for a store, and keeps a circuit breaker in front of it. A call that fails or takes
// too long gives an error value, and a store known to be down gives an error value at once; the evaluator decides what that
// means for a flag. Source: docs/wire/evaluation.md 5.15; design of the breaker: ours.

import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err, ok, type Result } from '#core/result.ts'
import { PortError, QueueFullError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { createLogLimiter } from '#telemetry/log-limiter.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export type Loaded<T> = Result<T, UnknownReason>

export interface CircuitBreakerOptions {
  /** The port's name in metrics. */
  readonly port: string
  /** What cannot be done while the store is unavailable, for the log. */
  readonly task: string
  /** What happens instead, for the log. */
  readonly without: string
  readonly logger: Logger
  readonly metrics: Metrics
  /** How long one call may take. */
  readonly timeoutMs: number
  /** How many calls, including abandoned ones, may be unanswered; beyond that, a call fails at once. */
  readonly pendingMax: number
  /** After this many failures in a row, the store is not called for a while. */
  readonly failuresMax: number
  /** How long the store is then not called; after that, one call tests whether it is available again. */
  readonly restMs: number
  /** Milliseconds from any start that never go back. */
  readonly monotonicNowMs: () => number
  /** Calls back later unless cancelled. */
  readonly startTimer: (callback: () => void, delayMs: number) => { cancel(): void }
}

export type StoreCircuitBreaker = ReturnType<typeof createStoreCircuitBreaker>

/** A busy front has some hundred look-ups running; `pendingMax` is for a store that is slow. */
export const storeLimits = {
  timeoutMs: 250,
  pendingMax: 10_000,
  failuresMax: 5,
  restMs: 1_000,
  startTimer: startNodeTimer,
}

/**
 * A call whose time limit is at least this share of the guard's limit counts as a failure of the store once it times out:
 * waiting until the guard's limit is not worth another timer.
 */
const judgedAtOncePart = 0.9

export function createStoreCircuitBreaker(options: CircuitBreakerOptions) {
  const { port, task, logger, metrics } = options
  let failuresInARow = 0
  let restsUntilMs = 0
  let pendingCount = 0
  const atOutage = createLogLimiter(options.monotonicNowMs)
  let isReported = false

  return {
    /**
     * Calls the store unless it is known to be down. The call must settle eventually, even after its time limit. A call
     * that one of our own queues refuses fails, but does not count against the store.
     * @param timeoutMs a limit below the guard's own, after which the caller stops waiting. The guard's own limit still
     *   decides whether the store failed.
     */
    run<T>(call: () => MaybePromise<T>, timeoutMs = options.timeoutMs): MaybePromise<Loaded<T>> {
      if (failuresInARow >= options.failuresMax) {
        const nowMs = options.monotonicNowMs()
        if (nowMs < restsUntilMs) return err('database_unavailable')
        restsUntilMs = nowMs + options.restMs // this call tries whether the store is back
      }
      if (pendingCount >= options.pendingMax) return refuseCall('timeout')
      try {
        const answer = call()
        return answer instanceof Promise ? limitTime(answer, timeoutMs) : recordSuccess(answer)
      } catch (cause) {
        return recordFailure(cause)
      }
    },
    /** Whether too many calls failed in a row; stays true until one succeeds. */
    isDown: () => failuresInARow >= options.failuresMax,
  }

  function limitTime<T>(answer: Promise<T>, timeoutMs: number): Promise<Loaded<T>> {
    pendingCount++
    return new Promise(resolve => {
      let isJudged = false
      const settle = (result: () => Loaded<T>) => {
        if (isJudged) return // an answer after the time limit changes nothing
        isJudged = true
        timer.cancel()
        resolve(result())
      }
      const onTimeout = () => settle(() => recordFailure(new PortError(port, 'timeout')))
      const giveUp = () => {
        resolve(err('timeout'))
        timer = options.startTimer(onTimeout, options.timeoutMs - timeoutMs)
      }
      const isWhole = timeoutMs >= options.timeoutMs * judgedAtOncePart
      let timer = options.startTimer(isWhole ? onTimeout : giveUp, timeoutMs)
      answer.then(
        value => {
          pendingCount--
          settle(() => recordSuccess(value))
        },
        cause => {
          pendingCount--
          settle(() => recordFailure(cause))
        },
      )
    })
  }

  function recordSuccess<T>(value: T): Loaded<T> {
    if (isReported) logger.info(`${task}: works again`)
    isReported = false
    failuresInARow = 0
    return ok(value)
  }

  function refuseCall(code: 'timeout' | 'unavailable'): Loaded<never> {
    metrics.dependencyFailures.inc({ port, code })
    return err(code === 'timeout' ? 'timeout' : 'database_unavailable')
  }

  function recordFailure(cause: unknown): Loaded<never> {
    if (cause instanceof QueueFullError) return refuseCall(cause.code)
    const code = cause instanceof PortError ? cause.code : 'corrupt'
    metrics.dependencyFailures.inc({ port, code })
    failuresInARow++
    if (failuresInARow === options.failuresMax) restsUntilMs = options.monotonicNowMs() + options.restMs
    logger.debug({ err: cause }, `${task}: failed`)
    if (failuresInARow >= options.failuresMax)
      atOutage(times => {
        isReported = true
        logger.error({ err: cause, times }, `${task}: unavailable; ${options.without}`)
      })
    return err(code === 'timeout' ? 'timeout' : code === 'unavailable' ? 'database_unavailable' : 'database_error')
  }
}

/**
 * Calls back one turn of the event loop after the time is up. A loop that was blocked has not yet read an answer that
 * arrived in time, and that answer must count.
 */
function startNodeTimer(callback: () => void, delayMs: number): { cancel(): void } {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(callback)
  }, delayMs).unref()
  return {
    cancel() {
      clearTimeout(timer)
      clearImmediate(immediate)
    },
  }
}
