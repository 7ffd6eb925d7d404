// Cuts the lines of a part into rounds. A round is a run of lines whose batches are sent side by side and that is
// committed as a whole; the next one begins when all of it was taken. So the order of each person's events holds: within
// a round by its lane, between rounds because they follow each other. Source: docs/wire/import.md §2.4, §2.5.

import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { importBatchEventsMax } from '#core/imports/import-job.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import { eventBytesMax } from '../records/convert-record.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { utcDay } from '../records/source-time.ts'
import { type EncodedEvent, type EventMarks, encodeEvent } from './encode-event.ts'

export const batchBytesMax = 9 * 1024 * 1024
/** Around the list of events in a request: key, option, brackets. */
const envelopeBytes = 1_024
/** A round holds at most this share of what its lanes could take, so that an uneven spread rarely cuts a lane in two. */
const roundShare = 0.8
const openDaysMax = 2
/** What a request is worth: one for a few events takes client and service nearly as long. */
const laneEventsMinDefault = 1_000
const laneBytesMin = 2 * 1024 * 1024

/** An event on its way, and the line that it came from. */
export interface OutgoingEvent extends EncodedEvent {
  readonly event: ImportedEvent
  readonly outcome: StagedOutcome
}

/** Events of one UTC day that are sent in one request. */
export interface Batch {
  readonly day: string
  readonly events: readonly OutgoingEvent[]
}

export interface Round {
  readonly fromLine: number
  readonly toLine: number
  /** Offset in the part of the byte after the last line. */
  readonly byte: number
  /** Batches of one lane are sent one after another, lanes side by side. */
  readonly lanes: readonly (readonly Batch[])[]
  readonly events: number
  readonly bytes: number
  /** Over the events in the order of their lines, so it does not depend on how many lanes there are. */
  readonly payloadSha256: string
  /** Lines by what became of them before sending. */
  readonly counts: {
    readonly records: number
    readonly skipped: number
    readonly rejected: number
    readonly collapsed: number
  }
  /** Events that are larger than the service takes. */
  readonly tooLarge: readonly OutgoingEvent[]
}

export interface RoundOptions {
  readonly marks: EventMarks
  readonly lanes: number
  /** A round of fewer events than this for each lane takes fewer lanes. 1,000 unless given. */
  readonly laneEventsMin?: number
  /** Whose events have to stay in order: the person that an id is linked to, or the id itself. */
  readonly personOf: (distinctId: string) => string
  /** The first round ends exactly here, whatever its size: it was begun before a crash. */
  readonly firstToLine?: number | null
  /**
   * The rounds end where so many events are reached, for a first look at few events, and then at as many again. A line
   * that gives several events may go over it.
   */
  readonly eventsUntilStop?: number
  /** Ends a round between what is said of groups and other events: lanes run side by side, and groups come first. */
  readonly groupsApart?: boolean
}

export async function* roundsOf(
  outcomes: AsyncIterable<StagedOutcome> | Iterable<StagedOutcome>,
  options: RoundOptions,
): AsyncGenerator<Round> {
  const { eventsUntilStop = Infinity } = options
  const lanesMax = importBatchEventsMax * options.lanes * roundShare
  let left = eventsUntilStop
  const bytesMax = batchBytesMax * options.lanes * roundShare
  let mustEndAt = options.firstToLine ?? null
  let open = new OpenRound(options)
  const closed = (): Round => {
    const round = open.closed()
    left -= round.events + round.tooLarge.length
    if (left <= 0) left = eventsUntilStop
    open = new OpenRound(options)
    return round
  }
  for await (const outcome of outcomes) {
    const line = encodedLine(outcome, options.marks)
    if (mustEndAt === null && !open.isEmpty && open.wouldExceed(line, Math.min(left, lanesMax), bytesMax))
      yield closed()
    open.add(outcome, line)
    if (outcome.line === mustEndAt) {
      yield closed()
      mustEndAt = null
    }
  }
  if (!open.isEmpty) yield closed()
}

interface EncodedLine {
  readonly outgoing: readonly OutgoingEvent[]
  readonly bytes: number
}

