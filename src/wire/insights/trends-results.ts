// The answer to a TrendsQuery, in PostHog's shape.

import Type, { type Static } from 'typebox'
import type { Buckets } from '#core/insights/buckets.ts'
import type { TrendBreakdowns, TrendMath, TrendSeries, TrendsQuery } from '#core/insights/trends-query.ts'
import { completeSchema } from './sql-answer.ts'

/** One line of the chart: its figures, and the series, period and value that they belong to. */
export interface TrendResult {
  readonly series: TrendSeries
  readonly order: number
  readonly buckets: Buckets
  readonly data: readonly number[]
  readonly period: 'current' | 'previous' | null
  /** A text per breakdown, '' for no value; `other` for all values without their own line; null without breakdowns. */
  readonly value: readonly string[] | 'other' | null
  readonly cohort?: { readonly id: number; readonly name: string } | null
}

const otherValue = '$$_posthog_breakdown_other_$$'
const noValue = '$$_posthog_breakdown_null_$$'
const shownNames = new Map([
  [otherValue, 'Other (i.e. all remaining values)'],
  [noValue, 'None (i.e. no value)'],
])

export const trendResultSchema = Type.Object({
  label: Type.String({ description: 'Event name, with the breakdown value if any.' }),
  count: Type.Number({ description: 'Sum of `data`.' }),
  data: Type.Array(Type.Number(), { description: 'One value per bucket.' }),
  days: Type.Array(Type.String(), { description: 'Start of each bucket (day or hour), in the time zone.' }),
  labels: Type.Array(Type.String(), { description: 'Human-readable labels of the buckets.' }),
  breakdown_value: Type.Optional(
    Type.Unknown({
      description: `A string, a list of strings for \`breakdowns\`, or a cohort id; ${otherValue}, ${noValue}.`,
    }),
  ),
  compare: Type.Optional(Type.Literal(true)),
  compare_label: Type.Optional(Type.Union([Type.Literal('current'), Type.Literal('previous')])),
  action: Type.Unknown({ description: 'The series definition.' }),
})
export const trendsAnswerSchema = Type.Object(
  {
    results: Type.Array(trendResultSchema, { description: 'Results, series by series.' }),
    timezone: Type.String({ description: 'IANA time zone of `days` and `labels`.' }),
    is_cached: Type.Literal(false),
    complete: completeSchema,
  },
  { title: 'TrendsQuery' },
)
export type TrendResultJson = Static<typeof trendResultSchema>

/**
 * @param timezone the IANA name that the buckets were made in.
 * @param query if it has several series, each label names its series.
 */
export function encodeTrendResult(
  result: TrendResult,
  timezone: string,
  query: Pick<TrendsQuery, 'series' | 'breakdowns' | 'isCumulative'>,
): TrendResultJson {
  const { series, order, buckets, data, period } = result
  const days = [...buckets.days]
  const name = series.event ?? 'All events'
  const breakdown = toBreakdown(result, query.breakdowns)
  return {
    label: breakdown === null ? name : query.series.length > 1 ? `${name} - ${breakdown.label}` : breakdown.label,
    count: data.reduce((sum, value) => sum + value, 0),
    data: query.isCumulative ? cumulate(data) : [...data],
    days,
    labels: formatBucketLabels(buckets, timezone),
    ...(breakdown !== null && { breakdown_value: breakdown.value }),
    ...(period !== null && { compare: true, compare_label: period }),
    action: {
      ...{ id: series.event, type: 'events', order, name, custom_name: series.customName },
      ...encodeMath(series.math),
      ...{ math_hogql: null, days, properties: {} },
    },
  }
}

function cumulate(data: readonly number[]): number[] {
  let sum = 0
  return data.map(figure => {
    sum += figure
    return sum
  })
}

function toBreakdown(
  { value, cohort }: TrendResult,
  breakdowns: TrendBreakdowns | null,
): { value: unknown; label: string } | null {
  if (cohort !== undefined) {
    return cohort === null ? { value: 'all', label: 'all users' } : { value: cohort.id, label: cohort.name }
  }
  if (value === null || breakdowns?.kind !== 'properties') return null
  const { by, isList } = breakdowns
  if (value === 'other')
    return { value: isList ? by.map(() => otherValue) : otherValue, label: shownNames.get(otherValue)! }
  const values = value.map(text => (text === '' ? noValue : text))
  const label = values.map(text => shownNames.get(text) ?? text).join('::')
  return { value: isList ? values : values[0], label }
}

function encodeMath(math: TrendMath) {
  const names = { events: 'total', persons: 'dau', groups: 'unique_group' }
  return {
    math: math.kind === 'numbers' ? math.aggregate : names[math.kind],
    math_property: math.kind === 'numbers' ? math.property : null,
    math_group_type_index: math.kind === 'groups' ? math.groupTypeIndex : null,
  }
}

const monthNames = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/**
 * Names buckets for a chart, as PostHog does: `7-Mar-2026`, `7-Mar 13:00`, `1–7 Mar`, `Mar 2026`.
 * @param timezone the IANA name that the buckets were made in.
 */
function formatBucketLabels({ interval, edges, days }: Buckets, timezone: string): string[] {
  switch (interval) {
    case 'hour':
      return days.map(day => `${formatDayAndMonth(Temporal.PlainDate.from(day.slice(0, 10)))} ${day.slice(11, 16)}`)
    case 'day':
      return days.map(day => formatDate(Temporal.PlainDate.from(day)))
    case 'week':
      return days.map((_, index) =>
        formatWeek(toLocalDate(edges[index]!, timezone), toLocalDate(edges[index + 1]! - 1, timezone)),
      )
    case 'month':
      return days.map(day => `${monthNames[Number(day.slice(5, 7)) - 1]} ${day.slice(0, 4)}`)
  }
}

function formatWeek(first: Temporal.PlainDate, last: Temporal.PlainDate): string {
  if (first.equals(last)) return formatDate(first)
  if (first.year !== last.year) return `${formatDate(first)} – ${formatDate(last)}`
  if (first.month !== last.month) return `${formatDayAndMonth(first)} – ${formatDayAndMonth(last)}`
  return `${first.day}–${last.day} ${monthNames[last.month - 1]}`
}

function toLocalDate(timeMs: number, timezone: string): Temporal.PlainDate {
  return Temporal.Instant.fromEpochMilliseconds(timeMs).toZonedDateTimeISO(timezone).toPlainDate()
}

function formatDayAndMonth({ day, month }: Temporal.PlainDate): string {
  return `${day}-${monthNames[month - 1]}`
}

function formatDate(date: Temporal.PlainDate): string {
  return `${formatDayAndMonth(date)}-${date.year}`
}
