// What one record of another product becomes: events, a reject or a skip. Source: docs/wire/import.md §1.0, §2.1, §2.6.

import type { CookielessDrop } from '#core/capture/cookieless-event.ts'
import type { DropReason } from '#core/events/event-drops.ts'
import type { JsonObject } from '#core/json.ts'

/** An event as it is sent, without the marker properties that every event of a job gets on its way out. */
export interface ImportedEvent {
  /** Lower case. The same on every run. */
  readonly uuid: string
  readonly event: string
  /** What the source calls it, for the report; absent where that is its own name, or no record holds it as such. */
  readonly sourceName?: string
  readonly distinctId: string
  /** The record names no person, so many events of the source share this id. */
  readonly isIdFilledIn?: true
  /** Microseconds since 1970, a safe integer. */
  readonly timeUs: number
  /** The record says a day, or nothing, so many events of the source have this time. */
  readonly isTimeFilledIn?: true
  readonly properties: JsonObject
}

/** A user and a device that one record names together, which becomes at most one `$identify` per device. */
export interface IdentityLink {
  readonly userId: string
  readonly deviceId: string
  readonly timeUs: number
  /** What the `$identify` carries beside `$anon_distinct_id`. */
  readonly properties: JsonObject
  /** The first event of the record is that `$identify`, so none has to be generated. */
  readonly isOwnEvent?: boolean
}

/** The properties of a group as one record shows them, which become a `$groupidentify` when they are news. */
export interface GroupSnapshot {
  readonly type: string
  readonly key: string
  /** null where the record only names the group, which says nothing of the properties that it has. */
  readonly properties: JsonObject | null
  /** The sender of the event. */
  readonly distinctId: string
  readonly timeUs: number
}

/** All properties of a person as one record shows them; those that are news join the `$set` of its first event. */
export interface PersonSnapshot {
  readonly distinctId: string
  readonly properties: JsonObject
}

/**
 * What the rehearsal counts beside events, rejects and skips, as `name` or `name:detail`.
 * Source: docs/wire/import.md §1.1 to §1.9, §2.7.
 */
export type RecordNote = string

export interface ConvertedRecord {
  readonly events: readonly ImportedEvent[]
  readonly links?: readonly IdentityLink[]
  readonly groups?: readonly GroupSnapshot[]
  readonly person?: PersonSnapshot
  /** Names of fields that no event carries, for the report's list of what was not carried over. */
  readonly dropped?: readonly string[]
  readonly notes?: readonly RecordNote[]
}

/** Why the service refuses or drops events, as far as an event says it of itself. */
export type ServiceDrop =
  | DropReason
  | CookielessDrop
  | 'dropped_performance_event'
  | 'invalid_cookieless_mode'
  | 'invalid_json'

/** Why a record is refused; other `server_refused:<reason>` come with sending. Source: docs/wire/import.md §2.6. */
export type RejectReason =
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

/** Why a record gives no event although nothing is wrong with it. Source: docs/wire/import.md §2.6. */
export type SkipReason =
  | 'session_marker'
  | 'goal_conversion_duplicate'
  | 'destination_disabled'
  | 'blank_line'
  | 'filtered'
  | 'visit_without_actions'
  | 'duplicate_in_source'
  | 'differs_in_source'

export interface Rejected {
  readonly rejected: { readonly reason: RejectReason; readonly field: string | null; readonly detail?: string }
}

export interface Skipped {
  readonly skipped: SkipReason
}

export type Conversion = ConvertedRecord | Rejected | Skipped

/** Thrown by the readers of fields and caught once per record, so that a converter reads like the mapping that it is. */
export class RecordReject extends Error {
  readonly reason: RejectReason
  /** The path of the field in the source record, such as `properties.time`; null when the whole record is at fault. */
  readonly field: string | null

  constructor(reason: RejectReason, field: string | null, detail?: string) {
    super(detail ?? reason)
    this.reason = reason
    this.field = field
  }

  outcome(): Rejected {
    const { reason, field, message } = this
    return { rejected: { reason, field, ...(message !== reason && { detail: message }) } }
  }
}

export function skipped(reason: SkipReason): Skipped {
  return { skipped: reason }
}
