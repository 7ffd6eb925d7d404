// Deduplicates `$feature_flag_called` events, for projects that enable it: stores only the first per distinct id, flag,
// answer, rule and groups in a UTC day. Servers evaluate the same flag for the same person thousands of times a day. The
// event store's rows show which calls are stored (`findFlagCalls`), so no other record is needed.

import type { CapturedEvent } from '../events/captured-event.ts'
import type { EventIdentity, StoredEvent } from '../events/stored-event.ts'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue } from '../json.ts'
import { dayMs } from '../time.ts'

export const flagCallEventName = '$feature_flag_called'
/** The properties that define a kind of call. Source: docs/wire/ingestion.md 6.9 (2). */
export const flagCallKindKeys = [
  ...(['$feature_flag', '$feature_flag_response', '$feature_flag_rule_id', '$feature_flag_variant_key'] as const),
  ...(['$groups', '$feature_flag_has_experiment'] as const),
] as const
/** Bytes of UTF-8. No flag has a longer key; a longer answer counts as no answer. */
export const flagCallTextBytesMax = 1_000
/** The reason for dropping a repeated call. The call still counts as usage. */
export const deduplicatedReason = 'feature_flag_called_repeated'

/** The fields of a dropped call that are kept, to count the call once, however often it is sent. */
export interface DeduplicatedCall {
  readonly projectId: number
  readonly uuid: string
  readonly distinctId: string
  readonly timestampMs: number
  readonly chargedAtMs: number
  readonly flag: string
  /** See `toResponseText`. */
  readonly response: string
}

/** The stored calls of one kind. */
export interface StoredFlagCall {
  readonly projectId: number
  /** Any time on the UTC day of these calls. */
  readonly timestampMs: number
  readonly distinctId: string
  /** The properties that define the kind. */
  readonly properties: JsonObject
  /** Those of the requested uuids that belong to stored calls. */
  readonly uuids: readonly string[]
}

/** Whether an event is a flag call that may be deduplicated. Imported calls belong to other days and are all stored. */
export function isFlagCall(event: CapturedEvent, properties: JsonObject): boolean {
  return event.name === flagCallEventName && !event.historicalMigration && typeof properties.$feature_flag === 'string'
}

/** The calls stored before and within a chunk. Calls are checked in order, and each stored call is noted. */
export class FlagCalls {
  readonly #uuidsOf = new Map<string, Set<string>>()

  constructor(stored: Iterable<StoredFlagCall>) {
    for (const { uuids, ...call } of stored) {
      const kind = buildKindKey(call, call.properties)
      this.#uuidsOf.set(kind, new Set([...(this.#uuidsOf.get(kind) ?? []), ...uuids]))
    }
  }

  /** Whether another call of the event's kind is stored. A stored call that is sent again is not a repeat of itself. */
  isRepeat(event: CapturedEvent, properties: JsonObject): boolean {
    const uuids = this.#uuidsOf.get(buildKindKey(event, properties))
    return uuids !== undefined && !uuids.has(event.uuid)
  }

  noteStored(event: CapturedEvent, properties: JsonObject): void {
    const kind = buildKindKey(event, properties)
    const uuids = this.#uuidsOf.get(kind)
    if (uuids === undefined) this.#uuidsOf.set(kind, new Set([event.uuid]))
    else uuids.add(event.uuid)
  }
}

/**
 * The flag and the answer of a `$feature_flag_called`, by which calls are counted. Both are '' for other events, and for
 * calls that name no flag.
 */
export function readFlagCall(
  eventName: string,
  properties: JsonObject,
): Pick<StoredEvent, 'flagCalled' | 'flagResponse'> {
  if (eventName !== flagCallEventName) return noFlagCall
  const { $feature_flag: flag, $feature_flag_response: response } = properties
  if (typeof flag !== 'string' || Buffer.byteLength(flag) > flagCallTextBytesMax) return noFlagCall
  return { flagCalled: flag, flagResponse: toResponseText(response) }
}

const noFlagCall = { flagCalled: '', flagResponse: '' }

/**
 * The text by which answers are counted: `true`, `false` or the variant. The text `true` counts as the boolean. A missing
 * or any other answer is ''.
 */
function toResponseText(response: JsonValue | undefined): string {
  if (typeof response === 'boolean') return String(response)
  return typeof response === 'string' && Buffer.byteLength(response) <= flagCallTextBytesMax ? response : ''
}

export function toDeduplicatedCall(event: CapturedEvent, properties: JsonObject): DeduplicatedCall {
  const { projectId, uuid, distinctId, timestampMs, capturedAtMs } = event
  const { flagCalled: flag, flagResponse: response } = readFlagCall(event.name, properties)
  return { projectId, uuid, distinctId, timestampMs, chargedAtMs: capturedAtMs, flag, response }
}

type Call = Pick<EventIdentity, 'projectId' | 'timestampMs' | 'distinctId'>

/** Uses all `flagCallKindKeys`: the same answer may come from another rule, and two variants may have the same value. */
function buildKindKey({ projectId, timestampMs, distinctId }: Call, properties: JsonObject): string {
  const { $feature_flag: flag, $feature_flag_response: response = null, $groups: groups } = properties
  const { $feature_flag_rule_id: rule = null, $feature_flag_variant_key: variant = null } = properties
  const hasExperiment = properties.$feature_flag_has_experiment === true
  const day = Math.floor(timestampMs / dayMs)
  const kind = [projectId, day, distinctId, flag, response, rule, variant, sortGroups(groups), hasExperiment] as const
  return JSON.stringify(kind, toStoredNumber)
}

function sortGroups(groups: JsonValue | undefined): [string, JsonValue][] {
  if (groups === undefined || !isJsonObject(groups)) return []
  return Object.entries(groups).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A number as the event store returns it: `1.0` as `1`, and whole numbers of any length unchanged. */
function toStoredNumber(_key: string, value: unknown): unknown {
  return isRawNumber(value) && !/^-?\d+$/.test(value.rawJSON) ? Number(value.rawJSON) : value
}
