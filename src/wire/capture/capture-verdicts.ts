// The answer to a v0 capture request that asked for verdicts (`?verbose=1`): each item's result and its reason.
// Source: ours, docs/wire/ingestion.md 1.9; the codes are in docs/wire/errors.md.

import { type EventRefusal, eventRefusals } from '#core/capture/normalize-event.ts'
import {
  hasGeneratedUuidAt,
  isNamelessAt,
  type OutcomeTable,
  outcomeAt,
  rowCountOf,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import type { ItemResult } from '#core/capture/outcomes.ts'
import type { Steps } from '#core/maybe-steps.ts'
import { encodeWireError, type WireError, wireError } from '../wire-error.ts'
import { createEventRefusedError } from './capture-errors.ts'

export interface VerboseAnswer {
  readonly status: number
  readonly body: string
}

export const verdictCountMax = 10_000
/** How many characters of an event's name the answer shows. */
const nameLengthMax = 200
const verdictsPerStep = 500

/**
 * Makes the answer from the final outcome table, which must still have all its records. The answer is 200, or the error of
 * the first refusal when items were refused and none was accepted. Both list the verdicts up to `verdictCountMax`; when not
 * all fit, `ok` items are left out first.
 */
export function* encodeVerdicts(table: OutcomeTable): Steps<VerboseAnswer> {
  const itemCount = rowCountOf(table)
  const counts: Record<ItemResult, number> = { ok: 0, warning: 0, drop: 0, reject: 0 }
  for (let row = 0; row < itemCount; row++) counts[outcomeAt(table, row).result]++
  const records = new TableRecords(table)
  const events: string[] = []
  let firstRefused: WireError | null = null
  let notableLeft = Math.min(itemCount - counts.ok, verdictCountMax)
  let fineLeft = verdictCountMax - notableLeft
  for (let row = 0; row < itemCount; row++) {
    const { result, reason, field: about } = outcomeAt(table, row)
    if (result === 'ok' ? fineLeft-- <= 0 : notableLeft-- <= 0) continue
    const record = records.at(row)
    const field = result === 'reject' ? record.field || null : about
    const uuid = result === 'drop' && hasGeneratedUuidAt(table, row) ? null : record.uuid || null
    const event = isNamelessAt(table, row) ? null : record.name.slice(0, nameLengthMax)
    const detail = reason === null ? null : describeReason(reason, field)
    events.push(JSON.stringify({ index: row, uuid, event, result, reason, field, detail }))
    if (result === 'reject') firstRefused ??= createError(reason!, field)
    if (events.length % verdictsPerStep === 0) yield
  }
  const missing = itemCount - events.length
  const rest = `"counts":${JSON.stringify(counts)}${missing > 0 ? `,"not_itemised":${missing}` : ''},"events":[${events}]}`
  if (firstRefused === null || counts.ok + counts.warning > 0) return { status: 200, body: `{"status":"Ok",${rest}` }
  return { status: firstRefused.status, body: `${encodeWireError(firstRefused).slice(0, -1)},${rest}` }
}

function createError(reason: string, field: string | null): WireError {
  const known = findRefusal(reason)
  return known === null ? wireError(400, reason, describeReason(reason, field), field) : createEventRefusedError(known)
}

function findRefusal(reason: string): EventRefusal | null {
  return eventRefusals.find(refusal => refusal === reason) ?? null
}

const shapeDetails: Readonly<Record<string, string>> = {
  event: 'event must be a string',
  api_key: 'an event may have only one of token, $token and api_key, a string',
  distinct_id: 'an event may have only one of distinct_id and $distinct_id; a list or an object there must be short',
  uuid: 'uuid must be a UUID',
  properties: 'properties must be an object',
  timestamp: 'timestamp must be a string',
  offset: 'offset must be a 64-bit integer',
  $set: '$set must be an object',
  $set_once: '$set_once must be an object',
}

const details: Readonly<Record<string, string>> = {
  ignored_invalid_timestamp: 'invalid timestamp: the time of arrival is used',
  distinct_id_truncated: 'distinct_id was truncated to 200 characters',
  event_name_truncated: 'the event name was truncated to 200 characters',
  person_processing_disabled: 'too many events with this distinct id: the event is stored without person processing',
  dropped_performance_event: 'events with this name are not stored',
  heatmap: 'heatmap events are not stored',
  client_ingestion_warning: 'stored as an ingestion warning, not as an event',
  invalid_anon_distinct_id: '$anon_distinct_id must be a string: the event is not stored',
  invalid_alias: 'alias must be a string: the event is not stored',
  group_key_too_long: 'a group key exceeds 400 characters: the event is not stored',
  cookieless_unsupported_event: 'aliases and merges are not supported in cookieless mode: the event is not stored',
  cookieless_stateless_no_identify:
    'the project does not identify visitors in cookieless mode: the event is not stored',
  cookieless_team_disabled: 'cookieless mode is off in this project: the event is not stored',
  cookieless_missing_user_agent: 'a cookieless event needs $raw_user_agent: the event is not stored',
  cookieless_missing_ip: "a cookieless event needs an IP address, the sender's or $ip: the event is not stored",
  cookieless_missing_host: 'a cookieless event needs $host: the event is not stored',
  cookieless_timestamp_out_of_range:
    'cookieless visitors of that day can no longer be identified: the event is not stored',
  invalid_event_when_process_person_profile_is_false:
    'an event that links persons must not have $process_person_profile: false: the event is not stored',
  non_historical_import_drop: 'this instance accepts only historical migrations',
  unknown_api_key: 'the API key does not belong to any project',
}

function describeReason(reason: string, field: string | null): string {
  if (reason === 'invalid_shape') return (field !== null && shapeDetails[field]) || 'an event must be an object'
  if (reason.endsWith('_over_quota'))
    return `the project is over its quota of ${reason.slice(0, -'_over_quota'.length).replaceAll('_', ' ')}`
  const refusal = findRefusal(reason)
  return refusal === null ? (details[reason] ?? reason) : createEventRefusedError(refusal).detail
}
