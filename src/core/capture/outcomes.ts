// Every outcome that an item of a capture request can have. A row of the outcome table (`outcome-table.ts`) holds the index
// of its outcome in this list: the code. Metrics, counts, kept rejects and the answers of both protocols all take their
// codes from this list.

import { dropReasons } from '../events/event-drops.ts'
import { type CookielessDrop, cookielessDrops } from './cookieless-event.ts'
import { noteWarnings } from './edge-warnings.ts'
import { eventRefusals } from './normalize-event.ts'
import { v1DropReasons } from './normalize-v1-event.ts'
import { type EventResource, eventResources } from './quota-resource.ts'

/**
 * `warning`: accepted, though not quite as it was sent. `drop`: valid, but does not become an event. `reject`: bad,
 * left out, and kept where the project can find it.
 */
export type ItemResult = 'ok' | 'warning' | 'drop' | 'reject'

export interface Outcome {
  readonly result: ItemResult
  /** A code of docs/wire/errors.md; null when there is nothing to report. */
  readonly reason: string | null
  /** Whether the item's record is appended to the log. True also for events that the worker will drop. */
  readonly isStored: boolean
  /** The field that a warning is about. A reject's own record says which field is at fault. */
  readonly field: string | null
}

const list: Outcome[] = []
/** Indexed by code. */
export const outcomes: readonly Outcome[] = list

export const okCode = defineOutcome('ok', null, true)
/** Only on v1: the event is stored without a person, because its distinct id is a placeholder such as `undefined`. */
export const personlessCode = defineOutcome('ok', 'person_processing_disabled', true)

export const warningCodes = Object.fromEntries(
  noteWarnings.map(({ type, field }) => [type, defineOutcome('warning', type, true, field)]),
) as Readonly<Record<(typeof noteWarnings)[number]['type'], number>>

/** Events that the worker will drop, for reasons that are visible in the event alone. */
export const workerDropCodes = defineOutcomes('drop', dropReasons, true)

export const performanceCode = defineOutcome('drop', 'dropped_performance_event', false)
/** The key belongs to no project. Such requests are answered as if they had succeeded. */
export const unknownKeyCode = defineOutcome('drop', 'unknown_api_key', false)
/** The instance takes historical migrations only. Source: docs/wire/ingestion.md 5. */
export const importOnlyCode = defineOutcome('drop', 'non_historical_import_drop', false)
/** The project has used up a quota. Source: docs/wire/ingestion.md 9. */
const firstOverQuotaCode = list.length
for (const resource of eventResources) defineOutcome('drop', `${resource}_over_quota`, false)

export function getOverQuotaCode(resource: EventResource): number {
  return firstOverQuotaCode + eventResources.indexOf(resource)
}

/** The quota that an outcome is about; null for any other outcome. */
export function resourceOfOverQuotaCode(code: number): EventResource | null {
  return eventResources[code - firstOverQuotaCode] ?? null
}

/** Events of cookieless mode that cannot be stored. Source: docs/wire/ingestion.md 13.7. */
export const cookielessDropCodes = defineOutcomes('drop', cookielessDrops, false)

/** The reason why an event of cookieless mode is dropped; null for any other outcome. */
export function getCookielessDropReason(code: number): CookielessDrop | null {
  return cookielessDrops[code - cookielessDropCodes[cookielessDrops[0]]] ?? null
}

/** Why an item is refused, in either protocol. */
export type CaptureRejectReason = (typeof eventRefusals)[number] | (typeof v1DropReasons)[number] | 'invalid_shape'
export const rejectCodes = defineOutcomes(
  'reject',
  [...new Set<CaptureRejectReason>([...eventRefusals, 'invalid_shape', ...v1DropReasons])],
  false,
)

function defineOutcome(
  result: ItemResult,
  reason: string | null,
  isStored: boolean,
  field: string | null = null,
): number {
  return list.push({ result, reason, isStored, field }) - 1
}

function defineOutcomes<Reason extends string>(
  result: ItemResult,
  reasons: readonly Reason[],
  isStored: boolean,
): Readonly<Record<Reason, number>> {
  const codes = reasons.map(reason => [reason, defineOutcome(result, reason, isStored)])
  return Object.fromEntries(codes) as Record<Reason, number>
}
