import { printableName } from '#core/printable.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { aboutLines, reportSections, type Section, type Table } from './report-sections.ts'

export function reportMarkdown(report: RehearsalReport): string {
  return sectionsMarkdown(`Rehearsal of an import from ${report.source}`, aboutLines(report), reportSections(report))
}

/** @param about lines that identify the job. */
export function sectionsMarkdown(title: string, about: readonly string[], sections: readonly Section[]): string {
  return `${[`# ${title}`, ...about.map(escapeMarkdown), ...sections.map(section)].join('\n\n')}\n`
}

function section({ title, lines, tables }: Section): string {
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
