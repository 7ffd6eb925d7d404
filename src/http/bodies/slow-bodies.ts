// Measures how fast bodies arrive. A body that makes next to no progress is ended, so that a sender cannot keep a
// connection busy with a byte now and then. When the budget is short, the body that is slowest in relation to the bytes it
// holds is ended first: such a body blocks the budget for other bodies, while a steady body does not.

import { callEverySecond, type StartTicks } from '../shared/call-every-second.ts'

/** A body that is still arriving. */
export interface IncomingBody {
  /** Bytes that have arrived. */
  readonly arrivedBytes: number
  /** Whether reading is paused because other bodies are being read. A pause does not count as slowness of the sender. */
  readonly isPaused: boolean
  /** The body's progress; stored with the body, but used only by `SlowBodies`. */
  readonly pace: Pace
  fail(fault: 'busy' | 'stalled'): void
}

/** A body's progress, as measured at each tick since it began. */
export class Pace {
  ticks = 0
  bytesAtTick = 0
  bytesAtWindow = 0
  /** Average bytes per tick; each tick weighs half as much as the tick after it. */
  bytesLately = 0
  isListed = false
  /**
   * The neighbours in the list of all bodies. Most bodies are listed for only one turn of the event loop, and adding them
   * to a `Set` would cost as much as reading them.
   */
  previous: IncomingBody | null = null
  next: IncomingBody | null = null
}

export const paceLimits = {
  /**
   * The number of ticks in which a body must receive `windowBytesMin` (a tick is a second unless the event loop was
   * blocked). Half a kilobyte a second is less than any phone's connection carries, and an event of 2 KB has arrived long
   * before the first check.
   */
  windowTicks: 10,
  windowBytesMin: 5 * 1024,
  /**
   * When the budget is short, a body may be ended if it would need more ticks than this to receive what it holds once more.
   */
  refillTicksMax: 10,
  /** The speed of a body counts as unknown until this many ticks have passed. */
  youngTicks: 2,
}

export class SlowBodies {
  #first: IncomingBody | null = null
  #count = 0
  readonly #startTicks: StartTicks
  #stopTicks: (() => void) | null = null
  /**
   * The bodies that may be ended to free budget for other bodies, slowest last; null until `takeSlowest` is called
   * after a tick.
   */
  #slow: IncomingBody[] | null = null

  constructor(startTicks: StartTicks = callEverySecond) {
    this.#startTicks = startTicks
  }

  get count(): number {
    return this.#count
  }

  get arrivedBytes(): number {
    let bytes = 0
    for (const body of this.#bodies()) bytes += body.arrivedBytes
    return bytes
  }

  add(body: IncomingBody): void {
    const { pace } = body
    pace.isListed = true
    pace.next = this.#first
    if (pace.next !== null) pace.next.pace.previous = body
    this.#first = body
    this.#count++
    this.#stopTicks ??= this.#startTicks(() => this.#tick())
  }

  delete(body: IncomingBody): void {
    const { pace } = body
    if (!pace.isListed) return
    const { previous, next } = pace
    if (previous === null) this.#first = next
    else previous.pace.next = next
    if (next !== null) next.pace.previous = previous
    pace.isListed = false
    pace.previous = pace.next = null
    this.#count--
  }

  /** Returns the slowest body that may be ended, or null when none is left. Returns each body at most once per tick. */
  takeSlowest(): IncomingBody | null {
    this.#slow ??= [...this.#bodies()]
      .filter(body => computeRecentShare(body) * paceLimits.refillTicksMax < 1)
      .sort((a, b) => computeRecentShare(b) - computeRecentShare(a) || a.arrivedBytes - b.arrivedBytes)
    for (;;) {
      const slowest = this.#slow.pop()
      if (slowest === undefined) return null
      if (slowest.pace.isListed) return slowest
    }
  }

  *#bodies(): Generator<IncomingBody> {
    for (let body = this.#first; body !== null; body = body.pace.next) yield body
  }

  #tick(): void {
    this.#slow = null
    if (this.#count === 0) {
      this.#stopTicks?.()
      this.#stopTicks = null
      return
    }
    // Iterates over a copy, because a body that is ended leaves the list.
    for (const body of [...this.#bodies()]) if (isStalled(body)) body.fail('stalled')
  }
}

/** Counts a tick, unless the reading of the body is paused, and checks each full window. */
function isStalled({ pace, arrivedBytes, isPaused }: IncomingBody): boolean {
  if (isPaused) return false
  pace.bytesLately = (pace.bytesLately + arrivedBytes - pace.bytesAtTick) / 2
  pace.bytesAtTick = arrivedBytes
  if (++pace.ticks % paceLimits.windowTicks !== 0) return false
  const broughtBytes = arrivedBytes - pace.bytesAtWindow
  pace.bytesAtWindow = arrivedBytes
  return broughtBytes < paceLimits.windowBytesMin
}

/** The bytes that recently arrived of a body per tick, divided by the bytes it holds; 1 while its speed is unknown. */
function computeRecentShare({ pace, arrivedBytes, isPaused }: IncomingBody): number {
  if (isPaused || pace.ticks < paceLimits.youngTicks || arrivedBytes === 0) return 1
  return pace.bytesLately / arrivedBytes
}
