// What `pennon import run` prints at its end: the result of the rehearsal, or of sending.

import { formatCount } from '#core/format-count.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { formatDuration } from '#importer/stages/report/format-figures.ts'
import { type ImportReport, readRehearsal, reportNames, type Sent } from '#importer/stages/report/import-report.ts'
import { formatNote, rowsErased } from '#importer/stages/report/note-messages.ts'
import { formatChoices } from '#importer/stages/report/plan-choices.ts'
import { describeSent } from '#importer/stages/report/report-sections.ts'
import { findNextStep, readStanding } from '../job/next-step.ts'
import type { Job } from '../job/open-job.ts'
import { findRehearsalStop, formatStop } from '../job/rehearsal-stop.ts'
import { nextLine, quotePath } from '../messages/next-line.ts'
import { printJson, printLines } from '../messages/print.ts'

/** @throws JobStopped if the job may not be approved. */
export async function printRehearsed(job: Job, path: string, json: boolean): Promise<void> {
  const { folder, plan } = job
  const report = readRehearsal(folder)!
  const { balance, warnings, seconds, predicted, choices } = report
  if (json) printJson({ ...report, sent: null })
  else
    printLines([
      `${formatCount(balance.read, 'record')}: ${formatCount(balance.givingEvents, 'produces', 'produce')} events, ${formatCount(balance.skipped, 'is', 'are')} skipped, ${balance.rejected.toLocaleString('en')} rejected, ${balance.collapsed.toLocaleString('en')} collapsed (repeated records).`,
      `${formatCount(predicted.events, 'event')} would be sent and 0 charged. Nothing was sent; the rehearsal took ${formatDuration(seconds)}.`,
      ...(choices.length === 0 ? [] : ['Options of the plan:']),
      ...formatChoices(choices).map(line => `  ${line}`),
      ...(warnings.length === 0 ? [] : [`${formatCount(warnings.length, 'warning')}:`]),
      ...warnings.map(({ text }) => `  ${text}`),
      `Report: ${folder.file(reportNames.html)}`,
      nextLine(findNextStep(path, await readStanding(job), null)),
    ])
  const stop = findRehearsalStop(report, plan, quotePath(path))
  if (stop !== null) throw new JobStopped(formatStop(stop))
}

/** @throws JobStopped if the stored events differ from the sent ones, or the figures do not balance. */
export async function printSent(job: Job, path: string, report: ImportReport, json: boolean): Promise<void> {
  const at = quotePath(path)
  const sent = report.sent!
  const problem = findProblem(sent, at)
  if (json) printJson(report)
  else
    printLines([
      ...describeSent(report, sent),
      'Nothing is visible until it is published.',
      ...(sent.balance.refused === 0 ? [] : [`The refused events: pennon import rejects ${at} --group`]),
      `Report: ${job.folder.file(reportNames.html)}`,
      ...(problem === null ? [nextLine(findNextStep(path, await readStanding(job), null))] : []),
    ])
  if (problem !== null) throw new JobStopped(problem)
}

function findProblem({ verification, balance }: Sent, at: string): string | null {
  if (verification?.ok !== true) {
    const { notes = [], checks = [] } = verification ?? {}
    const erased = notes.find(({ reason }) => reason === rowsErased)
    const reason = erased === undefined ? '' : ` ${formatNote(erased)}`
    const wayOn = erased === undefined ? '' : `pennon import publish ${at} --unverified publishes the rest, `
    return `the stored events differ from the sent ones: ${checks.flatMap(({ differences }) => differences)[0]}.${reason} Nothing is published. Next: ${wayOn}pennon import run ${at} verifies again, pennon import report ${at} shows all differences, pennon import discard ${at} undoes the import`
  }
  return balance.isBalanced
    ? null
    : `the counts do not add up, so the import is not complete. Next: pennon import report ${at} shows them, pennon import discard ${at} undoes the import`
}
