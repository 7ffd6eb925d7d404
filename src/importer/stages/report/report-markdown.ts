import { printableName } from '#core/printable.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { aboutLines, reportSections, type Section, type Table } from './report-sections.ts'

export function reportMarkdown(report: RehearsalReport): string {
  return sectionsMarkdown(`Rehearsal of an import from ${report.source}`, aboutLines(report), reportSections(report))
}

/** @param about which job it is of. */
export function sectionsMarkdown(title: string, about: readonly string[], sections: readonly Section[]): string {
  return `${[`# ${title}`, ...about.map(escaped), ...sections.map(section)].join('\n\n')}\n`
}

function section({ title, lines, tables }: Section): string {
  return [`## ${title}`, ...lines.map(escaped), ...tables.map(table)].join('\n\n')
}

function table({ caption, columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [
    `**${caption}**\n`,
    line(columns.map(({ title }) => title)),
    line(columns.map(({ isNumber }) => (isNumber ? '---:' : '---'))),
    ...rows.map(row => line(row.map(escaped))),
  ].join('\n')
}

/** Texts of other people must neither end a cell, nor become markup, nor move the cursor of a terminal that shows them. */
function escaped(text: string): string {
  return printableName(text.replaceAll(/\s+/g, ' ')).replaceAll(/[\\`*_[\]<>|#]/g, '\\$&')
}
