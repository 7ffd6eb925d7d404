// What a project used, as it is counted by UTC day of charge.

import { dayMs } from './time.ts'

/** Counts of the live events that are stored, each counted once. */
export interface LiveUsage {
  /** All of them; the next three are parts of it. */
  readonly eventsCharged: number
  readonly exceptions: number
  readonly llmEvents: number
  readonly surveyResponses: number
  /** Recorded sessions: they are no events. */
  readonly recordings: number
}

export interface EventUsage extends LiveUsage {
  /** Outside every quota. */
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

/** `2026-03`, of a day: months are compared as texts. */
export function monthOf(day: string): string {
  return day.slice(0, 7)
}

/** When the UTC day of a time ends, epoch ms. */
export function endOfUtcDay(timeMs: number): number {
  return (Math.floor(timeMs / dayMs) + 1) * dayMs
}
