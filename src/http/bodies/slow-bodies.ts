// Bodies that are still arriving, and how fast each of them is. One that brings next to nothing is ended, so that a
// connection cannot be kept busy with a byte now and then. Where room is short, the one that takes longest to bring what it
// holds goes first: a sender that holds much and brings little keeps others out, a steady one does not.

/** A body that has not come to its end. */
export interface IncomingBody {
  /** Bytes that have come. */
  readonly arrivedBytes: number
  /** Not read at the moment, since others have their turn: that is not its sender's slowness. */
  readonly isPaused: boolean
  /** Its own to keep, for `SlowBodies` alone. */
  readonly pace: Pace
  fail(fault: 'busy' | 'stalled'): void
}

/** What was seen of a body at the ticks since it began. */
export class Pace {
  ticks = 0
  bytesAtTick = 0
  bytesAtWindow = 0
  /** Bytes of a tick, each older one weighing half of the next. */
  bytesLately = 0
  isListed = false
  /** The neighbours in the list of all bodies. Most bodies are in it for one turn of the event loop: a `Set` cost as much as reading them. */
  previous: IncomingBody | null = null
  next: IncomingBody | null = null
}

export const paceLimits = {
  /**
   * In ten ticks, which are seconds unless the event loop was held, a body has to bring this much. Half a kilobyte a second is
   * less than any telephone's line carries; an event of 2 KB has come long before it is looked at.
   */
  windowTicks: 10,
  windowBytesMin: 5 * 1024,
  /** What holds more than it brings in so many ticks has to go first when room is short. */
  refillTicksMax: 10,
  /** A body that has just begun has not shown how fast it is. */
  youngTicks: 2,
}

export class SlowBodies {
  #first: IncomingBody | null = null
  #count = 0
  readonly #startTicks: (tick: () => void) => () => void
  #stopTicks: (() => void) | null = null
  /** The bodies that may be ended for others, slowest last, as found since the last tick; null before anybody asked. */
  #slow: IncomingBody[] | null = null

  /** @param startTicks calls its argument once a second until what it returned is called. */
  constructor(startTicks: (tick: () => void) => () => void = startSeconds) {
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

  /** The slowest of the bodies that hold more than they bring, each once between two ticks; null when there is none. */
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
    // A copy, since a body that is ended leaves the list.
    for (const body of [...this.#bodies()]) if (isStalled(body)) body.fail('stalled')
  }
}

/** Counts a tick, unless the body spent it waiting for its turn. */
function isStalled({ pace, arrivedBytes, isPaused }: IncomingBody): boolean {
  if (isPaused) return false
  pace.bytesLately = (pace.bytesLately + arrivedBytes - pace.bytesAtTick) / 2
  pace.bytesAtTick = arrivedBytes
  if (++pace.ticks % paceLimits.windowTicks !== 0) return false
  const broughtBytes = arrivedBytes - pace.bytesAtWindow
  pace.bytesAtWindow = arrivedBytes
  return broughtBytes < paceLimits.windowBytesMin
}

/** How much of what a body holds it brings in a tick, as it was lately. */
function freshShare({ pace, arrivedBytes, isPaused }: IncomingBody): number {
  if (isPaused || pace.ticks < paceLimits.youngTicks || arrivedBytes === 0) return 1
  return pace.bytesLately / arrivedBytes
}

function startSeconds(tick: () => void): () => void {
  const timer = setInterval(tick, 1_000).unref()
  return () => clearInterval(timer)
}
