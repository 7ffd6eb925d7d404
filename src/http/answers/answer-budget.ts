// Bounds the memory of answers that their readers (clients) have not taken yet, however many readers take nothing. At the
// limit, the slowest readers of the address whose answers hold most memory are disconnected. A reader that takes nothing
// for half a minute is always disconnected; below the limit, a reader that keeps reading is served, however slowly.

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { callEverySecond, type StartTicks } from '../shared/call-every-second.ts'

const MiB = 1024 * 1024

export const answerBudgetBytes = 256 * MiB
/** The budget of a private API with its own port: it answers regardless of what happens on the public port. */
export const adminAnswerBudgetBytes = 64 * MiB
/** The budget of the dashboard port, which has few connections. */
export const eventsAnswerBudgetBytes = 32 * MiB

/** Why an answer was broken off. `stalled`: its reader took nothing; `no_room`: other answers needed its memory. */
export type AnswerEndReason = 'stalled' | 'no_room'

/** Returns how many bytes the system still holds for the peers of some sockets, by the sockets' file descriptors. */
export type ReadUnacknowledged = (files: ReadonlySet<number>) => Promise<ReadonlyMap<number, number>>

export interface AnswerBudgetOptions {
  readonly bytesMax?: number
  /** Identifies the sender: when the budget is full, readers of the sender that holds most are disconnected. */
  readonly senderOf: (request: IncomingMessage) => string
  readonly onEnded?: (reason: AnswerEndReason) => void
  readonly readUnacknowledged?: ReadUnacknowledged
  readonly startTicks?: StartTicks
}

export const readerLimits = {
  /**
   * Ticks after which a reader that takes nothing is disconnected. A tick is a second unless the event loop was blocked.
   */
  stalledTicks: 30,
  /** Each time this many ticks pass without progress, asks the system whether the peer still acknowledges bytes. */
  examinedTicks: 10,
  /** The speed of a reader counts as unknown until this many ticks have passed. */
  youngTicks: 2,
  /** Disconnects readers until at most this share of the budget is held, to leave space for the next answers. */
  shareLeft: 7 / 8,
}
/** Bytes charged for each request that waits for an earlier answer, in addition to the request's body. */
const waitingRequestBytes = 4 * 1024

interface Reader {
  readonly answer: ServerResponse
  readonly socket: Socket
  /** Answers of the same connection whose requests wait for this answer. */
  behind: readonly ServerResponse[]
  heldBytes: number
  /** Bytes that the system has taken from us for this connection. */
  takenBytes: number
  /** Average bytes taken per tick; each tick weighs half as much as the tick after it. */
  takenLately: number
  ticks: number
  stillTicks: number
  /** Whether the next examination includes this reader. */
  isDue: boolean
  /**
   * Bytes that the system held at the last examination; null if the system does not report them, undefined if the
   * reader was not examined since its last progress.
   */
  unacknowledgedBytes: number | null | undefined
  isEnded: boolean
}

const keepsOwnTime = Symbol('keeps its own time')

/**
 * Exempts an answer from the limit on stalled readers, because its handler has its own limit. Its bytes are still
 * charged.
 */
export function exemptFromStallLimit(answer: ServerResponse): void {
  ;(answer as { [keepsOwnTime]?: true })[keepsOwnTime] = true
}

export class AnswerBudget {
  readonly #bytesMax: number
  readonly #senderOf: (request: IncomingMessage) => string
  readonly #onEnded: (reason: AnswerEndReason) => void
  readonly #readUnacknowledged: ReadUnacknowledged
  readonly #startTicks: StartTicks
  #stopTicks: (() => void) | null = null
  readonly #readers = new Map<ServerResponse, Reader>()
  #heldBytes = 0
  /** The part of `#heldBytes` that is about to be freed: connections close at the end of a turn of the event loop. */
  #endedBytes = 0
  readonly #waiting: (() => void)[] = []
  #isExamining = false

  constructor(options: AnswerBudgetOptions) {
    this.#bytesMax = options.bytesMax ?? answerBudgetBytes
    this.#senderOf = options.senderOf
    this.#onEnded = options.onEnded ?? (() => undefined)
    this.#readUnacknowledged = options.readUnacknowledged ?? (async () => new Map())
    this.#startTicks = options.startTicks ?? callEverySecond
  }

