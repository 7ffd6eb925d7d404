import { formatCount } from '#core/format-count.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { formatDuration } from '#importer/stages/report/report-sections.ts'
import { rowsErased } from '#importer/verify/erased-rows.ts'
import { describeRepaired } from '#importer/verify/final-pages.ts'
import { type FinalReport, finalReportNames } from '#importer/verify/final-report.ts'
import { formatNote } from '#importer/verify/note-messages.ts'
import type { Job } from '../job/open-job.ts'
import { nextLine, quotePath } from '../messages/next-line.ts'
import { printLines } from '../messages/print.ts'

/** @throws JobStopped if the stored events differ from the sent ones, or the figures do not balance. */
export function printSent({ folder }: Job, path: string, report: FinalReport, json: boolean): void {
  printLines(json ? [JSON.stringify(report)] : sentLines(report, folder.file(finalReportNames.html), path))
  const { verification, balance } = report
  if (!verification.ok) {
    const erased = verification.notes.find(({ reason }) => reason === rowsErased)
    const reason = erased === undefined ? '' : ` ${formatNote(erased)}`
    const wayOn =
      erased === undefined ? '' : `pennon import publish ${quotePath(path)} --unverified publishes the rest, `
    throw new JobStopped(
      `the stored events differ from the sent ones: ${verification.checks.flatMap(({ differences }) => differences)[0]}.${reason} Nothing is published. Next: ${wayOn}pennon import run ${quotePath(path)} verifies again, pennon import report ${quotePath(path)} shows all differences, pennon import discard ${quotePath(path)} undoes the import`,
    )
  }
  if (!balance.isBalanced)
    throw new JobStopped(
      `the counts do not add up, so the import is not complete. Next: pennon import report ${quotePath(path)} shows them, pennon import discard ${quotePath(path)} undoes the import`,
    )
}

function sentLines(report: FinalReport, html: string, path: string): string[] {
  const { balance, verification, seconds, eventsPerSecond, retries, repaired } = report
  const { refused, sent } = balance
  const stored = formatCount(verification.stored_rows, 'unique event is stored', 'unique events are stored')
  const next = {
    command: `pennon import publish ${quotePath(path)}`,
    why: 'make it visible; can be undone for 30 days',
  }
  return [
    `${formatCount(sent - (repaired?.sent ?? 0), 'event')} sent in ${formatDuration(seconds)} (${eventsPerSecond.toLocaleString('en')} a second, ${formatCount(retries, 'retry', 'retries')}), 0 charged.`,
    ...(repaired === null ? [] : [describeRepaired(repaired)]),
    'Nothing is visible until it is published.',
    ...(refused === 0
      ? []
      : [
          `${formatCount(refused, 'event was', 'events were')} refused: pennon import rejects ${quotePath(path)} --group`,
        ]),
    ...(verification.ok ? [`Verified: ${stored} as sent.`] : []),
    `Report: ${html}`,
    ...(verification.ok ? [nextLine(next)] : []),
  ]
}
