// Whether the personal key may be sent to the target that a folder names: folders are passed on, and plan.json is easily
// edited. Source: ours; docs/import.md.

import { hashTarget, readApproval } from '#importer/job/approval.ts'
import type { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { ImportPlan, ImportTarget } from '#importer/job/plan.ts'
import { readServiceJob } from '#importer/send/service-job.ts'
import { quotePath } from '../messages/print.ts'

export interface JobOfFolder {
  readonly folder: JobFolder
  readonly plan: ImportPlan
}

/** @returns why the personal key must not be sent to the target of the plan; null if it may. */
export function findTargetMismatch({ folder, plan: { target } }: JobOfFolder): string | null {
  if (target === null) return null
  const notSent = `PENNON_PERSONAL_KEY was not sent to ${target.apiAddress ?? target.address}`
  const made = readServiceJob(folder)
  if (made !== null && made.target !== target.address)
    return `${notSent}: import job ${made.id} was created at ${made.target}, but plan.json has another target. Restore the previous plan.json, or plan in another folder`
  const approval = readApproval(folder)
  if (approval === null) return null
  // The project may have become known since the approval, which does not change where the key goes.
  const beforeKnown = { ...target, projectId: null, projectName: null }
  if (![target, beforeKnown].some(each => hashTarget(each) === approval.hashes.target))
    return `${notSent}: plan.json has a different target than was approved. Restore the previous plan.json; or, if you changed it, check the target and approve again: pennon import run ${quotePath(folder.path)}`
  return null
}

/** @returns the target of the plan. @throws JobStopped if the personal key must not be sent there. */
export function recordedTarget(job: JobOfFolder): ImportTarget {
  const reason = findTargetMismatch(job)
  if (reason !== null) throw new JobStopped(reason)
  return job.plan.target!
}
