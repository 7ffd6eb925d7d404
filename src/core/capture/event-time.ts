// The one place that decides when an event happened. `timestamp-text.ts` reads the texts; callers decide what happens
// to a refused event.

import { storableBeforeMs, storableFromMs } from '../events/storable-time.ts'
import { err, ok, type Result } from '../result.ts'
import { parseStrictTimestampText, parseTimestampText } from './timestamp-text.ts'

export interface EventTimeInput {
  /** The event's own `timestamp`, as sent; null when it has none. */
  readonly timestamp: string | null
  /** The event's `offset`: how many ms before the server's clock the event happened. */
  readonly offsetMs: number | null
  /** `properties.$ignore_sent_at` is the boolean true. */
  readonly ignoreSentAt: boolean
  /** When the client says it sent the request, epoch ms, by its own clock. */
  readonly sentAtMs: number | null
  readonly receivedAtMs: number
  readonly historicalMigration: boolean
}

const futureToleranceMs = 23 * 60 * 60 * 1000
const yearZeroMs = Date.parse('0000-01-01T00:00:00Z')

/**
 * When an event happened, in epoch ms (UTC).
 *
 * A live event's `timestamp` is corrected by the client's clock error (`receivedAtMs - sentAtMs`). An `offset` counts back
 * from `receivedAtMs` and wins over `timestamp`. Unreadable text silently gives `receivedAtMs`, as every SDK expects. In a
 * historical migration `timestamp` is taken as written: today's clock error says nothing about the clock that wrote it. In
 * both cases, a time that is missing or more than 23 h ahead of `receivedAtMs` becomes `receivedAtMs`.
 * @returns err('timestamp_invalid') for unreadable text in a historical migration only: the event is rejected, because
 * event data cannot be deleted one by one later (docs/wire/service.md §8.1).
 * Source: docs/wire/service.md §2.3 and §4.4; docs/wire/ingestion.md 3; docs/wire/import.md §3.6; vectors.
 */
export function resolveEventTime(input: EventTimeInput): Result<number, 'timestamp_invalid'> {
  const written = input.timestamp === null ? null : parseStorableTime(input.timestamp)
  if (input.historicalMigration) {
    if (input.timestamp === null) return ok(input.receivedAtMs)
    return written === null ? err('timestamp_invalid') : ok(limitFuture(written, input.receivedAtMs))
  }
  const { receivedAtMs, sentAtMs, offsetMs } = input
  let timeMs = receivedAtMs
  if (written !== null) timeMs = sentAtMs === null || input.ignoreSentAt ? written : written - (sentAtMs - receivedAtMs)
  if (offsetMs !== null) timeMs = receivedAtMs - offsetMs
  return ok(boundToStorableTime(timeMs, receivedAtMs))
}

/**
 * Whether a live event got the time of receipt because its own time is unreadable or outside what can be stored.
 * Callers check this only for the few events whose time turned out to be `receivedAtMs`.
 */
export function isTimeUnreadable(input: EventTimeInput): boolean {
  const { timestamp, historicalMigration, offsetMs, sentAtMs, receivedAtMs } = input
  if (timestamp === null || historicalMigration || offsetMs !== null) return false
  const written = parseStorableTime(timestamp)
  if (written === null) return true
  return sentAtMs !== null && !input.ignoreSentAt && written - (sentAtMs - receivedAtMs) < storableFromMs
}

export interface StrictEventTimeInput {
  readonly timestamp: string
  /** The client asks for its own time, unchanged. */
  readonly disableSkewCorrection: boolean
  /** When the client says it sent the request, epoch ms, by its own clock. */
  readonly sentAtMs: number
  readonly receivedAtMs: number
  readonly historicalMigration: boolean
}

/**
 * When an event of protocol v1 happened, in epoch ms (UTC). Its time must be RFC 3339 with a zone. Unlike `resolveEventTime`,
 * a live event's time may lie any distance in the future if its client disables the correction, and unreadable text
 * never becomes the server's time.
 * @returns err('timestamp_invalid') for any other text and for instants that cannot be stored. Source:
 *   docs/wire/ingestion.md 3, 4.1, 4.3; docs/wire/import.md §3.6.
 */
export function resolveStrictEventTime(input: StrictEventTimeInput): Result<number, 'timestamp_invalid'> {
  const written = parseStrictTimestampText(input.timestamp)
  const { receivedAtMs, sentAtMs, historicalMigration } = input
  const isAsWritten = historicalMigration || input.disableSkewCorrection
  if (written === null || written < storableFromMs || (isAsWritten && written >= storableBeforeMs))
    return err('timestamp_invalid')
  if (isAsWritten) return ok(historicalMigration ? limitFuture(written, receivedAtMs) : written)
  return ok(boundToStorableTime(written - (sentAtMs - receivedAtMs), receivedAtMs))
}

/** Bounds a corrected time: neither far ahead of the server's clock nor before what can be stored. */
function boundToStorableTime(timeMs: number, receivedAtMs: number): number {
  if (timeMs < yearZeroMs) return 0
  return timeMs < storableFromMs ? receivedAtMs : limitFuture(timeMs, receivedAtMs)
}

function limitFuture(timeMs: number, receivedAtMs: number): number {
  return timeMs - receivedAtMs > futureToleranceMs ? receivedAtMs : timeMs
}

/** Null for text that is not a time, and for an instant that cannot be stored. Source: ours. */
function parseStorableTime(text: string): number | null {
  const timeMs = parseTimestampText(text)
  return timeMs !== null && timeMs >= storableFromMs && timeMs < storableBeforeMs ? timeMs : null
}
