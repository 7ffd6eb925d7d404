// Draws events by day on a time axis, so that a day without events shows as a gap. Labels are placed beside the drawing, not
// in it, so that they keep their size on a phone, where the drawing shrinks.

import type { DayCount } from './rehearsal-report.ts'
import { formatNumber } from './report-sections.ts'

const dayMs = 86_400_000
/** As many bars as are distinguishable on a wide screen; with more days, a bar is a week. */
const dailyBarsMax = 1_500
const height = 160
const barWidth = 10
const gapsNamed = 5

export const chartStyle = `
.chart { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0 .5rem; margin: 1rem 0; font-size: .875rem; }
.chart figcaption { grid-column: 1 / -1; font-size: 1rem; margin-bottom: .5rem; }
.chart svg { width: 100%; height: 10rem; border-bottom: 1px solid; }
.chart rect { fill: currentColor; }
.chart .gap { fill: #c33; }
.chart .y, .chart .x { display: flex; justify-content: space-between; }
.chart .y { flex-direction: column; text-align: right; font-variant-numeric: tabular-nums; }
.chart .x { grid-column: 2; }
.chart .what { grid-column: 2; text-align: center; }
`

interface Bar {
  readonly first: number
  readonly last: number
  readonly count: number
}

/** @param days with events, ascending. @returns an empty text if there are none. */
export function renderDayChart(days: readonly DayCount[]): string {
  if (days.length === 0) return ''
  const [first, last] = [toDayNumber(days[0]!.day), toDayNumber(days.at(-1)!.day)]
  const bars = createBars(days, first, last)
  const most = bars.reduce((best, bar) => (bar.count > best.count ? bar : best))
  const gaps = bars.filter(({ count }) => count === 0)
  const unit = most.first === most.last ? 'day' : 'week'
  const width = bars.length * barWidth
  const label = `Events by ${unit}, ${formatDayNumber(first)} to ${formatDayNumber(last)}`
  return `<figure class="chart">
<figcaption>${label}. Most are on ${formatBarDays(most)}: ${formatNumber(most.count)}. ${describeGaps(gaps, unit)}</figcaption>
<div class="y"><span>${formatNumber(most.count)}</span><span>Events</span><span>0</span></div>
<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}; the table below has every day.">
${bars.map((bar, index) => renderBar(bar, index, most.count)).join('\n')}
</svg>
<div class="x">${chooseAxisDays(first, last)
    .map(day => `<span>${formatDayNumber(day)}</span>`)
    .join('')}</div>
<div class="what">Day (UTC)</div>
</figure>`
}

function createBars(days: readonly DayCount[], first: number, last: number): readonly Bar[] {
  const perBar = last - first < dailyBarsMax ? 1 : 7
  const counts = new Array<number>(Math.floor((last - first) / perBar) + 1).fill(0)
  for (const { day, count } of days) counts[Math.floor((toDayNumber(day) - first) / perBar)]! += count
  return counts.map((count, index) => {
    const begin = first + index * perBar
    return { first: begin, last: Math.min(last, begin + perBar - 1), count }
  })
}

/** Marks a day without events on the axis, since a missing bar among a thousand is easily overlooked. */
function renderBar(bar: Bar, index: number, max: number): string {
  const { count } = bar
  const tall = count === 0 ? 6 : Math.max(1, Math.round((count / max) * height))
  const [x, wide] = count === 0 ? [index * barWidth, barWidth] : [index * barWidth + 1, barWidth - 2]
  const title = `${formatBarDays(bar)}: ${count === 0 ? 'no events' : `${formatNumber(count)} events`}`
  return `<rect x="${x}" y="${height - tall}" width="${wide}" height="${tall}"${count === 0 ? ' class="gap"' : ''}><title>${title}</title></rect>`
}

function describeGaps(gaps: readonly Bar[], unit: string): string {
  if (gaps.length === 0) return `There is no ${unit} without events between them.`
  const more = gaps.length > gapsNamed ? `, and ${formatNumber(gaps.length - gapsNamed)} more` : ''
  const [units, verb] = gaps.length === 1 ? [unit, 'has'] : [`${unit}s`, 'have']
  return `${formatNumber(gaps.length)} ${units} between them ${verb} no events, marked red: ${gaps.slice(0, gapsNamed).map(formatBarDays).join(', ')}${more}.`
}

/** The first and last day, and the middle if there is one. */
function chooseAxisDays(first: number, last: number): readonly number[] {
  const middle = Math.floor((first + last) / 2)
  return [...new Set([first, middle, last])]
}

function formatBarDays({ first, last }: Bar): string {
  return first === last ? formatDayNumber(first) : `${formatDayNumber(first)} to ${formatDayNumber(last)}`
}

function toDayNumber(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / dayMs
}

function formatDayNumber(number: number): string {
  return new Date(number * dayMs).toISOString().slice(0, 10)
}
