import { formatCount } from '#core/format-count.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { formatDuration } from '#importer/stages/report/report-sections.ts'
import { rowsErased } from '#importer/verify/erased-rows.ts'
import { describeRepaired } from '#importer/verify/final-pages.ts'
import { finalReportNames } from '#importer/verify/final-report.ts'
import { formatNote } from '#importer/verify/note-messages.ts'
import type { Job } from '../job/open-job.ts'
import { type NextStep, nextLine, quotePath } from '../messages/next-line.ts'
import { printLines } from '../messages/print.ts'
import type { SentJob } from './send-job.ts'

/** @throws JobStopped if the stored events differ from the sent ones, or the figures do not balance. */
export function printSent({ folder }: Job, path: string, { state, report }: SentJob, json: boolean): void {
  const lines = json ? [JSON.stringify(report)] : sentLines({ state, report }, folder.file(finalReportNames.html), path)
  printLines(lines)
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
  if (state === 'sent' && !balance.isBalanced)
    throw new JobStopped(
      `the counts do not add up, so the import is not complete. Next: pennon import report ${quotePath(path)} shows them, pennon import discard ${quotePath(path)} undoes the import`,
    )
}

function sentLines({ state, report }: SentJob, html: string, path: string): string[] {
  const { balance, verification, seconds, eventsPerSecond, retries, repaired } = report
  const count = (value: number) => value.toLocaleString('en')
  const before =
    balance.generated === 0 ? '' : `, after ${formatCount(balance.generated, 'event')} for groups and links`
  const done =
    state === 'canary'
      ? [
          `The first ${formatCount(balance.fromRecords, 'event')} of records ${balance.fromRecords === 1 ? 'is' : 'are'} sent${before}, and nothing is visible yet. The report has their names, times and counts; to see properties: pennon import report ${quotePath(path)} --samples.`,
        ]
      : [
          `${formatCount(balance.sent - (repaired?.sent ?? 0), 'event')} sent in ${formatDuration(seconds)} (${count(eventsPerSecond)} a second, ${formatCount(retries, 'retry', 'retries')}), 0 charged.`,
          ...(repaired === null ? [] : [describeRepaired(repaired)]),
          'Nothing is visible until it is published.',
        ]
  return [
    ...done,
    ...(balance.refused === 0
      ? []
      : [
          `${formatCount(balance.refused, 'event was', 'events were')} refused: pennon import rejects ${quotePath(path)} --group`,
        ]),
    ...(verification.ok
      ? [
          `Verified: ${formatCount(verification.stored_rows, 'unique event is stored as sent', 'unique events are stored as sent')}.`,
        ]
      : []),
    `Report: ${html}`,
    ...(verification.ok ? [nextLine(findStepAfterSend(state, path))] : []),
  ]
}

function findStepAfterSend(state: SentJob['state'], path: string): NextStep {
  return state === 'canary'
    ? { command: `pennon import run ${quotePath(path)}`, why: 'send the others' }
    : { command: `pennon import publish ${quotePath(path)}`, why: 'make it visible; can be undone for 30 days' }
}
