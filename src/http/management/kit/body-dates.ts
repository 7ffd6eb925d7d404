// Reads the start and end of surveys and experiments from bodies.

import type { Project } from '#core/project.ts'
import { ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { WireError } from '#wire/wire-error.ts'
import { readInstant } from './instants.ts'

export interface BodyDates {
  readonly startDateMs?: number | null
  readonly endDateMs?: number | null
}

/** Returns the dates that the body sets: a date that the body omits is absent, and null removes the stored date. */
export function readBodyDates(
  body: { readonly start_date?: string | null | undefined; readonly end_date?: string | null | undefined },
  project: Project,
  clock: Clock,
): Result<BodyDates, WireError> {
  const zone = { timezone: project.timezone, nowMs: clock.nowMs() }
  const dates: { startDateMs?: number | null; endDateMs?: number | null } = {}
  for (const [name, field] of [
    ['start_date', 'startDateMs'],
    ['end_date', 'endDateMs'],
  ] as const) {
    const text = body[name]
    if (text === undefined) continue
    if (text === null) {
      dates[field] = null
      continue
    }
    const read = readInstant(text, name, zone)
    if (!read.ok) return read
    dates[field] = read.value
  }
  return ok(dates)
}
