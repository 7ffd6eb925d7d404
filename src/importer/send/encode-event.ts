// Encodes an event for sending, with the marker properties that name its source and job. Source: docs/wire/import.md §1.0
// (output, marker properties), §2.5 (one event > 1 MB).

import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, setOwnValue } from '#core/json.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { formatTime } from '../records/source-time.ts'

export interface EventMarks {
  /** Name of the source, such as `mixpanel`. */
  readonly source: string
  /** Id of the job at the service, or of the job in the folder if the service has none. */
  readonly jobId: string
}

export interface EncodedEvent {
  /** JSON. */
  readonly text: string
  readonly bytes: number
}

/** Deterministic, so that a batch that is built again has the same hash. */
export function encodeImportedEvent(event: ImportedEvent, marks: EventMarks): EncodedEvent {
  const sent: JsonObject = {
    uuid: event.uuid,
    event: event.event,
    timestamp: formatTime(event.timeUs),
    properties: mergeObjects(event.properties, createMarkerProperties(event, marks)),
  }
  let text = JSON.stringify(sent)
  // The text contains a lone surrogate, as left by programs that truncate text within an emoji. No service can read it.
  if (/\\ud[89a-f]/.test(text)) text = JSON.stringify(replaceLoneSurrogates(sent))
  return { text, bytes: Buffer.byteLength(text) }
}

/** Marker properties replace properties of the same name, which the export may contain from an earlier import. */
export function addMarkerProperties(event: ImportedEvent, marks: EventMarks): JsonObject {
  return replaceLoneSurrogates(mergeObjects(event.properties, createMarkerProperties(event, marks))) as JsonObject
}

function createMarkerProperties({ distinctId }: ImportedEvent, { source, jobId }: EventMarks): JsonObject {
  return {
    distinct_id: distinctId,
    $geoip_disable: true,
    historical_migration: true,
    analytics_source: source,
    $import_job_id: jobId,
  }
}

/** Replaces each lone surrogate with U+FFFD, in keys too. */
function replaceLoneSurrogates(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(replaceLoneSurrogates)
  if (!isJsonObject(value)) return value
  const object: JsonObject = {}
  for (const [key, member] of Object.entries(value))
    setOwnValue(object, key.toWellFormed(), replaceLoneSurrogates(member))
  return object
}
