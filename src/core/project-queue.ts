// Bounds how many queries of one project run at once and how many wait; further queries are refused at once, so that one
// project's screens or scripts cannot keep a store from serving other projects.

export interface ProjectQueueLimits {
  /** Queries of one project that run at once. */
  readonly runningMax: number
  /** Queries of one project that wait for a running query to end. */
  readonly waitingMax: number
}

interface ProjectState {
  running: number
  readonly waiting: Array<() => void>
}

export class ProjectQueue {
  readonly #limits: ProjectQueueLimits
  readonly #fullError: () => Error
  readonly #projects = new Map<number, ProjectState>()

  /** @param fullError creates the error that `run` throws when too many queries of a project wait. */
  constructor(limits: ProjectQueueLimits, fullError: () => Error) {
    this.#limits = limits
    this.#fullError = fullError
  }

  /**
   * Runs `query` when there is a free place. A waiting query whose signal aborts leaves the queue.
   * @param onAdmitted called at once when the query runs or waits, but not when it is refused. @throws the result of
   * `fullError` when the project's queue is full; the signal's reason when it aborted before the start.
   */
  async run<T>(
    projectId: number,
    signal: AbortSignal | undefined,
    query: () => Promise<T>,
    onAdmitted?: () => void,
  ): Promise<T> {
    signal?.throwIfAborted()
    const state = this.#projects.get(projectId) ?? { running: 0, waiting: [] }
    this.#projects.set(projectId, state)
    const hasCapacity = state.running < this.#limits.runningMax
    const turn = hasCapacity ? undefined : this.#waitForPlace(state, signal) // a query that ends hands its place to this one
    if (hasCapacity) state.running++
    onAdmitted?.()
    if (turn !== undefined) await turn
    try {
      return await query()
    } finally {
      const next = state.waiting.shift()
      if (next !== undefined) next()
      else if (--state.running === 0) this.#projects.delete(projectId)
    }
  }

  #waitForPlace(state: ProjectState, signal: AbortSignal | undefined): Promise<void> {
    if (state.waiting.length >= this.#limits.waitingMax) throw this.#fullError()
    return new Promise((start, leave) => {
      const onAbort = () => {
        state.waiting.splice(state.waiting.indexOf(onPlace), 1)
        leave(signal?.reason)
      }
      const onPlace = () => {
        signal?.removeEventListener('abort', onAbort)
        start()
      }
      state.waiting.push(onPlace)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }
}