function encodedLine(outcome: StagedOutcome, marks: EventMarks): EncodedLine {
  const events = outcome.result.kind === 'events' ? outcome.result.events : []
  const outgoing = events.map(event => ({ event, outcome, ...encodeEvent(event, marks) }))
  return { outgoing, bytes: outgoing.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** Lines without events are cheap to keep but must not make a round endless: the position has to move. */
const roundLinesMax = 200_000

class OpenRound {
  readonly #options: RoundOptions
  readonly #outgoing: OutgoingEvent[] = []
  readonly #hash = createHash('sha256')
  readonly #days = new Set<string>()
  readonly #counts = { records: 0, skipped: 0, rejected: 0, collapsed: 0 }
  readonly #tooLarge: OutgoingEvent[] = []
  #isGroups: boolean | null = null
  #fromLine = 0
  #toLine = 0
  #byte = 0
  #bytes = 0

  constructor(options: RoundOptions) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#toLine === 0
  }

  wouldExceed({ outgoing, bytes }: EncodedLine, eventsMax: number, bytesMax: number): boolean {
    if (this.#toLine - this.#fromLine >= roundLinesMax) return true
    if (outgoing.length === 0) return false
    if (
      this.#outgoing.length > 0 &&
      (this.#outgoing.length + outgoing.length > eventsMax || this.#bytes + bytes > bytesMax)
    )
      return true
    if (this.#days.size > 0 && this.#daysWith(outgoing) > openDaysMax) return true
    if (this.#options.groupsApart !== true || this.#isGroups === null) return false
    return this.#isGroups !== isGroupEvent(outgoing[0]!.event)
  }

  #daysWith(outgoing: readonly OutgoingEvent[]): number {
    const added = new Set<string>()
    for (const { event } of outgoing) {
      const day = utcDay(event.timeUs)
      if (!this.#days.has(day)) added.add(day)
    }
    return this.#days.size + added.size
  }

  add(outcome: StagedOutcome, { outgoing }: EncodedLine): void {
    if (this.isEmpty) this.#fromLine = outcome.line
    this.#toLine = outcome.line
    this.#byte = outcome.byteEnd
    this.#counts[countOf[outcome.result.kind]]++
    for (const each of outgoing) {
      if (each.bytes > eventBytesMax) {
        this.#tooLarge.push(each)
        continue
      }
      this.#hash.update(each.text).update('\n')
      this.#days.add(utcDay(each.event.timeUs))
      this.#isGroups ??= isGroupEvent(each.event)
      this.#outgoing.push(each)
      this.#bytes += each.bytes
    }
  }

  closed(): Round {
    return {
      fromLine: this.#fromLine,
      toLine: this.#toLine,
      byte: this.#byte,
      lanes: this.#lanes(),
      events: this.#outgoing.length,
      bytes: this.#bytes,
      payloadSha256: this.#hash.digest('hex'),
      counts: this.#counts,
      tooLarge: this.#tooLarge,
    }
  }

  #lanes(): Round['lanes'] {
    const { lanes, laneEventsMin = laneEventsMinDefault, personOf } = this.#options
    const worth = Math.max(this.#outgoing.length / laneEventsMin, this.#bytes / laneBytesMin)
    const count = Math.max(1, Math.min(lanes, Math.ceil(worth)))
    const events = Array.from({ length: count }, (): OutgoingEvent[] => [])
    for (const each of this.#outgoing) events[crc32(personOf(each.event.distinctId)) % count]!.push(each)
    return events.map(batchesOf).filter(batches => batches.length > 0)
  }
}

const countOf = { events: 'records', skipped: 'skipped', rejected: 'rejected', collapsed: 'collapsed' } as const

function isGroupEvent({ event }: ImportedEvent): boolean {
  return event === '$groupidentify'
}

/**
 * Cuts one lane's events into batches of one day, the oldest day first: those of a local day fall on two UTC days in turns, and
 * a batch for each turn would hold a few events.
 */
function batchesOf(events: readonly OutgoingEvent[]): Batch[] {
  const days = Map.groupBy(events, ({ event }) => utcDay(event.timeUs))
  return [...days].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([day, ofDay]) => batchesOfDay(day, ofDay))
}

function batchesOfDay(day: string, events: readonly OutgoingEvent[]): Batch[] {
  const batches: { day: string; events: OutgoingEvent[] }[] = []
  let bytes = 0
  for (const each of events) {
    const last = batches.at(-1)
    // The comma between events counts as well.
    bytes += each.bytes + 1
    if (last !== undefined && last.events.length < importBatchEventsMax && bytes <= batchBytesMax - envelopeBytes)
      last.events.push(each)
    else {
      batches.push({ day, events: [each] })
      bytes = each.bytes + 1
    }
  }
  return batches
}
