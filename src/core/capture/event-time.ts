// The one place that decides when an event happened. Texts are read by `timestamp-text.ts`; who keeps or answers a
// refused event is the caller's business.

import { err, ok, type Result } from '../result.ts'
import { parseStrictTimestampText, parseTimestampText } from './timestamp-text.ts'

export interface EventTimeInput {
  /** The event's own `timestamp`, as sent; null when it has none. */
  readonly timestamp: string | null
  /** `offset`: ms before the server's clock. */
  readonly offsetMs: number | null
  /** `properties.$ignore_sent_at` is the boolean true. */
  readonly ignoreSentAt: boolean
  /** When the client says it sent the request, epoch ms, by its own clock. */
  readonly sentAtMs: number | null
  readonly receivedAtMs: number
  readonly historicalMigration: boolean
}

const futureToleranceMs = 23 * 60 * 60 * 1000
/** Instants outside the years 1900–2299 cannot be stored and count as unreadable. Source: ours. */
const readableFromMs = Date.UTC(1900, 0, 1)
const readableBeforeMs = Date.UTC(2300, 0, 1)
const yearZeroMs = Date.parse('0000-01-01T00:00:00Z')

/**
 * When an event happened, in epoch ms (UTC).
 *
 * A live event's `timestamp` is corrected by the client's clock error (`receivedAtMs - sentAtMs`), an `offset` counts
 * back from `receivedAtMs` and wins; text that cannot be read gives `receivedAtMs`, silently, as every SDK expects. An
 * event of a historical migration is taken as written: its clock error belongs to the day it was exported. In both,
 * more than 23 h ahead of `receivedAtMs` becomes `receivedAtMs`, and so does a missing time.
 * @returns err('timestamp_invalid') for unreadable text in a historical migration only: the event is rejected, because
 *   event data cannot be deleted one by one later (docs/wire/service.md §8.1).
 * Source: docs/wire/service.md §2.3 and §4.4; docs/wire/ingestion.md 3; docs/wire/import.md §3.6; vectors.
 */
export function eventTime(input: EventTimeInput): Result<number, 'timestamp_invalid'> {
  const written = input.timestamp === null ? null : readableTime(input.timestamp)
  if (input.historicalMigration) {
    if (input.timestamp === null) return ok(input.receivedAtMs)
    return written === null ? err('timestamp_invalid') : ok(notFarAhead(written, input.receivedAtMs))
  }
  const { receivedAtMs, sentAtMs, offsetMs } = input
  let timeMs = receivedAtMs
  if (written !== null) timeMs = sentAtMs === null || input.ignoreSentAt ? written : written - (sentAtMs - receivedAtMs)
  if (offsetMs !== null) timeMs = receivedAtMs - offsetMs
  return ok(storableTime(timeMs, receivedAtMs))
}

/**
 * Whether a live event has the time of receipt because its own cannot be read, or lies outside what can be stored. Asked
 * of the few events whose time turned out to be `receivedAtMs`.
 */
export function isTimeUnreadable(input: EventTimeInput): boolean {
  const { timestamp, historicalMigration, offsetMs, sentAtMs, receivedAtMs } = input
  if (timestamp === null || historicalMigration || offsetMs !== null) return false
  const written = readableTime(timestamp)
  if (written === null) return true
  return sentAtMs !== null && !input.ignoreSentAt && written - (sentAtMs - receivedAtMs) < readableFromMs
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
 * The same for protocol v1, where every event has a time in RFC 3339, with its zone. What differs from `eventTime`: a
 * client that disables the correction is believed about the future too, and text that cannot be read never becomes the
 * server's time.
 * @returns err('timestamp_invalid') for any other text, and for instants that cannot be stored.
 * Source: docs/wire/ingestion.md 3, 4.1, 4.3; docs/wire/import.md §3.6.
 */
export function strictEventTime(input: StrictEventTimeInput): Result<number, 'timestamp_invalid'> {
  const written = parseStrictTimestampText(input.timestamp)
  const { receivedAtMs, sentAtMs, historicalMigration } = input
  const isAsWritten = historicalMigration || input.disableSkewCorrection
  if (written === null || written < readableFromMs || (isAsWritten && written >= readableBeforeMs))
    return err('timestamp_invalid')
  if (isAsWritten) return ok(historicalMigration ? notFarAhead(written, receivedAtMs) : written)
  return ok(storableTime(written - (sentAtMs - receivedAtMs), receivedAtMs))
}

/** What a correction made of a time: neither far ahead of the server's clock nor before what can be stored. */
function storableTime(timeMs: number, receivedAtMs: number): number {
  if (timeMs < yearZeroMs) return 0
  return timeMs < readableFromMs ? receivedAtMs : notFarAhead(timeMs, receivedAtMs)
}

function notFarAhead(timeMs: number, receivedAtMs: number): number {
  return timeMs - receivedAtMs > futureToleranceMs ? receivedAtMs : timeMs
}

function readableTime(text: string): number | null {
  const timeMs = parseTimestampText(text)
  return timeMs !== null && timeMs >= readableFromMs && timeMs < readableBeforeMs ? timeMs : null
}
