// Writes the report of a rehearsal to the job's folder as JSON and HTML.

import type { JobFolder } from '#importer/job/job-folder.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { renderHtmlReport } from './report-html.ts'
import type { Sample } from './samples.ts'

export const reportNames = {
  json: 'rehearsal/report.json',
  html: 'rehearsal/report.html',
} as const

export function writeReport(folder: JobFolder, report: RehearsalReport, samples: readonly Sample[]): void {
  folder.write(reportNames.html, renderHtmlReport(report, samples))
  // Written last, since this file marks the stage as done.
  folder.writeJson(reportNames.json, report)
}
