// The outcome of converting one record: events, a reject or a skip. Source: docs/wire/import.md §1.0, §2.1, §2.6.

import type { CookielessDrop } from '#core/capture/cookieless-event.ts'
import type { DropReason } from '#core/events/event-drops.ts'
import type { JsonObject } from '#core/json.ts'

/** An event to be sent, without the marker properties that sending adds to every event of a job. */
export interface ImportedEvent {
  /** Lower case, deterministic. */
  readonly uuid: string
  readonly event: string
  /** The source's name for the event, for the report; absent if equal to `event` or if the event was generated. */
  readonly sourceName?: string
  readonly distinctId: string
  /** Set if the record names no person, so that many events of the source share this id. */
  readonly isIdFilledIn?: true
  /** Microseconds since 1970, a safe integer. */
  readonly timeUs: number
  /** Set if the record has only a day, or no time, so that many events of the source share this time. */
  readonly isTimeFilledIn?: true
  readonly properties: JsonObject
}

/** A user and a device that one record names together. Becomes at most one `$identify` per device. */
export interface IdentityLink {
  readonly userId: string
  readonly deviceId: string
  readonly timeUs: number
  /** Properties of the `$identify` in addition to `$anon_distinct_id`. */
  readonly properties: JsonObject
  /** Whether the first event of the record is that `$identify`, so that none is generated. */
  readonly isOwnEvent?: boolean
}

/** The properties of a group in one record. Becomes a `$groupidentify` when they are new. */
export interface GroupSnapshot {
  readonly type: string
  readonly key: string
  /** Null if the record only names the group. */
  readonly properties: JsonObject | null
  /** The sender of the event. */
  readonly distinctId: string
  readonly timeUs: number
}

/** The properties of a person in one record. New ones are added to the `$set` of its first event. */
export interface PersonSnapshot {
  readonly distinctId: string
  readonly properties: JsonObject
}

/**
 * A fact about a record, `name` or `name:detail`, which the rehearsal counts in addition to events, rejects and skips.
 * Source: docs/wire/import.md §1.1 to §1.9, §2.7.
 */
export type RecordNote = string

export interface ConvertedRecord {
  readonly events: readonly ImportedEvent[]
  readonly links?: readonly IdentityLink[]
  readonly groups?: readonly GroupSnapshot[]
  readonly person?: PersonSnapshot
  /** Names of fields that no event carries, for the report's list of dropped fields. */
  readonly dropped?: readonly string[]
  readonly notes?: readonly RecordNote[]
}

/** The service's reasons to refuse or drop an event, as far as they depend only on the event. */
export type ServiceDrop =
  | DropReason
  | CookielessDrop
  | 'dropped_performance_event'
  | 'invalid_cookieless_mode'
  | 'invalid_json'

/**
 * Why a record is refused before sending. Sending adds other `server_refused:<reason>`. Source: docs/wire/import.md §2.6.
 */
export type RecordRejectReason =
  | `server_refused:${ServiceDrop}`
  | 'compressed_input'
  | 'encoding_invalid_utf8'
  | 'truncated_record'
  | 'record_too_large'
  | 'json_syntax'
  | 'json_not_object'
  | 'csv_column_count'
  | 'properties_not_object'
  | 'event_missing'
  | 'event_not_string'
  | 'event_name_too_long'
  | 'distinct_id_missing'
  | 'distinct_id_illegal'
  | 'distinct_id_too_long'
  | 'timestamp_missing'
  | 'timestamp_invalid'
  | 'timestamp_zone_unknown'
  | 'timestamp_out_of_range'
  | 'timestamp_future'
  | 'within_live_window'
  | 'older_than_retention'
  | 'unsupported_event'
  | 'merge_needs_approval'
  | 'group_type_limit'

/** Why a valid record produces no event. Source: docs/wire/import.md §2.6. */
export type SkipReason =
  | 'session_marker'
  | 'goal_conversion_duplicate'
  | 'destination_disabled'
  | 'blank_line'
  | 'filtered'
  | 'visit_without_actions'
  | 'duplicate_in_source'
  | 'differs_in_source'

export interface RejectedRecord {
  readonly rejected: { readonly reason: RecordRejectReason; readonly field: string | null; readonly detail?: string }
}

export interface SkippedRecord {
  readonly skipped: SkipReason
}

export type Conversion = ConvertedRecord | RejectedRecord | SkippedRecord

/** Thrown by field readers and caught once per record, so that a converter reads like a mapping. */
export class RecordReject extends Error {
  readonly reason: RecordRejectReason
  /** The path of the field in the source record, such as `properties.time`; null when the whole record is at fault. */
  readonly field: string | null

  constructor(reason: RecordRejectReason, field: string | null, detail?: string) {
    super(detail ?? reason)
    this.reason = reason
    this.field = field
  }

  outcome(): RejectedRecord {
    const { reason, field, message } = this
    return { rejected: { reason, field, ...(message !== reason && { detail: message }) } }
  }
}

export function createSkippedOutcome(reason: SkipReason): SkippedRecord {
  return { skipped: reason }
}
