// Keeps one child process running: starts it, restarts it with back-off when it ends, replaces it when it has gone silent,
// and ends it when asked. Children stay in their parent's process group and notice its end by the closing IPC channel
// (`child-channel.ts`), so that a killed parent leaves no orphan.

import { type ChildProcess, fork } from 'node:child_process'
import { computeBackOffMs } from '#core/back-off.ts'
import type { Logger } from '#telemetry/log.ts'
import { killSilentChild } from './silence.ts'

export interface ChildOptions {
  readonly name: string
  /** @returns the arguments of `main.ts`; called at each start. */
  readonly args: () => readonly string[] | Promise<readonly string[]>
  readonly mainPath: string
  readonly env: NodeJS.ProcessEnv
  readonly logger: Logger
  /** Like `silentAfterMs` of `SilentChildOptions`. If absent, the child may be silent forever. */
  readonly silentAfterMs?: number
  readonly startMsMax?: number
  readonly onMessage?: (message: ChildMessage) => void
  readonly onStart?: (pid: number) => void
  readonly onExit?: () => void
  readonly onRestart?: () => void
  /** 0 ≤ random < 1; spreads restarts. */
  readonly random: () => number
}

export type ChildMessage = { readonly type: string; readonly [key: string]: unknown }

/** A child that cannot be started is retried every few seconds, but logged only this often. */
const complaintPauseMs = 60_000

export class SupervisedChild {
  readonly #options: ChildOptions
  #child: ChildProcess | undefined
  #stopping = false
  readonly #restartDelay: (livedMs: number) => number
  /** Null if no process was started, for example because its arguments could not be made. */
  #startedAt: number | null = null
  /** Total delay since a failed start was last logged. */
  #quietMs = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(options: ChildOptions) {
    this.#options = options
    this.#restartDelay = createRestartDelay(options.random)
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    const { name, args, mainPath, env, logger } = this.#options
    this.#startedAt = null
    const childArgs = [...(await args())]
    if (this.#stopping) return
    const child = fork(mainPath, childArgs, {
      execArgv: [...nodeOptions],
      env: pickChildEnvironment(env),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'json',
    })
    this.#child = child
    this.#startedAt = Date.now()
    const { silentAfterMs, startMsMax } = this.#options
    const silence =
      silentAfterMs === undefined
        ? null
        : killSilentChild({ name, logger, silentAfterMs, startMsMax, kill: () => child.kill('SIGKILL') })
    this.#exited = new Promise(resolve => {
      const handleExit = (log: () => void) => {
        this.#child = undefined
        silence?.stop()
        this.#options.onExit?.()
        resolve()
        if (this.#stopping) return
        log()
        this.#scheduleRestart()
      }
      child.once('exit', (code, signal) =>
        handleExit(() => {
          // SIGINT only comes from Ctrl-C, which also sends it to this process: our own stop may follow a moment later.
          const level = signal === 'SIGINT' ? 'info' : 'warn'
          logger[level]({ child: name, code, signal }, 'process ended; restarting it')
        }),
      )
      child.on('error', cause => {
        if (child.pid !== undefined) logger.warn({ err: cause, child: name }, 'cannot reach a process')
        // Without a process there is no exit event: the program is missing, or the system cannot start another process.
        else handleExit(() => this.#complain(cause))
      })
    })
    // Ignores messages that are still in the channel when a process has ended: they are no longer true.
    child.on('message', message => {
      silence?.heard()
      if (this.#child === child) this.#options.onMessage?.(message as ChildMessage)
    })
    if (child.pid === undefined) return
    this.#quietMs = Number.POSITIVE_INFINITY
    this.#options.onStart?.(child.pid)
  }

  send(message: ChildMessage): void {
    if (this.#child?.connected) this.#child.send(message, () => undefined) // a child on its way out is restarted anyway
  }

  /**
   * From now on the child may end by itself and is not restarted. Ctrl-C also reaches the child, and ends it if it is still
   * starting and does not ignore the signal yet.
   */
  expectEnd(): void {
    this.#stopping = true
    clearTimeout(this.#timer)
  }

  /** Asks the child to end, and kills it after `graceMs`. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    this.expectEnd()
    const child = this.#child
    if (child === undefined) return
    this.send({ type: 'shutdown' })
    const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
    await this.#exited
    clearTimeout(killer)
  }

  #scheduleRestart(): void {
    const delayMs = this.#restartDelay(this.#startedAt === null ? 0 : Date.now() - this.#startedAt)
    this.#quietMs += delayMs
    this.#options.onRestart?.()
    this.#timer = setTimeout(() => {
      this.start().catch(cause => {
        if (this.#stopping) return
        this.#complain(cause)
        this.#scheduleRestart()
      })
    }, delayMs)
  }

  #complain(cause: unknown): void {
    if (this.#quietMs < complaintPauseMs) return
    this.#quietMs = 0
    const { logger, name } = this.#options
    logger.error({ err: cause, child: name }, 'cannot start a process; retrying')
  }
}

/**
 * The Node options of all Pennon processes. Semi-spaces for new objects are limited to 8 MiB, as in `bin/pennon`; 32, the
 * default on a large machine, would cost a busy process 50 MiB more.
 */
export const nodeOptions: readonly string[] = [
  ...['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8'],
  ...['--import', new URL('../../bin/preload.js', import.meta.url).href],
]

/** Adds the parent's process id, which every child of `serve` gets in addition to its settings (`data-lock.ts`). */
export function pickChildEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...environment, PENNON_SERVE_PID: String(process.pid) }
}

const restartDelays = { firstMs: 100, longestMs: 10_000 }
/** A process that lived this long is restarted after the first delay. */
const healthyAfterMs = 30_000

/**
 * Computes how long to wait before a process is restarted, in ms: longer after each short-lived process, with jitter.
 * @param random 0 ≤ random < 1.
 * @returns a function of the time that the process lived; 0 if it could not be started.
 */
export function createRestartDelay(random: () => number): (livedMs: number) => number {
  let failureCount = 0
  return livedMs => {
    failureCount = livedMs > healthyAfterMs ? 0 : failureCount + 1
    return computeBackOffMs(restartDelays, Math.max(0, failureCount - 1), random())
  }
}
