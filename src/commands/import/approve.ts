// `pennon import approve FOLDER`: a person signs off the result of the rehearsal. The approval holds hashes of what they
// saw, so that nothing else is sent. Source: docs/wire/import.md §2.1 (stage 5), §2.11.

import { firstFew, formatCount } from '#core/format-count.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { approvalFile, approve, hashManifest, listChangesSince, readApproval } from '#importer/job/approval.ts'
import { readManifest } from '#importer/job/manifest.ts'
import { readRehearsal, reportNames } from '#importer/stages/report/import-report.ts'
import { formatChoices, listPlanChoices } from '#importer/stages/report/plan-choices.ts'
import { readSent } from '#importer/verify/sent.ts'
import { refuse } from '../refuse.ts'
import { collectApprovedParts, rehearsal, requireManifest, scan, stage } from './job/job-stages.ts'
import { findNextStep, readStanding } from './job/next-step.ts'
import { type Job, lockJob, openJob, runOrRefuse } from './job/open-job.ts'
import { findRehearsalStop, formatStop } from './job/rehearsal-stop.ts'
import { confirmTarget } from './messages/confirm-target.ts'
import { nextLine, quotePath } from './messages/next-line.ts'
import { printLines } from './messages/print.ts'
import { addKnownProject } from './service/known-project.ts'

/** As commander gives them. */
export interface ApproveOptions {
  /** The name of the project (or its address, if the name is unknown), given as an option instead of typed. */
  readonly project?: string
}

export async function approveImport(path: string, options: ApproveOptions): Promise<void> {
  const opened = openJob(path)
  const { folder, plan: planned } = opened
  const at = quotePath(path)
  const unlock = lockJob(folder)
  try {
    await runOrRefuse(folder, async () => {
      if (planned.target === null)
        refuse(`the plan has no target. Plan it with --project-key: pennon import plan ${at} … --project-key phc_…`)
      refuseIfSent(opened, at)
      const plan = await addKnownProject(folder, planned)
      const job = { ...opened, plan }
      const target = plan.target!
      await checkRehearsed(job, at)
      const { predicted, warnings, targetAnswer } = readRehearsal(folder)!
      // Printed in scripts too, since people read their output later.
      const chosen = formatChoices(listPlanChoices(plan, targetAnswer))
      if (chosen.length > 0) printLines(['Options of the plan:', ...chosen.map(line => `  ${line}`)])
      const fetchWarnings = readFetchedParts(folder.path)?.warnings ?? []
      if (fetchWarnings.length > 0)
        printLines(['During the download:', ...firstFew(fetchWarnings).map(line => `  ${line}`)])
      await confirmTarget(target.projectName ?? target.address, options.project, {
        what: 'approve',
        scripted: `pennon import approve ${at}`,
        facts: [
          `${formatCount(predicted.events, 'event')}, 0 charged, ${formatCount(warnings.length, 'warning')}; the report is ${folder.file(reportNames.html)}`,
        ],
      })
      const approval = approve(collectApprovedParts(job), new Date().toISOString())
      folder.writeJson(approvalFile, approval)
      printLines([
        `Approved as ${approval.sha256.slice(0, 12)}.`,
        nextLine(findNextStep(path, await readStanding(job), null)),
      ])
    })
  } finally {
    unlock()
  }
}

/** Refuses to approve sent events again. Only a later change, such as another limit for the rest, needs approval. */
function refuseIfSent(job: Job, at: string): void {
  const { folder } = job
  const approval = readApproval(folder)
  const sent = readSent(folder)
  if (approval === null || readManifest(folder) === null || sent === null) return
  const { ending, isAll } = sent
  if (ending === null && listChangesSince(approval, collectApprovedParts(job)).length > 0) return
  const what = ending !== null ? endedMessage[ending.how] : isAll ? 'sent' : 'sent in part'
  refuse(
    `it was approved at ${approval.approvedAt} and has been ${what} since, so there is nothing to approve. To see its state: pennon import status ${at}`,
  )
}

const endedMessage = { publish: 'published', discard: 'discarded' } as const

/** Refuses unless the report belongs to the present bytes and rules, and nothing in it stops the import. */
async function checkRehearsed(job: Job, at: string): Promise<void> {
  for (const each of [stage, scan, rehearsal])
    if (!(await each.isDone(job))) refuse(`the current plan has not been rehearsed. First: pennon import run ${at}`)
  const report = readRehearsal(job.folder)!
  if (report.hashes.manifest !== hashManifest(requireManifest(job.folder)))
    refuse(`the staged files changed. First: pennon import run ${at}`)
  if (!report.balance.isBalanced)
    refuse(
      `the counts of the rehearsal do not add up, so it cannot be approved. To see them: pennon import report ${at}. Please report this as a bug in Pennon`,
    )
  const stop = findRehearsalStop(report, job.plan, at)
  if (stop !== null) refuse(formatStop(stop))
}
