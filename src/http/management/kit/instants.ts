// Times in query strings: what date filters of flags read, in the project's zone.

import { parseDateFilter } from '#core/flags/match/match-date.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalid } from './answers.ts'

/**
 * Epoch ms of an RFC 3339 instant, a date, a wall time of the zone, or a span before now such as `-7d`.
 * Source: docs/wire/evaluation.md 5.9.2.
 */
export function readInstant(
  text: string,
  name: string,
  zone: { readonly timezone: string; readonly nowMs: number },
): Result<number, WireError> {
  const filter = parseDateFilter(text, zone.timezone)
  const instant = filter === null || filter.kind === 'fixed' ? filter?.instant : filter.at(zone.nowMs)
  if (instant === undefined || instant === null) {
    return err(invalid(name, 'Must be a time such as 2026-01-31T12:00:00Z, a date, or a span such as -7d.'))
  }
  return ok(Number(instant / 1_000_000n))
}

/** What the event store can hold: outside the years 1900–2299 there is no event. */
const earliestMs = Date.UTC(1900, 0, 1)
const latestMs = Date.UTC(2300, 0, 1) - 1

/** `-7d` means another instant on the next page: what bounds meant on this one, for the address of the next. */
export function pinnedBounds(afterMs: number | undefined, beforeMs: number | undefined): Record<string, string> {
  return {
    ...(afterMs === undefined ? {} : { after: new Date(afterMs).toISOString() }),
    ...(beforeMs === undefined ? {} : { before: new Date(beforeMs).toISOString() }),
  }
}

/** An exclusive bound of a search; undefined when it bounds nothing, because it is absent or beyond every event. */
export function readBound(
  text: string | undefined,
  name: 'after' | 'before',
  zone: { readonly timezone: string; readonly nowMs: number },
): Result<number | undefined, WireError> {
  if (text === undefined) return ok(undefined)
  const instant = readInstant(text, name, zone)
  if (!instant.ok) return instant
  const boundsNothing = name === 'after' ? instant.value < earliestMs : instant.value > latestMs
  return ok(boundsNothing ? undefined : Math.min(Math.max(instant.value, earliestMs), latestMs))
}
