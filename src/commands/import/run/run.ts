// `pennon import run FOLDER`: runs the stages of a job from the first that is not done. It may be stopped at any moment, and
// continues when started again. Source: docs/wire/import.md §2.1, §2.4, §2.8.

import { refuse } from '#commands/refuse.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { storeApproval } from '#importer/job/approval.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { readPlan, writePlan } from '#importer/job/plan.ts'
import { isZoneName } from '#importer/records/source-time.ts'
import { readCheckpoint } from '#importer/send/checkpoint.ts'
import { reportNames } from '#importer/stages/report/import-report.ts'
import { updateReport } from '#importer/verify/sent-summary.ts'
import { growHeapSlowly } from '#telemetry/release-memory.ts'
import { version } from '#version.ts'
import { fetchJob } from '../fetch/fetch-job-stage.ts'
import { createConfiguredSpaceCheck, createSpaceWaiter, retryWhenDiskFull } from '../job/disk-reserve.ts'
import { type StageRun, stagesToRehearse } from '../job/job-stages.ts'
import { hashDigits } from '../job/next-step.ts'
import { type Job, runExclusivelyOnJob } from '../job/open-job.ts'
import { removeDerivedProfileTime } from '../job/profile-time.ts'
import { describePause, isInterruption, runUntilInterrupted } from '../messages/interruption.ts'
import { parseShare } from '../plan/plan-options.ts'
import { findProjectKeyProblem } from '../plan/resolve-target.ts'
import { approveJob } from './approve-job.ts'
import { findRehearsalProject, printRehearsalInProject, rehearseInProject } from './rehearsal-project.ts'
import { createRunProgress } from './run-progress.ts'
import { printSentReport, type SendJobOptions, sendJob } from './send-job.ts'

/** As commander gives them. */
export interface RunOptions {
  readonly sourceTimezone?: string
  readonly maxRejectShare?: string
  readonly allowDamagedFiles?: boolean
  /** The public key of a test project to which a rehearsal is sent. */
  readonly rehearsalProject?: string
  readonly overlapOk?: boolean
  readonly rate?: string
  /** Rehearse again although nothing changed, for example to ask the target again. */
  readonly rehearseAgain?: boolean
  /** The hash of the state to approve without asking. */
  readonly yes?: string
  readonly json?: boolean
  /** Set by `pennon import go`, which runs the step after a successful run itself, so that it is not printed. */
  readonly isFollowed?: boolean
}

/** @returns whether everything was sent and verified. */
export async function runImport(path: string, options: RunOptions): Promise<boolean> {
  // This changes a V8 flag, so modules loaded later (for a few jobs, the client of AWS) are compiled anew, not read from
  // the cache.
  growHeapSlowly()
  const sendOptions = parseSendOptions(options)
  const { rehearsalProject: projectKey, json = false, yes } = options
  if (yes !== undefined && !/^[0-9a-f]{12,64}$/.test(yes))
    refuse(`--yes takes the hash that pennon import run prints, at least ${hashDigits} of its digits, not ${yes}`)
  if (yes !== undefined && projectKey !== undefined)
    refuse('--yes approves sending to the target, so it cannot be combined with --rehearsal-project')
  const keyProblem = projectKey === undefined ? null : findProjectKeyProblem(projectKey)
  if (keyProblem !== null) refuse(keyProblem)
  return runExclusivelyOnJob(path, async opened => {
    let job = applyOptions(opened, options)
    if (options.rehearseAgain === true) removeRehearsal(job)
    if (job.plan !== opened.plan) updateReport(job.folder, job.plan)
    // Check the rehearsal project before the stages run, since they take long.
    const project = projectKey === undefined ? null : await findRehearsalProject(job, projectKey)
    await runWithProgress(job, json, runStages)
    // Reload the plan, to which stages have added the fetched files and the time of profiles.
    job = reloadJob(job)
    if (project !== null) {
      const given = { ...sendOptions, projectKey: projectKey! }
      const sent = await runWithProgress(job, json, run => rehearseInProject(run, project, given))
      await printRehearsalInProject(job, sent, json)
      return false
    }
    const approved = await approveJob(job, options)
    if (approved === null) return false
    job = reloadJob(job)
    const report = await runWithProgress(job, json, run => sendJob(run, { ...sendOptions, ...approved }))
    await printSentReport(job, report, options)
    return true
  })
}

