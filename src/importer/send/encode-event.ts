// An event as it goes over the wire, with the marker properties that tell where it came from.
// Source: docs/wire/import.md §1.0 (output, marker properties), §2.5 (one event > 1 MB).

import { type JsonObject, mergeObjects } from '#core/json.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { timeText } from '../records/source-time.ts'

/** Larger events are refused before they are sent, because the service would not take them. */
export const eventBytesMax = 1_000_000

export interface EventMarks {
  /** Name of the source, such as `mixpanel`. */
  readonly source: string
  /** Id of the job at the service; without one, that of the job's folder. */
  readonly jobId: string
}

export interface EncodedEvent {
  /** JSON. */
  readonly text: string
  readonly bytes: number
}

/** The same text on every run, so that a batch that is built again has the same hash. */
export function encodeEvent(event: ImportedEvent, marks: EventMarks): EncodedEvent {
  const text = JSON.stringify({
    uuid: event.uuid,
    event: event.event,
    timestamp: timeText(event.timeUs),
    properties: sentProperties(event, marks),
  })
  return { text, bytes: Buffer.byteLength(text) }
}

/** The marks win over properties of the same name, which an export of an earlier import may hold. */
export function sentProperties(event: ImportedEvent, { source, jobId }: EventMarks): JsonObject {
  return mergeObjects(event.properties, {
    distinct_id: event.distinctId,
    $geoip_disable: true,
    historical_migration: true,
    analytics_source: source,
    $import_job_id: jobId,
  })
}
