// What `pennon import run` does once a job is approved: sends it, compares what is stored, and writes the final report.
// Source: docs/wire/import.md §2.1 (stages 6 and 7), §2.11 (guards).

import { setTimeout as sleep } from 'node:timers/promises'
import Type from 'typebox'
import { readConfig } from '#config.ts'
import type { FetchClock } from '#importer/fetch/fetch-clock.ts'
import { changesSince, readApproval } from '#importer/job/approval.ts'
import { orNull } from '#importer/job/file-schema.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { blankLinesOf, type Manifest } from '#importer/job/manifest.ts'
import { apiAddressOf, type ImportTarget, mappingSha256 } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { type Checkpoint, readCheckpoint, sumCounts } from '#importer/send/checkpoint.ts'
import { type FinalReport, writeFinalReport } from '#importer/send/final-report.ts'
import { ServiceApi } from '#importer/send/job-api.ts'
import { openRetries } from '#importer/send/retried-records.ts'
import { retryOutcomes } from '#importer/send/retry-outcomes.ts'
import { sendStage, TooManyRefused } from '#importer/send/send-stage.ts'
import { ensureServiceJob, jobName, readServiceJob, tellState } from '#importer/send/service-job.ts'
import { ToldProgress } from '#importer/send/told-progress.ts'
import { type LiveCounts, liveCounts, settledDays, verifyFile, verifyStage } from '#importer/send/verify-stage.ts'
import { openStagedJob } from '#importer/stages/open-staged-job.ts'
import { afterRefusals } from './after-refusals.ts'
import { manifestOf, readReport, type StageRun } from './job-stages.ts'
import type { Job } from './open-job.ts'
import { checkTakesEvents } from './takes-events.ts'
import { quoted } from './words/step-words.ts'

export interface SendJobOptions {
  /** Stop after the first thousand events, for a look at them. */
  readonly canary?: boolean
  /** Send although the project has live events of the same days. */
  readonly overlapOk?: boolean
  /** Events per second at first. */
  readonly rate?: number
}

export interface SentJob {
  readonly state: 'sent' | 'canary'
  readonly report: FinalReport
}

const canaryEvents = 1_000
/** Counts of live events by day, taken once before anything is sent. */
export const liveBeforeFile = 'live-before.json'
const liveBeforeSchema = Type.Object({ days: orNull(Type.Record(Type.String(), Type.Number())) })

export const wallClock: FetchClock = {
  nowMs: Date.now,
  sleep: async (ms, signal) => void (await sleep(ms, undefined, { signal })),
  random: Math.random,
}

export function isApproved({ folder }: Pick<Job, 'folder'>): boolean {
  return readApproval(folder) !== null
}

/** @throws JobPaused, JobStopped */
export async function sendJob(run: StageRun, options: SendJobOptions): Promise<SentJob> {
  const { folder, plan, source, progress, signal } = run
  const manifest = manifestOf(folder)
  const approval = readApproval(folder)!
  const changed = changesSince(approval, plan, manifest)
  if (changed.length > 0)
    throw new JobStopped(
      `since the approval, ${changed.join(' and ')} changed. Look at it and approve again: pennon import approve ${quoted(folder.path)}`,
    )
  const target = plan.target!
  const api = apiOf(target, progress, signal)
  const known = readServiceJob(folder)
  if (known !== null) await checkTakesEvents(folder.path, known.id, api)
  const rehearsal = readReport(folder)!
  const liveBefore = await liveEvents(run, api, rehearsal.range, options)
  const serviceJob = await ensureServiceJob(
    folder,
    api,
    { target: target.address, project: target.projectId ?? '@current' },
    {
      name: jobName(plan.source, rehearsal.range),
      source: plan.source,
      ...(plan.limits.joining !== undefined && { options: plan.limits.joining }),
      ...(plan.limits.acceptsOld === true && { accept_old: true }),
      plan: {
        job: plan.jobId,
        range: rehearsal.range === null ? null : { ...rehearsal.range },
        timezone: manifest.sourceTimezone,
        mapping_sha256: mappingSha256(plan),
        approval_sha256: approval.sha256,
        tool_version: plan.toolVersion,
      },
    },
  )
  const job = openStagedJob({ folder, plan, manifest, source })
  try {
    // What was verified before says nothing of what is sent from here on.
    folder.remove(verifyFile)
    await tellState(api, serviceJob.id, 'sending', figuresOf(readCheckpoint(folder), manifest))
    const told = new ToldProgress(
      () => tellState(api, serviceJob.id, 'sending', figuresOf(readCheckpoint(folder), manifest)),
      wallClock.nowMs,
    )
    const { state, checkpoint } = await sendStage({
      onStep: step => step === 'committed' && told.moved(),
      ...{ folder, job, progress, signal, clock: wallClock, source: plan.source },
      identity: {
        jobId: plan.jobId,
        serviceJobId: serviceJob.id,
        target: target.address,
        project: serviceJob.project,
        approvalSha256: approval.sha256,
        mappingSha256: mappingSha256(plan),
      },
      projectKey: target.projectKey,
      ...(serviceJob.secretId !== undefined && { secretJobId: serviceJob.secretId }),
      maxRejectShare: plan.limits.maxRejectShare,
      personOf: id => job.personOf(id),
      ...(options.canary === true && { canaryEvents }),
      ...(options.rate !== undefined && { rate: options.rate }),
    })
    await told.ended()
    await tellState(api, serviceJob.id, 'verifying', figuresOf(checkpoint, manifest))
    const retried = openRetries({ folder, plan, manifest, source })
    const verified = await verifyStage({
      ...{ folder, job, checkpoint, retried, api, progress, signal, liveBefore },
      source: plan.source,
    })
    const report = writeFinalReport({
      ...{ folder, checkpoint, rehearsal, ...verified },
      retried: await retryOutcomes(retried),
    })
    if (state === 'sent' && report.verification.ok && report.balance.isBalanced)
      await tellState(api, serviceJob.id, 'pending', figuresOf(checkpoint, manifest))
    return { state, report }
  } catch (error) {
    if (error instanceof TooManyRefused)
      throw new JobStopped(`${error.message} ${afterRefusals(error, quoted(folder.path))}`)
    throw error
  } finally {
    job.close()
  }
}

