// A project's usage, counted by the UTC day on which it is charged.

import { dayMs } from './time.ts'

/** Counts of stored live events; an event that was sent repeatedly counts once. */
export interface LiveUsage {
  /** All live events; the next three counts are parts of this one. */
  readonly eventsCharged: number
  readonly exceptions: number
  readonly llmEvents: number
  readonly surveyResponses: number
  /** Recorded sessions, which are not events. */
  readonly recordings: number
}

export interface EventUsage extends LiveUsage {
  /** No quota applies to imported events. */
  readonly eventsImported: number
}

export const noEventUsage: EventUsage = {
  eventsCharged: 0,
  exceptions: 0,
  llmEvents: 0,
  surveyResponses: 0,
  recordings: 0,
  eventsImported: 0,
}

/** `2026-03-08`. */
export function utcDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}

/** The month of a day, such as `2026-03`; months are compared as texts. */
export function monthOf(day: string): string {
  return day.slice(0, 7)
}

/** When the UTC day of a time ends, epoch ms. */
export function endOfUtcDay(timeMs: number): number {
  return (Math.floor(timeMs / dayMs) + 1) * dayMs
}
