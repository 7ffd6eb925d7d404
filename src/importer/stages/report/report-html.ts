// Renders a report as a self-contained page for the person who approves it.

import { formatCount, truncateList } from '#core/format-count.ts'
import { toPrintableName } from '#core/printable.ts'
import { dayMs, parseDayNumber } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { formatNumber } from './format-figures.ts'
import { type DayCount, type ImportReport, reportNames } from './import-report.ts'
import { createReportSections, describeJob, type Section, type Table } from './report-sections.ts'
import type { Sample } from './samples.ts'

const samplesShown = 60

export function writeReport(folder: JobFolder, report: ImportReport, samples: readonly Sample[]): void {
  folder.write(reportNames.html, renderReport(report, samples))
  // Written last, since this file marks the rehearsal as done.
  folder.writeJson(reportNames.json, report)
}

export function renderReport(report: ImportReport, samples: readonly Sample[]): string {
  const title = escapeHtml(`Import from ${report.source}`)
  const sections = createReportSections(report)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${renderLines(describeJob(report))}
${sections.map(each => renderSection(each, each.title === 'Days' ? renderDayChart(report.days) : '')).join('\n')}
${renderSamples(samples)}
</main>
</body>
</html>
`
}

function renderLines(lines: readonly string[]): string {
  return lines.map(line => `<p>${escapeHtml(line)}</p>`).join('\n')
}

const style = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
main { max-width: 64rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; min-width: min(100%, 24rem); }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th[scope=row], .t { min-width: 12rem; }
figure { margin: 1rem 0; }
th, td { border-bottom: 1px solid #8888; padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { overflow: auto; max-height: 20rem; border: 1px solid #8888; padding: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.chart { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0 .5rem; margin: 1rem 0; font-size: .875rem; }
.chart figcaption { grid-column: 1 / -1; font-size: 1rem; margin-bottom: .5rem; }
.chart svg { width: 100%; height: 10rem; border-bottom: 1px solid; }
.chart rect { fill: currentColor; }
.chart .gap { fill: #c33; }
.chart .y, .chart .x { display: flex; justify-content: space-between; }
.chart .y { flex-direction: column; text-align: right; font-variant-numeric: tabular-nums; }
.chart .x { grid-column: 2; }
.chart .what { grid-column: 2; text-align: center; }
@media (max-width: 40rem) {
.prose thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
.prose tr, .prose th[scope=row], .prose td { display: block; min-width: 0; text-align: left; }
.prose tr { border-bottom: 1px solid #8888; padding: .25rem 0; }
.prose th[scope=row], .prose td { border: 0; padding: 0; white-space: normal; }
.prose .n::before { content: attr(data-title) ": "; }
}
`

function renderSection({ title, lines, tables }: Section, figure: string): string {
  return `<section>
<h2>${escapeHtml(title)}</h2>
${renderLines(lines)}
${figure}
${tables.map(renderTable).join('\n')}
</section>`
}

function renderTable({ caption, columns, rows, isProse }: Table): string {
  // Text columns keep a width that fits whole words; on a narrow screen the table scrolls, not the page. Tables of
  // sentences stack their cells there instead. Explicit roles are needed because browsers drop the implicit roles of rows
  // displayed as blocks.
  const renderClass = (index: number) => (columns[index]!.isNumber ? ' class="n"' : ' class="t"')
  const head = columns
    .map(({ title }, index) => `<th scope="col"${renderClass(index)}>${escapeHtml(title)}</th>`)
    .join('')
  const body = rows.map(row => {
    const cells = row.map((cell, index) =>
      index === 0
        ? `<th scope="row" role="rowheader">${escapeHtml(cell)}</th>`
        : `<td role="cell"${renderClass(index)} data-title="${escapeHtml(columns[index]!.title)}">${escapeHtml(cell)}</td>`,
    )
    return `<tr role="row">${cells.join('')}</tr>`
  })
  return `<div class="wide" role="region" tabindex="0" aria-label="${escapeHtml(caption)}"><table role="table"${isProse === true ? ' class="prose"' : ''}>
<caption>${escapeHtml(caption)}</caption>
<thead><tr>${head}</tr></thead>
<tbody>
${body.join('\n')}
</tbody>
</table></div>`
}

const chartHeight = 160
const barWidth = 10

/**
 * Draws events by day on a time axis, so that a day without events shows as a gap. The chart only repeats a table, for
 * accessibility. Labels are next to the drawing, so that they keep their size on a phone, where the drawing shrinks.
 * @param days with events, ascending. @returns an empty text if there are none.
 */
export function renderDayChart(days: readonly DayCount[]): string {
  if (days.length === 0) return ''
  const [first, last] = [parseDayNumber(days[0]!.day), parseDayNumber(days.at(-1)!.day)]
  const counts = new Map(days.map(({ day, count }) => [day, count]))
  const all = Array.from({ length: last - first + 1 }, (_, index) => utcDay((first + index) * dayMs))
  const most = days.reduce((best, day) => (day.count > best.count ? day : best))
  const bars = all.map((day, index) => renderBar(day, index, counts.get(day) ?? 0, most.count))
  const label = `Events by day, ${all[0]} to ${all.at(-1)}`
  const axis = [...new Set([first, Math.floor((first + last) / 2), last])]
  return `<figure class="chart">
<figcaption>${label}. Most are on ${most.day}: ${formatNumber(most.count)}. ${describeGaps(all.filter(day => !counts.has(day)))}</figcaption>
<div class="y"><span>${formatNumber(most.count)}</span><span>Events</span><span>0</span></div>
<svg viewBox="0 0 ${all.length * barWidth} ${chartHeight}" preserveAspectRatio="none" role="img" aria-label="${label}; the table below has every day.">
${bars.join('\n')}
</svg>
<div class="x">${axis.map(day => `<span>${utcDay(day * dayMs)}</span>`).join('')}</div>
<div class="what">Day (UTC)</div>
</figure>`
}

/** The bar of a day, or a mark for a day without events, since a missing bar among a thousand is easily overlooked. */
function renderBar(day: string, index: number, count: number, max: number): string {
  const isGap = count === 0
  const tall = isGap ? 6 : Math.max(1, Math.round((count / max) * chartHeight))
  const [x, wide] = isGap ? [index * barWidth, barWidth] : [index * barWidth + 1, barWidth - 2]
  return `<rect x="${x}" y="${chartHeight - tall}" width="${wide}" height="${tall}"${isGap ? ' class="gap"' : ''}><title>${day}: ${isGap ? 'no events' : formatCount(count, 'event')}</title></rect>`
}

function describeGaps(gaps: readonly string[]): string {
  if (gaps.length === 0) return 'There is no day without events between them.'
  return `${formatCount(gaps.length, 'day')} between them without events, marked red: ${truncateList(gaps, 5).join(', ')}.`
}

function renderSamples(samples: readonly Sample[]): string {
  const shown = pickFirstOfEachKind(samples).slice(0, samplesShown)
  const articles = shown.map(sample => {
    const after =
      sample.events === undefined
        ? `${sample.of}${sample.field == null ? '' : `, because of ${sample.field}`}${sample.detail === undefined ? '' : `: ${sample.detail}`}`
        : JSON.stringify(sample.events, null, 2)
    return `<details>
<summary>${escapeHtml(sample.of)} (${escapeHtml(sample.object)}, line ${sample.line})</summary>
<h3>Record in the source</h3>
<pre>${escapeHtml(sample.source)}</pre>
<h3>Result</h3>
<pre>${escapeHtml(after)}</pre>
</details>`
  })
  return `<section>
<h2>Before and after</h2>
<p>One record for each event and reason; samples.jsonl has more.</p>
${articles.join('\n')}
</section>`
}

function pickFirstOfEachKind(samples: readonly Sample[]): readonly Sample[] {
  const seen = new Set<string>()
  return samples.filter(({ of }) => !seen.has(of) && seen.add(of))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Line breaks and tabs are kept for `pre`; other control and bidirectional characters are shown as escapes. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[^\n\t]+/g, piece => toPrintableName(piece)).replaceAll(/[&<>"']/g, char => entities[char]!)
}