  get heldBytes(): number {
    for (const reader of this.#readers.values()) this.#measure(reader)
    return this.#heldBytes
  }

  /** Whether a request should wait for `whenFree` before its answer is created. */
  get isFull(): boolean {
    return this.#heldBytes > this.#bytesMax
  }

  /** Calls `begin` in a later turn of the event loop, once the budget is not full; first come, first served. */
  whenFree(begin: () => void): void {
    if (this.#waiting.push(begin) === 1) setImmediate(() => this.#beginWaiting())
  }

  /** The class to pass as a server's `ServerResponse` option: it charges the bytes that cannot be sent at once. */
  readonly responses = createObservedResponseClass(answer => this.note(answer))

  /**
   * Charges the unsent bytes of an answer.
   * @param behind answers of the same connection whose requests wait for this answer.
   */
  note(answer: ServerResponse, behind?: readonly ServerResponse[]): void {
    const { socket } = answer
    if (socket === null || socket.destroyed) return
    if (socket.writableLength === 0 && behind === undefined) return
    const reader = this.#readers.get(answer) ?? this.#add(answer, socket)
    if (behind !== undefined) reader.behind = behind
    this.#measure(reader)
    if (this.#isOverfull) this.#endSlowest()
  }

  get #isOverfull(): boolean {
    return this.#heldBytes - this.#endedBytes > this.#bytesMax
  }

  #add(answer: ServerResponse, socket: Socket): Reader {
    const reader: Reader = {
      answer,
      socket,
      behind: [],
      heldBytes: 0,
      takenBytes: countTakenBytes(socket),
      takenLately: 0,
      ticks: 0,
      stillTicks: 0,
      isDue: false,
      unacknowledgedBytes: undefined,
      isEnded: false,
    }
    this.#readers.set(answer, reader)
    answer.once('close', () => this.#remove(reader))
    this.#stopTicks ??= this.#startTicks(() => this.#tick())
    return reader
  }

  #remove(reader: Reader): void {
    this.#readers.delete(reader.answer)
    this.#heldBytes -= reader.heldBytes
    if (reader.isEnded) this.#endedBytes -= reader.heldBytes
  }

  #measure(reader: Reader): void {
    if (reader.isEnded) return
    const { socket, behind } = reader
    let heldBytes = Math.max(socket.writableLength, readSocketHandle(socket)?.writeQueueSize ?? 0)
    for (const { req } of behind) heldBytes += waitingRequestBytes + req.readableLength
    this.#heldBytes += heldBytes - reader.heldBytes
    reader.heldBytes = heldBytes
  }

  #beginWaiting(): void {
    let begun = 0
    while (begun < this.#waiting.length && !this.isFull) this.#waiting[begun++]!()
    this.#waiting.splice(0, begun)
    if (this.#waiting.length > 0) setImmediate(() => this.#beginWaiting())
  }

  /** Disconnects the slowest reader of the sender that holds most, repeatedly, until the budget suffices. */
  #endSlowest(): void {
    const senders = new Map<string, { heldBytes: number; readers: Reader[] }>()
    for (const reader of this.#readers.values()) {
      this.#measure(reader)
      if (reader.isEnded || reader.heldBytes === 0) continue
      const name = this.#senderOf(reader.answer.req)
      const sender = senders.get(name) ?? { heldBytes: 0, readers: [] }
      senders.set(name, sender)
      sender.heldBytes += reader.heldBytes
      sender.readers.push(reader)
    }
    if (!this.#isOverfull) return
    for (const { readers } of senders.values()) readers.sort(compareBySpeed)
    while (this.#heldBytes - this.#endedBytes > this.#bytesMax * readerLimits.shareLeft) {
      let fullest = { heldBytes: 0, readers: [] as Reader[] }
      for (const sender of senders.values()) if (sender.heldBytes > fullest.heldBytes) fullest = sender
      const slowest = fullest.readers.pop()
      if (slowest === undefined) return
      fullest.heldBytes -= slowest.heldBytes
      this.#end(slowest, 'no_room')
    }
  }

  #end(reader: Reader, reason: AnswerEndReason): void {
    reader.isEnded = true
    this.#endedBytes += reader.heldBytes
    this.#onEnded(reason)
    // Without a reset, the system would keep megabytes of the answer for minutes in its limited memory.
    reader.socket.resetAndDestroy()
  }

