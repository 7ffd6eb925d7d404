// Finds distinct ids that send more events than one person can cause: a runaway script, a shared id. Their further events
// are stored without a person, so that one row of the state is not written thousands of times a second. Counts cover the
// last minute in one-second steps, and memory is bounded, however many ids there are.

const windowSeconds = 60
/** Bounds the memory: each key takes about 400 bytes. */
const keyCountMax = 16_384
/** How many ids are compared to free a place for a new id. */
const probeCount = 8

interface Window {
  /** Events per second of the last minute, indexed by the second modulo 60. */
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

  /** How many ids have counts in memory. */
  get keyCount(): number {
    return this.#windows.size
  }

  /**
   * Counts an event. @returns whether its id has sent more than the limit in the last 60 s, this event included. Never true
   * for an id below the limit; an id above the limit may stay undetected while more than `keyCountMax` other ids are busy.
   */
  isHot(projectId: number, distinctId: string, nowMs: number): boolean {
    // When the clock is set back, time stops here until the clock catches up.
    this.#now = Math.max(this.#now, Math.floor(nowMs / 1000))
    const key = `${projectId}:${distinctId}`
    const window = this.#windows.get(key) ?? this.#open(key)
    advanceWindow(window, this.#now)
    window.counts[this.#now % windowSeconds]! += 1
    window.total += 1
    return window.total > this.#eventsPerMinute
  }

  #open(key: string): Window {
    if (this.#windows.size >= this.#keyCountMax) this.#dropQuietest()
    const window = { counts: new Uint32Array(windowSeconds), total: 0, second: this.#now }
    this.#windows.set(key, window)
    return window
  }

  /**
   * Drops the quietest of the `probeCount` oldest ids and moves the other compared ids to the end of the map, as if they
   * were new.
   */
  #dropQuietest(): void {
    let quietest: [key: string, window: Window] | null = null
    for (let probes = 0; probes < probeCount && this.#windows.size > 0; probes++) {
      const oldest: [string, Window] = this.#windows.entries().next().value!
      advanceWindow(oldest[1], this.#now)
      this.#windows.delete(oldest[0])
      if (quietest === null || oldest[1].total < quietest[1].total) {
        if (quietest !== null) this.#windows.set(...quietest)
        quietest = oldest
      } else this.#windows.set(...oldest)
    }
  }
}

/** Forgets the seconds that are more than a minute ago. */
function advanceWindow(window: Window, now: number): void {
  const { counts } = window
  const passed = Math.min(now - window.second, windowSeconds)
  for (let step = 1; step <= passed; step++) {
    const index = (window.second + step) % windowSeconds
    window.total -= counts[index]!
    counts[index] = 0
  }
  window.second = now
}
