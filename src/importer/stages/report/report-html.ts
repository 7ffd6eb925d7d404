// Renders a report as a self-contained page for the person who approves it. The chart only repeats a table, for accessibility.

import { printableName } from '#core/printable.ts'
import { chartStyle, renderDayChart } from './day-chart.ts'
import type { DayCount, RehearsalReport } from './rehearsal-report.ts'
import { createReportSections, describeJob, type Section, type Table } from './report-sections.ts'
import type { Sample } from './samples.ts'

const samplesShown = 60

export function renderHtmlReport(report: RehearsalReport, samples: readonly Sample[]): string {
  const title = `Rehearsal of an import from ${report.source}`
  return renderHtmlSections(title, {
    about: describeJob(report),
    sections: createReportSections(report),
    days: report.days,
    end: renderSamples(samples),
  })
}

export interface PageParts {
  /** Lines below the title that identify the job. */
  readonly about: readonly string[]
  readonly sections: readonly Section[]
  /** For the chart in the section `Days`. */
  readonly days: readonly DayCount[]
  /** HTML after the sections. */
  readonly end?: string
}

export function renderHtmlSections(title: string, { about, sections, days, end = '' }: PageParts): string {
  const all = sections.map(each => renderSection(each, each.title === 'Days' ? renderDayChart(days) : ''))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${about.map(line => `<p>${escapeHtml(line)}</p>`).join('\n')}
${all.join('\n')}
${end}
</main>
</body>
</html>
`
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
${chartStyle}
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
${lines.map(line => `<p>${escapeHtml(line)}</p>`).join('\n')}
${figure}
${tables
  .filter(({ rows }) => rows.length > 0)
  .map(renderTable)
  .join('\n')}
</section>`
}

function renderTable({ caption, columns, rows, isProse }: Table): string {
  // Text columns keep a width that fits whole words; on a narrow screen the table scrolls, not the page. Tables of sentences
  // stack their cells there instead. Explicit roles are needed because browsers drop those of rows displayed as blocks.
  const className = (index: number) => (columns[index]!.isNumber ? ' class="n"' : ' class="t"')
  const head = columns
    .map(({ title }, index) => `<th scope="col"${className(index)}>${escapeHtml(title)}</th>`)
    .join('')
  const body = rows.map(row => {
    const cells = row.map((cell, index) =>
      index === 0
        ? `<th scope="row" role="rowheader">${escapeHtml(cell)}</th>`
        : `<td role="cell"${className(index)} data-title="${escapeHtml(columns[index]!.title)}">${escapeHtml(cell)}</td>`,
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
  return text.replaceAll(/[^\n\t]+/g, piece => printableName(piece)).replaceAll(/[&<>"']/g, char => entities[char]!)
}