  #tick(): void {
    if (this.#readers.size === 0) {
      this.#stopTicks?.()
      this.#stopTicks = null
      return
    }
    for (const reader of this.#readers.values()) {
      if (reader.isEnded) continue
      this.#measure(reader)
      countTick(reader)
    }
    if (this.#isOverfull) this.#endSlowest()
    if (!this.#isExamining) void this.#examine()
  }

  /**
   * The system buffers megabytes for a connection, then takes no more until a third of them is acknowledged. A slow reader
   * may need longer for that than `stalledTicks`, so the system is asked how much it still holds.
   */
  async #examine(): Promise<void> {
    const files = new Map<Reader, number>()
    for (const reader of this.#readers.values()) {
      if (reader.isDue && !reader.isEnded) files.set(reader, readSocketHandle(reader.socket)?.fd ?? -1)
      reader.isDue = false
    }
    if (files.size === 0) return
    this.#isExamining = true
    try {
      this.#judge(files, await this.#readUnacknowledged(new Set(files.values())))
    } finally {
      this.#isExamining = false
    }
  }

  #judge(files: ReadonlyMap<Reader, number>, unacknowledged: ReadonlyMap<number, number>): void {
    for (const [reader, file] of files) {
      const { answer, socket, stillTicks, unacknowledgedBytes } = reader
      if (reader.isEnded || socket.destroyed || stillTicks === 0) continue
      reader.unacknowledgedBytes = unacknowledged.get(file) ?? null
      if (unacknowledgedBytes === undefined) continue
      if (reader.unacknowledgedBytes !== unacknowledgedBytes) resetStall(reader)
      else if (stillTicks >= readerLimits.stalledTicks && this.#readers.has(answer)) this.#end(reader, 'stalled')
    }
  }
}

function countTick(reader: Reader): void {
  const takenBytes = countTakenBytes(reader.socket)
  const took = takenBytes - reader.takenBytes
  reader.takenBytes = takenBytes
  reader.takenLately = (reader.takenLately + took) / 2
  reader.ticks++
  const waits = reader.socket.writableLength > 0 && !(keepsOwnTime in reader.answer)
  if (waits && took === 0) {
    reader.stillTicks++
    if (reader.stillTicks % readerLimits.examinedTicks === 0) reader.isDue = true
  } else resetStall(reader)
}

function resetStall(reader: Reader): void {
  reader.stillTicks = 0
  reader.isDue = false
  reader.unacknowledgedBytes = undefined
}

/**
 * Sorts readers by the time that they need to take their held bytes; of readers that take nothing, the one with the most
 * held bytes is last.
 */
function compareBySpeed(a: Reader, b: Reader): number {
  return computeTakenShare(b) - computeTakenShare(a) || a.heldBytes - b.heldBytes
}

/** The share of its held bytes that a reader has recently taken per tick; 1 while its speed is unknown. */
function computeTakenShare({ ticks, takenLately, heldBytes }: Reader): number {
  return ticks < readerLimits.youngTicks ? 1 : takenLately / heldBytes
}

/** An undocumented handle that `net.Socket` itself uses. */
interface SocketHandle {
  readonly bytesWritten: number
  /** Bytes written that the system has not taken. */
  readonly writeQueueSize: number
  /** Negative on platforms without file descriptors. */
  readonly fd: number
}

function readSocketHandle(socket: Socket): SocketHandle | null {
  return (socket as { _handle?: SocketHandle | null })._handle ?? null
}

/** If a version of Node changes the handle, this is NaN, and no reader counts as stalled. */
function countTakenBytes(socket: Socket): number {
  const handle = readSocketHandle(socket)
  return handle === null ? Number.NaN : handle.bytesWritten - handle.writeQueueSize
}

function createObservedResponseClass(note: (answer: ServerResponse) => void): typeof ServerResponse {
  return class NotedResponse extends ServerResponse {
    override write(chunk: unknown, encoding?: unknown, written?: unknown): boolean {
      const isTaken = super.write(chunk, encoding as BufferEncoding, written as () => void)
      note(this)
      return isTaken
    }

    override end(chunk?: unknown, encoding?: unknown, ended?: unknown): this {
      super.end(chunk, encoding as BufferEncoding, ended as () => void)
      const { socket } = this
      if (socket !== null && socket.writableLength > 0) note(this)
      return this
    }
  } as typeof ServerResponse
}
