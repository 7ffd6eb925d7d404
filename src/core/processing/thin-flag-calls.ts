// Which `$feature_flag_called` events of a project that thins them say something new: the first of a distinct id, flag,
// answer and groups in a UTC day. Servers ask for the same flag of the same person thousands of times a day. What was
// stored before is read from the event store's own rows (`findFlagCalls`), so that there is nothing else to keep.

import type { CapturedEvent } from '../events/captured-event.ts'
import type { EventIdentity } from '../events/stored-event.ts'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue, textOf } from '../json.ts'
import { dayMs } from '../time.ts'

export const flagCallEventName = '$feature_flag_called'
/** Why such an event is dropped: it is counted as used all the same. */
export const thinnedReason = 'feature_flag_called_repeated'

/** What is left of an event that was thinned out: enough to count it once, however often it comes. */
export interface ThinnedCall {
  readonly projectId: number
  readonly uuid: string
  readonly distinctId: string
  readonly timestampMs: number
  readonly chargedAtMs: number
  readonly flag: string
  /** As text. */
  readonly response: string
}

/** Calls of one kind that are stored. */
export interface StoredFlagCall {
  readonly projectId: number
  /** Any time of their UTC day. */
  readonly timestampMs: number
  readonly distinctId: string
  /** Those that make the kind. */
  readonly properties: JsonObject
  /** The uuids that are stored among those that were asked for. */
  readonly uuids: readonly string[]
}

/** An import has calls of other days, and is kept as it is. */
export function isFlagCall(event: CapturedEvent, properties: JsonObject): boolean {
  return event.name === flagCallEventName && !event.historicalMigration && typeof properties.$feature_flag === 'string'
}

/** The calls of a chunk, in order; each is noted once it is stored. */
export class FlagCalls {
  readonly #uuidsOf = new Map<string, Set<string>>()

  constructor(stored: Iterable<StoredFlagCall>) {
    for (const { uuids, ...call } of stored) {
      const kind = kindOf(call, call.properties)
      this.#uuidsOf.set(kind, new Set([...(this.#uuidsOf.get(kind) ?? []), ...uuids]))
    }
  }

  /** Whether another call of its kind is stored; the stored one itself, sent again, is none. */
  isRepeat(event: CapturedEvent, properties: JsonObject): boolean {
    const uuids = this.#uuidsOf.get(kindOf(event, properties))
    return uuids !== undefined && !uuids.has(event.uuid)
  }

  noteStored(event: CapturedEvent, properties: JsonObject): void {
    const kind = kindOf(event, properties)
    const uuids = this.#uuidsOf.get(kind)
    if (uuids === undefined) this.#uuidsOf.set(kind, new Set([event.uuid]))
    else uuids.add(event.uuid)
  }
}

export function thinnedCallOf(event: CapturedEvent, properties: JsonObject): ThinnedCall {
  const { projectId, uuid, distinctId, timestampMs, capturedAtMs } = event
  const call = { projectId, uuid, distinctId, timestampMs, chargedAtMs: capturedAtMs }
  const { $feature_flag: flag, $feature_flag_response: response } = properties
  return { ...call, flag: textOf(flag ?? ''), response: textOf(response ?? null) }
}

type Call = Pick<EventIdentity, 'projectId' | 'timestampMs' | 'distinctId'>

/**
 * `$feature_flag_has_experiment` counts only beside a variant: of other answers it is not stored (6.9, 3).
 * Source: docs/wire/ingestion.md 6.9 (2).
 */
function kindOf({ projectId, timestampMs, distinctId }: Call, properties: JsonObject): string {
  const { $feature_flag: flag, $feature_flag_response: response = null } = properties
  const hasExperiment = typeof response === 'string' && properties.$feature_flag_has_experiment === true
  const day = Math.floor(timestampMs / dayMs)
  const kind = [projectId, day, distinctId, flag, response, groupsOf(properties.$groups), hasExperiment] as const
  return JSON.stringify(kind, asStored)
}

function groupsOf(groups: JsonValue | undefined): [string, JsonValue][] {
  if (groups === undefined || !isJsonObject(groups)) return []
  return Object.entries(groups).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** The event store tells `1.0` as `1`; whole numbers of any length it tells as they are. */
function asStored(_key: string, value: unknown): unknown {
  return isRawNumber(value) && !/^-?\d+$/.test(value.rawJSON) ? Number(value.rawJSON) : value
}