/** @throws JobStopped without a key, so that the progress of a run says what it ended with. */
export function apiOf(target: ImportTarget, progress: Pick<StageProgress, 'waiting'>, signal: AbortSignal): ServiceApi {
  const read = readConfig(process.env)
  if (!read.ok) throw new JobStopped(read.error)
  const { personalKey } = read.value
  if (personalKey === null)
    throw new JobStopped(
      'Set PENNON_PERSONAL_KEY to a personal API key with the scopes import_job:write, query:read and project:read. A new one: pennon new-key, where the instance runs.',
    )
  const project = target.projectId ?? '@current'
  return new ServiceApi({ address: apiAddressOf(target), personalKey, project, clock: wallClock, progress, signal })
}

/** Taken before the first event is sent, so that verifying can tell whether any live event went missing. */
async function liveEvents(
  { folder, progress }: StageRun,
  api: ServiceApi,
  range: { readonly first: string; readonly last: string } | null,
  { overlapOk = false }: SendJobOptions,
): Promise<Record<string, number> | null> {
  const known = folder.readJson(liveBeforeFile, liveBeforeSchema)
  if (known !== null) return known.days
  const counts: LiveCounts = range === null ? { days: {} } : await liveCounts(api, range)
  if (!('days' in counts)) {
    const words = unknownWords(api.address, counts.refused)
    if (!overlapOk) throw new JobStopped(`${words} To send without that look: --overlap-ok`)
    progress.say(`WARNING: ${words} It is sent all the same (--overlap-ok).`)
    folder.writeJson(liveBeforeFile, { days: null })
    return null
  }
  const names = Object.keys(counts.days)
  if (names.length > 0 && !overlapOk)
    throw new JobStopped(
      `the project has live events of the same days (${names.slice(0, 5).join(', ')}${names.length > 5 ? `, … ${names.length} days` : ''}). ` +
        `Next: if they are not the ones that you are about to import, pennon import run ${quoted(folder.path)} --overlap-ok; if they are, leave those days out of the export and plan it again`,
    )
  const days = settledDays(counts.days, api.clock.nowMs())
  folder.writeJson(liveBeforeFile, { days })
  return days
}

function unknownWords(address: string, refused: number | null): string {
  const unseen = `whether the project has live events of the same days cannot be seen: ${address}`
  if (refused === null) return `${unseen} gives an answer that cannot be read.`
  const scope =
    refused === 403 ? ' The key in PENNON_PERSONAL_KEY lacks the scope query:read: give it one that has it.' : ''
  return `${unseen} answers ${refused} to /query/.${scope}`
}

/** Groups and links are events too, and no records. */
function figuresOf(checkpoint: Checkpoint | null, manifest: Manifest) {
  const parts = (checkpoint?.parts ?? []).map(({ counts }) => counts)
  const all = checkpoint === null ? [] : [checkpoint.identity.progress.counts, ...parts]
  const { read, rejected } = sumCounts(parts)
  return { records: read + blankLinesOf(manifest), sent: sumCounts(all).sent, rejected }
}
