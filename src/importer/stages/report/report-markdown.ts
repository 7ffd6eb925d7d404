import { printableName } from '#core/printable.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { createReportSections, describeJob, type Section, type Table } from './report-sections.ts'

export function renderMarkdownReport(report: RehearsalReport): string {
  return renderMarkdownSections(
    `Rehearsal of an import from ${report.source}`,
    describeJob(report),
    createReportSections(report),
  )
}

/** @param about lines that identify the job. */
export function renderMarkdownSections(title: string, about: readonly string[], sections: readonly Section[]): string {
  return `${[`# ${title}`, ...about.map(escapeMarkdown), ...sections.map(renderSection)].join('\n\n')}\n`
}

function renderSection({ title, lines, tables }: Section): string {
  return [`## ${title}`, ...lines.map(escapeMarkdown), ...tables.map(renderTable)].join('\n\n')
}

function renderTable({ caption, columns, rows }: Table): string {
  const formatLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    `**${caption}**\n`,
    formatLine(columns.map(({ title }) => title)),
    formatLine(columns.map(({ isNumber }) => (isNumber ? '---:' : '---'))),
    ...rows.map(row => formatLine(row.map(escapeMarkdown))),
  ].join('\n')
}

/** Keeps foreign text from ending a table cell, becoming markup or moving the cursor of a terminal. */
function escapeMarkdown(text: string): string {
  return printableName(text.replaceAll(/\s+/g, ' ')).replaceAll(/[\\`*_[\]<>|#]/g, '\\$&')
}
