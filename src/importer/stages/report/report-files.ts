// The report of a rehearsal in its three forms, in the folder of the job.

import type { JobFolder } from '#importer/job/job-folder.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { reportHtml } from './report-html.ts'
import { reportMarkdown } from './report-markdown.ts'
import type { Sample } from './samples.ts'

export const reportNames = {
  json: 'rehearsal/report.json',
  md: 'rehearsal/report.md',
  html: 'rehearsal/report.html',
} as const

export function writeReport(folder: JobFolder, report: RehearsalReport, samples: readonly Sample[]): void {
  folder.write(reportNames.md, reportMarkdown(report))
  folder.write(reportNames.html, reportHtml(report, samples))
  // The last one: with it the stage is done.
  folder.writeJson(reportNames.json, report)
}
