// Divides the lines of a part into rounds. A round is a run of lines whose batches are sent in parallel and committed
// together; the next round starts once all these batches are accepted. This preserves the order of each person's events:
// within a round, a person's events share a lane, and rounds are sequential. Source: docs/wire/import.md §2.4, §2.5.

import { crc32 } from 'node:zlib'
import { importBatchEventsMax } from '#core/imports/import-job.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import { eventBytesMax } from '../records/convert-record.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { utcDay } from '../records/source-time.ts'
import { type EncodedEvent, type EventMarks, encodeImportedEvent } from './encode-event.ts'

export const batchBytesMax = 9 * 1024 * 1024
/** Allowance for what a request body has in addition to events: the key, an option and brackets. */
const envelopeBytes = 1_024
/** A round fills at most this share of its lanes, so that a lane rarely needs a second batch when lanes fill unevenly. */
const roundShare = 0.8
const openDaysMax = 2
/** A round uses fewer lanes if a lane would be smaller than this: a small request costs nearly as much as a large one. */
const laneEventsMinDefault = 1_000
const laneBytesMin = 2 * 1024 * 1024

/** An event to send, and the line that it came from. */
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
  /** Lanes are sent in parallel; the batches of a lane are sent one after another. */
  readonly lanes: readonly (readonly Batch[])[]
  readonly events: number
  readonly bytes: number
  /** How many lines were converted to each kind of result. */
  readonly counts: {
    readonly records: number
    readonly skipped: number
    readonly rejected: number
    readonly collapsed: number
  }
  /** Events larger than the service accepts; they are in no lane. */
  readonly tooLarge: readonly OutgoingEvent[]
}

export interface RoundOptions {
  readonly marks: EventMarks
  readonly lanes: number
  /** How many events justify one more lane. Default 1,000. */
  readonly laneEventsMin?: number
  /** @returns the person that an id is linked to, or the id itself. Events of the same person must stay in order. */
  readonly personOf: (distinctId: string) => string
}

export async function* divideIntoSendRounds(
  outcomes: AsyncIterable<StagedOutcome> | Iterable<StagedOutcome>,
  options: RoundOptions,
): AsyncGenerator<Round> {
  const eventsMax = importBatchEventsMax * options.lanes * roundShare
  const bytesMax = batchBytesMax * options.lanes * roundShare
  let open = new OpenRound(options)
  for await (const outcome of outcomes) {
    const line = encodeOutcome(outcome, options.marks)
    if (!open.isEmpty && open.wouldExceed(line, eventsMax, bytesMax)) {
      yield open.closed()
      open = new OpenRound(options)
    }
    open.add(outcome, line)
  }
  if (!open.isEmpty) yield open.closed()
}

interface EncodedLine {
  readonly outgoing: readonly OutgoingEvent[]
  readonly bytes: number
}

function encodeOutcome(outcome: StagedOutcome, marks: EventMarks): EncodedLine {
  const events = outcome.result.kind === 'events' ? outcome.result.events : []
  const outgoing = events.map(event => ({ event, outcome, ...encodeImportedEvent(event, marks) }))
  return { outgoing, bytes: outgoing.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** Bounds a round of lines without events, so that the committed position advances. */
const roundLinesMax = 200_000

class OpenRound {
  readonly #options: RoundOptions
  readonly #outgoing: OutgoingEvent[] = []
  readonly #days = new Set<string>()
  readonly #counts = { records: 0, skipped: 0, rejected: 0, collapsed: 0 }
  readonly #tooLarge: OutgoingEvent[] = []
  #fromLine = 0
  #toLine = 0
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
    return this.#days.size > 0 && this.#daysWith(outgoing) > openDaysMax
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
    this.#counts[countOf[outcome.result.kind]]++
    for (const each of outgoing) {
      if (each.bytes > eventBytesMax) {
        this.#tooLarge.push(each)
        continue
      }
      this.#days.add(utcDay(each.event.timeUs))
      this.#outgoing.push(each)
      this.#bytes += each.bytes
    }
  }

  closed(): Round {
    return {
      fromLine: this.#fromLine,
      toLine: this.#toLine,
      lanes: this.#lanes(),
      events: this.#outgoing.length,
      bytes: this.#bytes,
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
    return events.map(divideIntoBatches).filter(batches => batches.length > 0)
  }
}

const countOf = { events: 'records', skipped: 'skipped', rejected: 'rejected', collapsed: 'collapsed' } as const

/**
 * Divides one lane's events into batches of one UTC day, oldest first. A local day spans two UTC days whose events may
 * alternate, so batches that end at each change of day would contain few events.
 */
function divideIntoBatches(events: readonly OutgoingEvent[]): Batch[] {
  const days = Map.groupBy(events, ({ event }) => utcDay(event.timeUs))
  return [...days].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([day, ofDay]) => divideDayIntoBatches(day, ofDay))
}

function divideDayIntoBatches(day: string, events: readonly OutgoingEvent[]): Batch[] {
  const batches: { day: string; events: OutgoingEvent[] }[] = []
  let bytes = 0
  for (const each of events) {
    const last = batches.at(-1)
    // Includes the comma.
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
