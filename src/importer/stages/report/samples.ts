// `rehearsal/samples.jsonl`: source records beside the events that they make or the reason why not, a few of every event
// and every reason, so that rare ones are seen too. Source: docs/wire/import.md §2.7 (show pairs).

import Type from 'typebox'
import { jsonObject, orNull } from '#importer/job/file-schema.ts'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { timeText } from '#importer/records/source-time.ts'

export const samplesFile = 'rehearsal/samples.jsonl'
const perKind = 5
/** So that names made of ids do not fill the file. */
const kindsMax = 2_000
const sourceShownMax = 16 * 1024

export interface Sample {
  /** What it is a sample of: the name of an event, or `reject:REASON`, `skip:REASON`, `collapsed`. */
  readonly of: string
  readonly day: string | null
  readonly object: string
  readonly line: number
  readonly source: string
  readonly events?: readonly object[]
  readonly field?: string | null
  readonly detail?: string
}

export const sampleSchema = Type.Object({
  of: Type.String(),
  day: orNull(Type.String()),
  object: Type.String(),
  line: Type.Number(),
  source: Type.String(),
  events: Type.Optional(Type.Array(jsonObject)),
  field: Type.Optional(orNull(Type.String())),
  detail: Type.Optional(Type.String()),
})

export class Samples {
  readonly #kinds = new Map<string, number>()
  readonly all: Sample[] = []

  /** Takes the first ones of each kind, so it is the same on every run. */
  offer(part: string, { raw, text, result }: StagedOutcome): void {
    const of = kindOf(result)
    const count = this.#kinds.get(of) ?? 0
    if (count >= perKind || (count === 0 && this.#kinds.size >= kindsMax)) return
    this.#kinds.set(of, count + 1)
    const day = part.split('/')[0]!
    this.all.push({
      of,
      day: day === 'unknown-day' ? null : day,
      object: raw.object,
      line: raw.line,
      source: text.slice(0, sourceShownMax),
      ...(result.kind === 'events' && { events: result.events.map(shownEvent) }),
      ...(result.kind === 'rejected' && {
        field: result.field,
        ...(result.detail !== undefined && { detail: result.detail }),
      }),
    })
  }
}

function kindOf(result: StagedOutcome['result']): string {
  switch (result.kind) {
    case 'events':
      return result.events[0]?.event ?? 'without events of its own'
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

export function shownEvent({ uuid, event, distinctId, timeUs, properties }: ImportedEvent): object {
  return { uuid, event, distinct_id: distinctId, timestamp: timeText(timeUs), properties }
}
