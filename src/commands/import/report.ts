// `pennon import report FOLDER`: what the rehearsal found, and once it is sent what became of it, for a terminal, as JSON, or as Markdown.

import { readFileSync } from 'node:fs'
import { type FinalReport, finalReportNames, finalSections } from '#importer/send/final-report.ts'
import { reportNames } from '#importer/stages/rehearse.ts'
import { reportSections, type Section } from '#importer/stages/report-sections.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { printable } from '../client/printable.ts'
import { tableLines } from '../client/table.ts'
import { type Terminal, terminalOf } from '../client/terminal.ts'
import { refuse } from '../refuse.ts'
import { readReport } from './job-stages.ts'
import { openJob } from './open-job.ts'

/** As commander gives them. */
export interface ReportOptions {
  readonly json?: boolean
  readonly markdown?: boolean
}

export function showReport(path: string, { json = false, markdown = false }: ReportOptions): void {
  endWithOutput()
  const { folder } = openJob(path)
  const report = readReport(folder)
  if (report === null) refuse(`nothing is rehearsed yet: pennon import run ${path}`)
  const final = folder.readJson<FinalReport>(finalReportNames.json)
  const names = final === null ? reportNames : finalReportNames
  if (json || markdown) {
    process.stdout.write(readFileSync(folder.file(json ? names.json : names.md), 'utf8'))
    return
  }
  const terminal = terminalOf(process.stdout)
  const sections = final === null ? reportSections(report) : finalSections(final)
  const lines = sections.flatMap(section => sectionLines(section, terminal))
  process.stdout.write(`${lines.join('\n')}\nAs a page: ${printable(folder.file(names.html))}\n`)
}

function sectionLines({ title, lines, tables }: Section, terminal: Terminal): string[] {
  return [
    terminal.paint('bold', title),
    ...lines.map(printable),
    ...tables.flatMap(({ caption, columns, rows }) => {
      const shown = columns.map(({ title: heading, isNumber }, index) => ({
        title: heading,
        value: (row: readonly string[]) => row[index]!,
        ...(isNumber ? { align: 'right' as const } : { widthMin: 12 }),
      }))
      return ['', caption, ...tableLines(shown, rows, terminal)]
    }),
    '',
  ]
}
