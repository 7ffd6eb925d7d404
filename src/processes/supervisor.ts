// Keeps one child process running: starts it, restarts it with back-off when it ends, replaces it when it has gone silent,
// and ends it when asked.
// Children stay in the process group of their parent and learn of its end by the closing IPC channel
// (`child-channel.ts`), so that a killed parent leaves no orphan.

import { type ChildProcess, fork } from 'node:child_process'
import type { Logger } from '#telemetry/log.ts'
import { childEnvironment, nodeOptions } from './node-options.ts'
import { type SilenceWatch, watchSilence } from './silence.ts'

export interface ChildOptions {
  readonly name: string
  /** Arguments of `main.ts`; asked for again at each start. */
  readonly args: () => readonly string[] | Promise<readonly string[]>
  readonly mainPath: string
  readonly env: NodeJS.ProcessEnv
  readonly logger: Logger
  /** A child that says nothing for this long is killed: whatever it does, it serves no one. */
  readonly silentAfterMs?: number
  /** How long it may take to its first message, 5 minutes by default: a large store is opened as slowly each time. */
  readonly startMsMax?: number
  readonly onMessage?: (message: ChildMessage) => void
  readonly onStart?: (pid: number) => void
  readonly onExit?: () => void
  readonly onRestart?: () => void
  /** 0 ≤ random < 1; spreads restarts. */
  readonly random: () => number
}

export type ChildMessage = { readonly type: string; readonly [key: string]: unknown }

const startDefaultMsMax = 300_000
const restartDelay = { firstMs: 100, maxMs: 10_000 }
/** A child that lived this long starts again from the first delay. */
const healthyAfterMs = 30_000

export class SupervisedChild {
  readonly #options: ChildOptions
  #child: ChildProcess | undefined
  #stopping = false
  #failures = 0
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(options: ChildOptions) {
    this.#options = options
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  async start(): Promise<void> {
    const { name, args, mainPath, env, logger } = this.#options
    const childArgs = [...(await args())]
    if (this.#stopping) return
    const child = fork(mainPath, childArgs, {
      execArgv: [...nodeOptions],
      env: childEnvironment(env),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'json',
    })
    this.#child = child
    this.#startedAt = Date.now()
    const { silentAfterMs, startMsMax = startDefaultMsMax } = this.#options
    let silence = this.#watch(child, silentAfterMs && Math.max(silentAfterMs, startMsMax))
    let hasSpoken = false
    this.#exited = new Promise(resolve => {
      const gone = (how: object, message: string) => {
        this.#child = undefined
        silence?.stop()
        this.#options.onExit?.()
        resolve()
        if (this.#stopping) return
        logger.warn({ child: name, ...how }, message)
        this.#scheduleRestart()
      }
      child.once('exit', (code, signal) => gone({ code, signal }, 'a process ended; it will be started again'))
      child.on('error', cause => {
        if (child.pid !== undefined) logger.warn({ err: cause, child: name }, 'a process could not be reached')
        // Without a process there is no exit either: its program is away, or the system has no room for it.
        else gone({ err: cause }, 'a process could not be started; it will be tried again')
      })
    })
    // What is still in the channel when a process has ended is not true any more.
    child.on('message', message => {
      if (!hasSpoken) {
        hasSpoken = true
        silence?.stop()
        silence = this.#watch(child, silentAfterMs)
      }
      silence?.heard()
      if (this.#child === child) this.#options.onMessage?.(message as ChildMessage)
    })
    if (child.pid !== undefined) this.#options.onStart?.(child.pid)
  }

  send(message: ChildMessage): void {
    if (this.#child?.connected) this.#child.send(message, () => undefined) // a child on its way out is restarted anyway
  }

  /** Asks the child to end, and ends it after `graceMs`. Resolves when it is gone. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#timer)
    const child = this.#child
    if (child === undefined) return
    this.send({ type: 'shutdown' })
    const killer = setTimeout(() => child.kill('SIGKILL'), graceMs)
    await this.#exited
    clearTimeout(killer)
  }

  #watch(child: ChildProcess, silentAfterMs: number | undefined): SilenceWatch | null {
    const { name, logger } = this.#options
    if (silentAfterMs === undefined) return null
    return watchSilence(silentAfterMs, () => {
      logger.error({ child: name, silentAfterMs }, 'a process does not answer any more; it is killed and started again')
      child.kill('SIGKILL') // a stopped process obeys nothing else
    })
  }

  #scheduleRestart(): void {
    this.#failures = Date.now() - this.#startedAt > healthyAfterMs ? 0 : this.#failures + 1
    const delayMs = Math.min(restartDelay.maxMs, restartDelay.firstMs * 2 ** Math.max(0, this.#failures - 1))
    this.#options.onRestart?.()
    this.#timer = setTimeout(
      () => {
        this.start().catch(cause => {
          this.#options.logger.error({ err: cause, child: this.#options.name }, 'a process could not be started')
          this.#scheduleRestart()
        })
      },
      delayMs * (0.5 + this.#options.random() / 2),
    )
  }
}
