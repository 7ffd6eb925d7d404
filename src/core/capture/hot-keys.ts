// Which distinct ids send so many events that no single person can be behind them: a script gone wild, a shared id. Their
// events are kept and do without a person from then on, so that one row of the state is not written thousands of times a
// second. Events are counted over the last minute, to the second, in a memory that does not grow with the number of ids.

const windowSeconds = 60
/** About 400 bytes each. */
const keyCountMax = 16_384
/** Ids looked at to make room for a new one. */
const probeCount = 8

interface Window {
  /** Events of each second of the last minute, by the second modulo 60. */
  readonly counts: Uint32Array
  total: number
  /** The second that was counted last. */
  second: number
}

export class HotKeys {
  readonly #eventsPerMinute: number
  readonly #keyCountMax: number
  readonly #windows = new Map<string, Window>()
  #now = 0

  constructor(options: { readonly eventsPerMinute: number; readonly keyCountMax?: number }) {
    this.#eventsPerMinute = options.eventsPerMinute
    this.#keyCountMax = options.keyCountMax ?? keyCountMax
  }

  /** How many ids are counted. */
  get keyCount(): number {
    return this.#windows.size
  }

  /**
   * Counts an event. @returns whether its id has sent more than the limit in the last 60 s, this one included. This is never
   * true for an id below the limit; one above may be missed while more than `keyCountMax` others are busy.
   */
  isHot(projectId: number, distinctId: string, nowMs: number): boolean {
    // A clock that is set back stands still until it is there again.
    this.#now = Math.max(this.#now, Math.floor(nowMs / 1000))
    const key = `${projectId}:${distinctId}`
    const window = this.#windows.get(key) ?? this.#open(key)
    advance(window, this.#now)
    window.counts[this.#now % windowSeconds]! += 1
    window.total += 1
    return window.total > this.#eventsPerMinute
  }

  #open(key: string): Window {
    if (this.#windows.size >= this.#keyCountMax) this.#makeRoom()
    const window = { counts: new Uint32Array(windowSeconds), total: 0, second: this.#now }
    this.#windows.set(key, window)
    return window
  }

  /** Drops the one that sends least among the oldest few, and puts the others at the end as if they were new. */
  #makeRoom(): void {
    let quietest: [key: string, window: Window] | null = null
    for (let probes = 0; probes < probeCount && this.#windows.size > 0; probes++) {
      const oldest: [string, Window] = this.#windows.entries().next().value!
      advance(oldest[1], this.#now)
      this.#windows.delete(oldest[0])
      if (quietest === null || oldest[1].total < quietest[1].total) {
        if (quietest !== null) this.#windows.set(...quietest)
        quietest = oldest
      } else this.#windows.set(...oldest)
    }
  }
}

/** Forgets the seconds that are more than a minute ago. */
function advance(window: Window, now: number): void {
  const { counts } = window
  const passed = Math.min(now - window.second, windowSeconds)
  for (let step = 1; step <= passed; step++) {
    const index = (window.second + step) % windowSeconds
    window.total -= counts[index]!
    counts[index] = 0
  }
  window.second = now
}
