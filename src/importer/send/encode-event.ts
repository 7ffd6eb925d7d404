// An event as it goes over the wire, with the marker properties that tell where it came from.
// Source: docs/wire/import.md §1.0 (output, marker properties), §2.5 (one event > 1 MB).

import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, setOwn } from '#core/json.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { timeText } from '../records/source-time.ts'

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
  const sent: JsonObject = {
    uuid: event.uuid,
    event: event.event,
    timestamp: timeText(event.timeUs),
    properties: mergeObjects(event.properties, marksOf(event, marks)),
  }
  let text = JSON.stringify(sent)
  // Half an emoji, as programs leave that cut texts: no service reads it.
  if (/\\ud[89a-f]/.test(text)) text = JSON.stringify(wellFormed(sent))
  return { text, bytes: Buffer.byteLength(text) }
}

/** The marks win over properties of the same name, which an export of an earlier import may hold. */
export function sentProperties(event: ImportedEvent, marks: EventMarks): JsonObject {
  return wellFormed(mergeObjects(event.properties, marksOf(event, marks))) as JsonObject
}

function marksOf({ distinctId }: ImportedEvent, { source, jobId }: EventMarks): JsonObject {
  return {
    distinct_id: distinctId,
    $geoip_disable: true,
    historical_migration: true,
    analytics_source: source,
    $import_job_id: jobId,
  }
}

/** The value with U+FFFD in place of each lone surrogate, in keys too. */
function wellFormed(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(wellFormed)
  if (!isJsonObject(value)) return value
  const object: JsonObject = {}
  for (const [key, member] of Object.entries(value)) setOwn(object, key.toWellFormed(), wellFormed(member))
  return object
}
