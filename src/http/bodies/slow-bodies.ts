// Bodies that are still arriving, and how fast each one is. A body that brings next to nothing is ended, so that a
// connection cannot be kept busy with a byte now and then. When the budget is short, the body that takes longest to bring
// what it holds is ended first: a sender that holds much and brings little keeps others out, a steady one does not.

import { everySecond, type StartTicks } from '../shared/every-second.ts'

/** A body that is still arriving. */
export interface IncomingBody {
  /** Bytes that have arrived. */
  readonly arrivedBytes: number
  /** Not read at the moment because it is others' turn; that does not count as slowness of its sender. */
  readonly isPaused: boolean
  /** Kept by the body, used by `SlowBodies` alone. */
  readonly pace: Pace
  fail(fault: 'busy' | 'stalled'): void
}

/** A body's progress, as measured at each tick since it began. */
export class Pace {
  ticks = 0
  bytesAtTick = 0
  bytesAtWindow = 0
  /** Average bytes per tick; each older tick weighs half as much as the next. */
  bytesLately = 0
  isListed = false
  /**
   * The neighbours in the list of all bodies. Most bodies are listed for only one turn of the event loop, and a `Set`
   * cost as much as reading them.
   */
  previous: IncomingBody | null = null
  next: IncomingBody | null = null
}

export const paceLimits = {
  /**
   * In ten ticks (a tick is a second unless the event loop was held), a body has to bring this much. Half a kilobyte a
   * second is less than any phone's connection carries, and an event of 2 KB has arrived long before the first check.
   */
  windowTicks: 10,
  windowBytesMin: 5 * 1024,
  /** When the budget is short, a body that needs more ticks than this to bring what it holds may be ended. */
  refillTicksMax: 10,
  /** A body of fewer ticks has not shown yet how fast it is. */
  youngTicks: 2,
}

export class SlowBodies {
  #first: IncomingBody | null = null
  #count = 0
  readonly #startTicks: StartTicks
  #stopTicks: (() => void) | null = null
  /** The bodies that may be ended for others, slowest last; null until `takeSlowest` is called after a tick. */
  #slow: IncomingBody[] | null = null

  constructor(startTicks: StartTicks = everySecond) {
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

  /** The slowest body of those that hold much and bring little; null when there is none. Once per body and tick. */
  takeSlowest(): IncomingBody | null {
    this.#slow ??= [...this.#bodies()]
      .filter(body => freshShare(body) * paceLimits.refillTicksMax < 1)
      .sort((a, b) => freshShare(b) - freshShare(a) || a.arrivedBytes - b.arrivedBytes)
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
    // Iterate over a copy: a body that is ended leaves the list.
    for (const body of [...this.#bodies()]) if (isStalled(body)) body.fail('stalled')
  }
}

/** Counts a tick, unless the body is waiting for its turn, and checks each full window. */
function isStalled({ pace, arrivedBytes, isPaused }: IncomingBody): boolean {
  if (isPaused) return false
  pace.bytesLately = (pace.bytesLately + arrivedBytes - pace.bytesAtTick) / 2
  pace.bytesAtTick = arrivedBytes
  if (++pace.ticks % paceLimits.windowTicks !== 0) return false
  const broughtBytes = arrivedBytes - pace.bytesAtWindow
  pace.bytesAtWindow = arrivedBytes
  return broughtBytes < paceLimits.windowBytesMin
}

/** The share of its held bytes that a body has lately brought per tick; 1 when it cannot be called slow. */
function freshShare({ pace, arrivedBytes, isPaused }: IncomingBody): number {
  if (isPaused || pace.ticks < paceLimits.youngTicks || arrivedBytes === 0) return 1
  return pace.bytesLately / arrivedBytes
}
