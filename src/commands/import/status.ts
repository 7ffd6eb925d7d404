// `pennon import status FOLDER`: where a job stands, also while another terminal runs it. Changes nothing.
// Source: docs/wire/import.md §2.8.

import { readApproval } from '#importer/job/approval.ts'
import { readManifest } from '#importer/job/manifest.ts'
import type { ProgressFigures } from '#importer/job/progress-figures.ts'
import { type SentSoFar, sentSoFar } from '#importer/send/sent-so-far.ts'
import { endWithOutput } from '../client/end-with-output.ts'
import { printable } from '../client/printable.ts'
import { readReport } from './job-stages.ts'
import { isJobRunning, type Job, openJob } from './open-job.ts'
import { progressFile, progressLine } from './run-progress.ts'

/** As commander gives them. */
export interface StatusOptions {
  readonly json?: boolean
}

export function showStatus(path: string, { json = false }: StatusOptions): void {
  endWithOutput()
  const job = openJob(path)
  const isRunning = isJobRunning(job.folder)
  const progress = job.folder.readJson<ProgressFigures>(progressFile)
  if (json) process.stdout.write(`${JSON.stringify(statusOf(job, isRunning, progress))}\n`)
  else process.stdout.write(`${statusLines(job, isRunning, progress, path).map(printable).join('\n')}\n`)
}

function statusOf({ folder, plan }: Job, isRunning: boolean, progress: ProgressFigures | null): object {
  const { jobId, source, createdAt, target } = plan
  const manifest = readManifest(folder)
  const report = readReport(folder)
  return {
    ...{ jobId, source, createdAt },
    target: target && { address: target.address, projectId: target.projectId, projectName: target.projectName },
    ...{ isRunning, progress },
    range: manifest?.sourceRange ?? null,
    sourceTimezone: manifest?.sourceTimezone ?? null,
    mappingSha256: manifest?.mappingSha256 ?? null,
    records: manifest?.totals.records ?? null,
    balance: report?.balance ?? null,
    approvedAt: readApproval(folder)?.approvedAt ?? null,
    sent: sentSoFar(folder),
  }
}

function statusLines(
  { folder, plan }: Job,
  isRunning: boolean,
  progress: ProgressFigures | null,
  path: string,
): string[] {
  const manifest = readManifest(folder)
  const report = readReport(folder)
  const approval = readApproval(folder)
  const { target } = plan
  return [
    `Job ${plan.jobId}: ${plan.files.length} files of ${plan.source}, planned ${plan.createdAt}.`,
    target === null ? 'No target.' : `Target: ${target.projectName ?? 'the project of the key'} on ${target.address}.`,
    ...(manifest === null
      ? ['Not staged yet.']
      : [
          `Staged: ${manifest.totals.records.toLocaleString('en')} records of ${manifest.totals.days} days${manifest.sourceRange === null ? '' : `, ${manifest.sourceRange.first} to ${manifest.sourceRange.last}`}.`,
        ]),
    ...(report === null
      ? ['Not rehearsed yet.']
      : [
          `Rehearsed: ${report.predicted.events.toLocaleString('en')} events to send, ${report.balance.rejected.toLocaleString('en')} records rejected.`,
        ]),
    approval === null ? 'Not approved.' : `Approved ${approval.approvedAt}.`,
    ...sentText(sentSoFar(folder), path),
    progressText(isRunning, progress, path),
  ]
}

function sentText(sent: SentSoFar | null, path: string): string[] {
  if (sent === null) return []
  const count = `${sent.events.toLocaleString('en')} events${sent.refused === 0 ? '' : `, ${sent.refused} refused`}`
  if (!sent.isAll) return [`Sent so far: ${count}.`]
  const verified = sent.isVerified === null ? 'not verified yet' : sent.isVerified ? 'verified' : 'found to DIFFER'
  return [`Sent: ${count}, ${verified}; import job ${sent.serviceJobId}. Then: pennon import publish ${path}`]
}

function progressText(isRunning: boolean, progress: ProgressFigures | null, path: string): string {
  if (isRunning) return progress === null ? 'It is running.' : `Running: ${progressLine(progress)}.`
  if (progress === null) return `Not run yet: pennon import run ${path}`
  if (progress.state === 'running')
    return `It broke off in ${progress.stage}; it goes on with: pennon import run ${path}`
  return progress.message === null ? 'Nothing is running.' : `Last run: ${progress.message}`
}
