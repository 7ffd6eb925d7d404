// Names buckets for a chart, as PostHog does: `7-Mar-2026`, `7-Mar 13:00`, `1–7 Mar`, `Mar 2026`.

import type { Buckets } from '#core/insights/buckets.ts'

const monthNames = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** @param timezone the IANA name that the buckets were made in. */
export function bucketLabels({ interval, edges, days }: Buckets, timezone: string): string[] {
  switch (interval) {
    case 'hour':
      return days.map(day => `${dayAndMonth(Temporal.PlainDate.from(day.slice(0, 10)))} ${day.slice(11, 16)}`)
    case 'day':
      return days.map(day => fullDate(Temporal.PlainDate.from(day)))
    case 'week':
      return days.map((_, index) => weekLabel(dateOf(edges[index]!, timezone), dateOf(edges[index + 1]! - 1, timezone)))
    case 'month':
      return days.map(day => `${monthNames[Number(day.slice(5, 7)) - 1]} ${day.slice(0, 4)}`)
  }
}

function weekLabel(first: Temporal.PlainDate, last: Temporal.PlainDate): string {
  if (first.equals(last)) return fullDate(first)
  if (first.year !== last.year) return `${fullDate(first)} – ${fullDate(last)}`
  if (first.month !== last.month) return `${dayAndMonth(first)} – ${dayAndMonth(last)}`
  return `${first.day}–${last.day} ${monthNames[last.month - 1]}`
}

function dateOf(timeMs: number, timezone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(timezone).toPlainDate()
}

function dayAndMonth({ day, month }: Temporal.PlainDate): string {
  return `${day}-${monthNames[month - 1]}`
}

function fullDate(date: Temporal.PlainDate): string {
  return `${dayAndMonth(date)}-${date.year}`
}
