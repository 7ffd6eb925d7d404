// The main thread's side of one thread that serves state calls: sends calls, matches answers, and restarts the thread when
// it dies. The pending calls then fail; no call is sent twice, because its outcome is unknown.

import { Worker } from 'node:worker_threads'
import { logStateMigration } from '#adapters/sql/known-migrations.ts'
import { computeBackOffMs } from '#core/back-off.ts'
import { PortError, QueueFullError, UnfitSchemaError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import {
  decodeStateAnswer,
  encodeStateCall,
  type StateFailure,
  type StateMethod,
  type StateThreadData,
  type StateThreadStart,
  toStateError,
} from './state-writer-protocol.ts'

/** The most calls that may be pending; further calls are refused instead of queued. */
const pendingCallsMax = 1_000
const restartDelays = { firstMs: 100, longestMs: 5_000 }
const closeTimeoutMs = 5_000

export interface StateThread {
  /** Resolves to the methods that the thread serves. @throws UnfitSchemaError or PortError when its first start failed. */
  readonly started: Promise<readonly StateMethod[]>
  /** @throws PortError `unavailable` when there is no thread, too many calls wait, or the thread died meanwhile. */
  call(method: StateMethod, args: readonly unknown[]): Promise<unknown>
  /** Lets pending calls finish, then ends the thread. */
  close(): Promise<void>
}

interface PendingCall {
  resolve(value: unknown): void
  reject(error: Error): void
}

export function startStateThread(options: Omit<StateThreadData, 'isFirst'> & { logger: Logger }): StateThread {
  const { logger, ...others } = options
  const pending = new Map<number, PendingCall>()
  const first = Promise.withResolvers<readonly StateMethod[]>()
  let nextCallId = 1
  let worker: Worker | null = null
  let hasServed = false
  let isClosing = false
  let restarts = 0
  let restartTimer: NodeJS.Timeout | undefined

  start()

  return {
    started: first.promise,
    call(method, args) {
      if (worker === null || isClosing) return Promise.reject(createUnavailableError('there is no state thread'))
      if (pending.size >= pendingCallsMax) return Promise.reject(new QueueFullError('state'))
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      const id = nextCallId++
      pending.set(id, { resolve, reject })
      worker.postMessage(encodeStateCall(id, method, args))
      return promise
    },
    async close() {
      isClosing = true
      clearTimeout(restartTimer)
      const ending = worker
      if (ending === null) return
      const ended = new Promise(resolve => ending.once('exit', resolve))
      ending.postMessage(null)
      const timer = setTimeout(() => void ending.terminate(), closeTimeoutMs)
      await ended
      clearTimeout(timer)
    },
  }

  function start(): void {
    const workerData: StateThreadData = { ...others, isFirst: !hasServed }
    const started = new Worker(new URL('./state-writer-thread.ts', import.meta.url), { workerData })
    worker = started
    let cause: Error | undefined
    started.on('message', (message: StateThreadStart | string) => {
      if (typeof message === 'string') settle(message)
      else if (message.ready) {
        hasServed = true
        restarts = 0
        if (message.migration !== null) logStateMigration(message.migration, logger)
        first.resolve(message.methods)
      } else {
        cause = toStartError(message.failure)
      }
    })
    started.on('error', error => {
      cause = error as Error
    })
    started.once('exit', () => handleThreadEnd(cause ?? new Error('the state thread ended')))
  }

  function settle(message: string): void {
    const answer = decodeStateAnswer(message)
    const call = pending.get(answer.id)
    pending.delete(answer.id)
    if ('failure' in answer) call?.reject(toStateError(answer.failure))
    else call?.resolve(answer.value)
  }

  function handleThreadEnd(cause: Error): void {
    worker = null
    for (const call of pending.values()) call.reject(createUnavailableError(cause))
    pending.clear()
    if (isClosing) return
    // After a failed first start the caller reports the error; after later failures the thread is started again, which may
    // help.
    if (!hasServed) {
      first.reject(
        cause instanceof UnfitSchemaError || cause instanceof PortError ? cause : createUnavailableError(cause),
      )
      return
    }
    const restartDelayMs = computeBackOffMs(restartDelays, restarts++)
    logger.error({ err: cause, access: options.access, restartDelayMs }, 'the state thread died; restarting it')
    restartTimer = setTimeout(start, restartDelayMs)
  }
}

function toStartError(failure: StateFailure): Error {
  return failure.name === 'UnfitSchemaError' ? new UnfitSchemaError(failure.message) : toStateError(failure)
}

function createUnavailableError(cause: Error | string): PortError {
  return new PortError('state', 'unavailable', typeof cause === 'string' ? new Error(cause) : cause)
}
