// The report as one page that needs nothing else: for a person to read and sign off. Headings, and tables with captions;
// bars only repeat what a table says.

import type { DayCount, RehearsalReport } from './rehearsal-report.ts'
import { number, reportSections, type Section, type Table } from './report-sections.ts'
import type { Sample } from './samples.ts'

const samplesShown = 60
const barsMax = 120
const height = 160
const barWidth = 8

export function reportHtml(report: RehearsalReport, samples: readonly Sample[]): string {
  const title = `Rehearsal of an import from ${report.source}`
  return sectionsHtml(title, reportSections(report), report.days, beforeAndAfter(samples))
}

/** @param days drawn with the section `Days`. @param end HTML after the sections. */
export function sectionsHtml(
  title: string,
  sections: readonly Section[],
  days: readonly DayCount[],
  end: string = '',
): string {
  const all = sections.map(each => section(each, each.title === 'Days' ? dayBars(days) : ''))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
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
svg { max-width: 100%; height: auto; }
svg rect { fill: currentColor; }
`

function section({ title, lines, tables }: Section, figure: string): string {
  return `<section>
<h2>${escaped(title)}</h2>
${lines.map(line => `<p>${escaped(line)}</p>`).join('\n')}
${figure}
${tables.map(table).join('\n')}
</section>`
}

function table({ caption, columns, rows }: Table): string {
  // Texts keep a width at which words stay whole; a narrow screen scrolls the table and not the page.
  const className = (index: number) => (columns[index]!.isNumber ? ' class="n"' : ' class="t"')
  const head = columns.map(({ title }, index) => `<th scope="col"${className(index)}>${escaped(title)}</th>`).join('')
  const body = rows.map(row => {
    const cells = row.map((cell, index) =>
      index === 0 ? `<th scope="row">${escaped(cell)}</th>` : `<td${className(index)}>${escaped(cell)}</td>`,
    )
    return `<tr>${cells.join('')}</tr>`
  })
  return `<div class="wide" role="region" tabindex="0" aria-label="${escaped(caption)}"><table>
<caption>${escaped(caption)}</caption>
<thead><tr>${head}</tr></thead>
<tbody>
${body.join('\n')}
</tbody>
</table></div>`
}

/** A bar for each day, or for as many neighbours as make the chart fit; the table behind it has every day. */
function dayBars(days: readonly DayCount[]): string {
  if (days.length === 0) return ''
  const perBar = Math.ceil(days.length / barsMax)
  const bars = Array.from({ length: Math.ceil(days.length / perBar) }, (_, index) => {
    const own = days.slice(index * perBar, (index + 1) * perBar)
    return { first: own[0]!.day, last: own.at(-1)!.day, count: own.reduce((sum, { count }) => sum + count, 0) }
  })
  const max = Math.max(...bars.map(({ count }) => count))
  const width = bars.length * (barWidth + 2)
  const rects = bars.map(({ first, last, count }, index) => {
    const tall = Math.max(1, Math.round((count / max) * height))
    const name = `${first === last ? first : `${first} to ${last}`}: ${number(count)} events`
    return `<rect x="${index * (barWidth + 2)}" y="${height - tall}" width="${barWidth}" height="${tall}"><title>${name}</title></rect>`
  })
  const label = `Events by day from ${days[0]!.day} to ${days.at(-1)!.day}, at most ${number(max)} in a bar of ${perBar} ${perBar === 1 ? 'day' : 'days with events'}; the table below has every day.`
  return `<figure>
<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(label)}">
${rects.join('\n')}
</svg>
<figcaption>${escaped(label)}</figcaption>
</figure>`
}

function beforeAndAfter(samples: readonly Sample[]): string {
  const shown = firstOfEach(samples).slice(0, samplesShown)
  const articles = shown.map(sample => {
    const after =
      sample.events === undefined
        ? `${sample.of}${sample.field == null ? '' : `, because of ${sample.field}`}${sample.detail === undefined ? '' : `: ${sample.detail}`}`
        : JSON.stringify(sample.events, null, 2)
    return `<details>
<summary>${escaped(sample.of)} (${escaped(sample.object)}, line ${sample.line})</summary>
<h3>Record in the source</h3>
<pre>${escaped(sample.source)}</pre>
<h3>What becomes of it</h3>
<pre>${escaped(after)}</pre>
</details>`
  })
  return `<section>
<h2>Before and after</h2>
<p>One record of each event and reason; samples.jsonl has more of them.</p>
${articles.join('\n')}
</section>`
}

function firstOfEach(samples: readonly Sample[]): readonly Sample[] {
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

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, char => entities[char]!)
}
