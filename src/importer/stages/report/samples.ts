// `rehearsal/samples.jsonl`: source records with their events, or the reason for having none. It has a few samples of each
// event name and reason, so that rare names and reasons are included. Source: docs/wire/import.md §2.7 (show pairs).

import { readFileSync } from 'node:fs'
import type { JobFolder } from '#importer/job/job-folder.ts'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'
import { allowNull, jsonObject, type Static, Type } from '../../records/file-schema.ts'

export const samplesFile = 'rehearsal/samples.jsonl'
const perKind = 5
/** Additional samples of records with events for each day, so that every day has some; enough for about three years. */
const perDay = 2
const daysMax = 1_100
/** How many kinds have samples: names made of ids would otherwise fill the file. */
const kindsMax = 2_000
const sourceShownMax = 16 * 1024

export const sampleSchema = Type.Object({
  /** The kind of sample: the name of an event, `reject:REASON`, `skip:REASON` or `collapsed`. */
  of: Type.String(),
  day: allowNull(Type.String()),
  object: Type.String(),
  line: Type.Number(),
  source: Type.String(),
  events: Type.Optional(Type.Array(Type.Unsafe<object>(jsonObject))),
  field: Type.Optional(allowNull(Type.String())),
  detail: Type.Optional(Type.String()),
})
export type Sample = Readonly<Static<typeof sampleSchema>>

export class Samples {
  readonly #kinds = new Map<string, number>()
  readonly #days = new Map<string, number>()
  readonly all: Sample[] = []

  /** Takes the first records of each kind and each day, so that the result is deterministic. */
  offer(part: string, { raw, source, result }: StagedOutcome): void {
    const of = describeKind(result)
    const count = this.#kinds.get(of) ?? 0
    const [partDay] = part.split('/')
    const day = partDay === undefined || partDay === 'unknown-day' ? null : partDay
    const isOfKind = count < perKind && (count > 0 || this.#kinds.size < kindsMax)
    const dayOfEvents = result.kind === 'events' ? day : null
    if (!isOfKind && !this.#isOfDay(dayOfEvents)) return
    if (isOfKind) this.#kinds.set(of, count + 1)
    if (dayOfEvents !== null && (this.#days.has(dayOfEvents) || this.#days.size < daysMax))
      this.#days.set(dayOfEvents, (this.#days.get(dayOfEvents) ?? 0) + 1)
    this.all.push({
      of,
      day,
      object: raw.object,
      line: raw.line,
      source: source().text.slice(0, sourceShownMax),
      ...(result.kind === 'events' && { events: result.events.map(toShownEvent) }),
      ...(result.kind === 'rejected' && {
        field: result.field,
        ...(result.detail !== undefined && { detail: result.detail }),
      }),
    })
  }

  #isOfDay(day: string | null): boolean {
    if (day === null) return false
    const count = this.#days.get(day) ?? 0
    return count < perDay && (count > 0 || this.#days.size < daysMax)
  }
}

/** @throws JobStopped if the file is missing or damaged. */
export function readSamples(folder: JobFolder): readonly Sample[] {
  let text: string
  try {
    text = readFileSync(folder.file(samplesFile), 'utf8')
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? folder.damaged(samplesFile) : error
  }
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => folder.parseLine(samplesFile, line, sampleSchema))
}

function describeKind(result: StagedOutcome['result']): string {
  switch (result.kind) {
    case 'events':
      return result.events[0]?.event ?? 'without separate events'
    case 'rejected':
      return `reject:${result.reason}`
    case 'skipped':
      return `skip:${result.reason}`
    case 'collapsed':
      return 'collapsed'
    default:
      return result satisfies never
  }
}

/** The event without the properties that mark imported events, which exist only for a job at the service. */
export function toShownEvent({ uuid, event, distinctId, timeUs, properties }: ImportedEvent): object {
  return { uuid, event, distinct_id: distinctId, timestamp: formatTime(timeUs), properties }
}