/** Removes the rehearsal's report, and the approval, which was for this report. */
function removeRehearsal({ folder, path }: Job): void {
  if (readCheckpoint(folder) !== null)
    refuse(`${path} has already been sent, at least in part, so it cannot be rehearsed again`)
  storeApproval(folder, null)
  folder.remove(reportNames.json)
}

function parseSendOptions({ overlapOk = false, rate }: RunOptions): SendJobOptions {
  if (rate !== undefined && !/^[1-9]\d{0,6}$/.test(rate))
    refuse(`--rate must be a number of events per second, such as 5000, not ${rate}`)
  return { overlapOk, ...(rate !== undefined && { rate: Number(rate) }) }
}

/**
 * Applies the options that may change between two runs; the stages that depend on them run again. Once something is sent,
 * nothing that affects the conversion may change, since the rest would not match.
 */
function applyOptions(job: Job, { sourceTimezone, maxRejectShare, allowDamagedFiles = false }: RunOptions): Job {
  let { plan } = job
  const isSent = readCheckpoint(job.folder) !== null
  if (plan.toolVersion !== version) {
    if (isSent)
      refuse(
        `it was started with Pennon ${plan.toolVersion}, but this is ${version}: finish it with ${plan.toolVersion}`,
      )
    plan = { ...plan, toolVersion: version }
  }
  if (sourceTimezone !== undefined) {
    if (isSent)
      refuse('--source-timezone cannot be changed after sending has started. Discard the import and plan another')
    if (!isZoneName(sourceTimezone))
      refuse(`--source-timezone must be an IANA time zone such as Europe/Berlin, not ${sourceTimezone}`)
    plan = removeDerivedProfileTime(plan)
    plan = { ...plan, config: { ...plan.config, source_timezone: sourceTimezone } }
    // Check the configuration now: a source that does not accept a time zone would refuse the plan in every later run.
    const { createdAt, limits, config } = plan
    const { holdLiveWindow } = limits
    job.source.prepare(config, { nowMs: Date.parse(createdAt), holdLiveWindow, findFact: () => null })
  }
  if (maxRejectShare !== undefined)
    plan = { ...plan, limits: { ...plan.limits, maxRejectShare: parseShare(maxRejectShare, '--max-reject-share') } }
  if (allowDamagedFiles && plan.limits.allowsDamagedFiles !== true)
    plan = { ...plan, limits: { ...plan.limits, allowsDamagedFiles: true } }
  if (plan !== job.plan) writePlan(job.folder, plan)
  return { ...job, plan }
}

/** Returns the job with the plan that is now in the folder, since stages add to it. */
function reloadJob<T extends Job>(job: T): T {
  return { ...job, plan: readPlan(job.folder)! }
}

/** Runs the stages that come before the approval and are not done yet. */
async function runStages(run: StageRun): Promise<void> {
  for (const stage of [fetchJob, ...stagesToRehearse]) {
    const current = reloadJob(run)
    if (!(await stage.isDone(current))) await stage.run(current)
  }
}

/** Runs work that can resume, and shows its progress. Exits the process when interrupted. */
function runWithProgress<T>(job: Job, isJson: boolean, run: (run: StageRun) => Promise<T>): Promise<T> {
  const findSpaceProblem = createConfiguredSpaceCheck(job.folder.path)
  const pausedMessage = describePause(job)
  return runUntilInterrupted(
    () => pausedMessage,
    async signal => {
      const { tracker: progress, end } = createRunProgress({ folder: job.folder, isJson })
      const waits = { progress, signal, clock: wallClock }
      const waitForSpace = createSpaceWaiter(findSpaceProblem, waits)
      try {
        const stageRun = { ...job, progress, signal, findSpaceProblem, waitForSpace }
        const result = await retryWhenDiskFull(() => run(stageRun), job.folder.path, waits)
        end('done', null)
        return result
      } catch (error) {
        if (isInterruption(error, signal)) end('paused', pausedMessage)
        else end('stopped', (error as Error).message, error instanceof JobStopped ? error.remedy : null)
        throw error
      }
    },
  )
}
