// Times in query strings, in the same forms as in date filters of flags, in the project's time zone.

import { storableBeforeMs, storableFromMs } from '#core/events/storable-time.ts'
import { parseDateFilter } from '#core/flags/match/match-date.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidError } from './answers.ts'
import { textParam } from './query-params.ts'

/** The context for times without a zone and for spans. */
export interface Zone {
  readonly timezone: string
  readonly nowMs: number
}

/**
 * Epoch ms of an RFC 3339 instant, a date, a wall time in the zone, or a span before now such as `-7d`.
 * Source: docs/wire/evaluation.md 5.9.2.
 */
export function readInstant(text: string, name: string, zone: Zone): Result<number, WireError> {
  const filter = parseDateFilter(text, zone.timezone)
  const instant = filter === null || filter.kind === 'fixed' ? filter?.instant : filter.at(zone.nowMs)
  if (instant === undefined || instant === null) {
    return err(createInvalidError(name, 'Must be a time such as 2026-01-31T12:00:00Z, a date, or a span such as -7d.'))
  }
  return ok(Number(instant / 1_000_000n))
}

/**
 * The query parameters `after` and `before` of a list.
 * @param what names the rows in the descriptions.
 * @param note is appended to the description of `after`.
 */
export function timeBoundParams(what: string, note = '') {
  const forms = 'ISO 8601 time, date in the project’s time zone, or a span such as -7d; exclusive.'
  return {
    after: textParam(`Only ${what} after this time. ${forms}${note}`),
    before: textParam(`Only ${what} before this time. ${forms}`),
  }
}

/** The latest instant that can be stored, so no event is later. */
const lastMs = storableBeforeMs - 1

/** Exclusive bounds of a search, epoch ms. */
export interface TimeBounds {
  readonly afterMs?: number
  readonly beforeMs?: number
}

/**
 * Leaves out a bound that is absent or beyond every event.
 * @param prefix prefix of the names in errors, for parameters that are part of a body.
 */
export function readTimeBounds(
  written: { readonly after?: string | undefined; readonly before?: string | undefined },
  zone: Zone,
  prefix = '',
): Result<TimeBounds, WireError> {
  const after = written.after === undefined ? null : readInstant(written.after, `${prefix}after`, zone)
  if (after?.ok === false) return after
  const before = written.before === undefined ? null : readInstant(written.before, `${prefix}before`, zone)
  if (before?.ok === false) return before
  return ok({
    ...(after !== null && after.value >= storableFromMs && { afterMs: Math.min(after.value, lastMs) }),
    ...(before !== null && before.value <= lastMs && { beforeMs: Math.max(before.value, storableFromMs) }),
  })
}

/**
 * Writes the bounds as instants for the address of the next page, because `-7d` would mean another instant in a later
 * request.
 */
export function encodeTimeBoundParams({ afterMs, beforeMs }: TimeBounds): Record<string, string> {
  return {
    ...(afterMs === undefined ? {} : { after: new Date(afterMs).toISOString() }),
    ...(beforeMs === undefined ? {} : { before: new Date(beforeMs).toISOString() }),
  }
}
