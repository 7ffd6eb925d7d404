// Every ingestion warning that processing raises: its category, its severity, and how many warnings of its type are kept.
// Counts are exact, however few warnings are kept. The names are PostHog's, so that existing filters keep working.

import { type JsonObject, type JsonValue, toComparableText } from '../json.ts'

export type WarningCategory = 'size' | 'merge' | 'event'
/**
 * `error`: the event or a part of it is not stored. `warning`: stored, but not quite as sent. `info`: works as intended.
 */
export type WarningSeverity = 'info' | 'warning' | 'error'

interface WarningKind {
  readonly category: WarningCategory
  readonly severity: WarningSeverity
  /**
   * Up to 1,000 such warnings a day are kept instead of 20: merge warnings are rare and each concerns a person, and clients
   * need to read the warnings that they raised.
   */
  readonly isKept?: true
}

/** Source: docs/wire/ingestion.md 10. */
export const warningTypes = {
  message_size_too_large: { category: 'size', severity: 'error' },
  person_properties_size_violation: { category: 'size', severity: 'error' },
  group_properties_size_violation: { category: 'size', severity: 'error' },
  group_key_too_long: { category: 'size', severity: 'error' },
  cannot_merge_already_identified: { category: 'merge', severity: 'warning', isKept: true },
  cannot_merge_too_many_distinct_ids: { category: 'merge', severity: 'warning', isKept: true },
  cannot_merge_with_illegal_distinct_id: { category: 'merge', severity: 'warning', isKept: true },
  merge_race_condition: { category: 'merge', severity: 'error', isKept: true },
  client_ingestion_warning: { category: 'event', severity: 'info', isKept: true },
  skipping_event_invalid_distinct_id: { category: 'event', severity: 'error' },
  invalid_anon_distinct_id: { category: 'event', severity: 'error' },
  invalid_alias: { category: 'event', severity: 'error' },
  group_type_refused: { category: 'event', severity: 'warning' },
  invalid_group_set: { category: 'event', severity: 'warning' },
  invalid_process_person_profile: { category: 'event', severity: 'warning' },
  invalid_event_when_process_person_profile_is_false: { category: 'event', severity: 'error' },
  event_dropped_too_old: { category: 'event', severity: 'info' },
  event_uuid_timestamp_divergent: { category: 'event', severity: 'warning' },
  invalid_event_session_id: { category: 'event', severity: 'warning' },
  ignored_invalid_timestamp: { category: 'event', severity: 'warning' },
  distinct_id_truncated: { category: 'event', severity: 'warning' },
  event_name_truncated: { category: 'event', severity: 'warning' },
  person_processing_disabled: { category: 'event', severity: 'warning' },
  cookieless_unsupported_event: { category: 'event', severity: 'error' },
  cookieless_stateless_no_identify: { category: 'event', severity: 'error' },
  cookieless_team_disabled: { category: 'event', severity: 'error' },
  cookieless_missing_user_agent: { category: 'event', severity: 'error' },
  cookieless_missing_ip: { category: 'event', severity: 'error' },
  cookieless_missing_host: { category: 'event', severity: 'error' },
  cookieless_timestamp_out_of_range: { category: 'event', severity: 'error' },
  otlp_not_stored: { category: 'event', severity: 'error' },
  old_events_sent_live: { category: 'event', severity: 'info' },
  historical_migration: { category: 'event', severity: 'info' },
} as const satisfies Record<string, WarningKind>

export type WarningType = keyof typeof warningTypes

/** The kind of every warning whose type is a refusal code of the edge. */
const refusal: WarningKind = { category: 'event', severity: 'error' }

function getWarningKind(type: string): WarningKind {
  return Object.hasOwn(warningTypes, type) ? warningTypes[type as WarningType] : refusal
}

/** Adds a warning's category and severity to its details. */
export function addCategoryAndSeverity(type: string, details: JsonObject): JsonObject {
  const { category, severity } = getWarningKind(type)
  return { ...details, category, severity }
}

const sampleCountMax = 20
/** Kept types are bounded too, since any client with the public key can raise their warnings. */
const keptCountMax = 1_000

/** How many warnings of a type are kept per project and UTC day. */
export function findWarningSamplesMax(type: string): number {
  return getWarningKind(type).isKept === true ? keptCountMax : sampleCountMax
}

const shownLengthMax = 200

/** Truncates a client's value for a warning: warnings are stored, so their size is bounded. */
export function truncateForWarning(value: JsonValue, lengthMax = shownLengthMax): string {
  const text = toComparableText(value)
  return text.length <= lengthMax ? text : text.slice(0, lengthMax).toWellFormed()
}
