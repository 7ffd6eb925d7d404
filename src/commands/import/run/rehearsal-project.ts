// `pennon import run FOLDER --rehearsal-project KEY`: sends the whole history of some persons to a project for tests, where
// the user looks at it. Source: docs/wire/import.md §2.7, §2.11 (guards).

import { crc32 } from 'node:zlib'
import { ClientError, PrivateApi } from '#commands/client/private-api.ts'
import { readConfig } from '#config.ts'
import { formatCount } from '#core/format-count.ts'
import { wallClock } from '#importer/fetch/waiting.ts'
import { hashManifest } from '#importer/job/approval.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { findApiAddress, hashConversionSettings } from '#importer/job/plan.ts'
import type { StagedJob, StagedOutcome } from '#importer/job/staged-part.ts'
import { sumSendCounts } from '#importer/send/checkpoint.ts'
import { runSendStage } from '#importer/send/send-stage.ts'
import { openStagedJob } from '#importer/stages/part-lines.ts'
import { formatPercent } from '#importer/stages/report/format-figures.ts'
import { readRehearsal } from '#importer/stages/report/import-report.ts'
import { waitUntilStreamsProcessed } from '#importer/verify/verify-stage.ts'
import { requireManifest, type StageRun } from '../job/job-stages.ts'
import { describeNextStep } from '../job/next-step.ts'
import type { Job } from '../job/open-job.ts'
import { printJson, printLines } from '../messages/print.ts'
import { findProjectWithKey, type KnownProject } from '../service/known-project.ts'
import { createServiceApi, type JobOfFolder, requireTrustedTarget } from '../service/target-api.ts'

/** Suffix of the job id in `$import_job_id`; the suffix marks events of rehearsals. */
const rehearsalMark = '-rehearsal'
/** About how many events a rehearsal sends: enough to look at, and sent in two minutes. */
const eventsWanted = 100_000
/** Resolution of the sample: its smallest share is 0.01 %. */
const buckets = 10_000
const timeoutMs = 15_000

export type RehearsedInProject = Awaited<ReturnType<typeof rehearseInProject>>

/**
 * Finds the project that a rehearsal may be sent to.
 * @throws JobStopped if it is the target itself, has or may have events from outside rehearsals, or cannot be seen with the
 * personal key.
 */
export async function findRehearsalProject(job: JobOfFolder, projectKey: string): Promise<KnownProject> {
  if (job.plan.target === null)
    throw new JobStopped('the plan has no target, so the URL of the rehearsal project is unknown')
  const target = requireTrustedTarget(job)
  if (projectKey === target.projectKey) throw createTargetRefusal()
  const instance = findApiAddress(target)
  const read = readConfig(process.env)
  if (!read.ok) throw new JobStopped(read.error)
  const asking = { instance, personalKey: read.value.personalKey ?? '', timeoutMs }
  try {
    const project = await findProjectWithKey(new PrivateApi({ ...asking, project: '' }), projectKey)
    if (project === null)
      throw new JobStopped(
        `the key in PENNON_PERSONAL_KEY has no access to a project with the key ${projectKey} at ${instance}`,
      )
    if (project.id === target.projectId) throw createTargetRefusal()
    if (await hasOtherEvents(new PrivateApi({ ...asking, project: project.id })))
      throw new JobStopped(
        `the project ${project.name ?? projectKey} has events that do not come from a rehearsal, and events sent there are visible at once. Create a project for the rehearsal`,
      )
    return project
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    throw new JobStopped(`the rehearsal project with the key ${projectKey} cannot be checked: ${error.message}`)
  }
}

function createTargetRefusal(): JobStopped {
  return new JobStopped('--rehearsal-project is the target itself; use the key of a test project')
}

async function hasOtherEvents(api: PrivateApi): Promise<boolean> {
  const mark = "JSONExtractString(properties, '$import_job_id')"
  const query = `SELECT event FROM events WHERE NOT endsWith(${mark}, {rehearsal}) LIMIT 1`
  const values = { rehearsal: rehearsalMark }
  const { results } = await api.post('/query/', { query: { kind: 'HogQLQuery', query, values } })
  return !Array.isArray(results) || results.length > 0
}

/** @throws JobPaused, JobStopped */
export async function rehearseInProject(
  run: StageRun,
  { id, name }: KnownProject,
  { projectKey, rate }: { readonly projectKey: string; readonly rate?: number },
) {
  const { plan, progress, signal } = run
  const target = plan.target!
  const manifest = requireManifest(run.folder)
  // The share of the persons whose events are sent.
  const share = Math.min(1, eventsWanted / Math.max(1, readRehearsal(run.folder)!.balance.toSend))
  using whole = openStagedJob(run.folder, manifest)
  const { personOf } = whole
  // The folder is named by the manifest's hash: with other files or another mapping, it is another rehearsal.
  const folder = new JobFolder(run.folder.file('rehearsal-project', `${id}-${hashManifest(manifest).slice(0, 12)}`))
  const job = createSampledJob(whole, share, personOf)
  const { parts } = await runSendStage({
    ...{ folder, job, progress, signal, projectKey, personOf, clock: wallClock, source: plan.source },
    identity: {
      jobId: `${plan.jobId}${rehearsalMark}`,
      serviceJobId: null,
      target: target.address,
      project: id,
      mappingSha256: hashConversionSettings(plan),
    },
    secretJobId: null,
    maxRejectShare: plan.limits.maxRejectShare,
    ...(rate !== undefined && { rate }),
  })
  await waitUntilStreamsProcessed(createServiceApi({ ...target, projectId: id }, signal, progress), progress)
  const { sent, refused } = sumSendCounts(parts.map(({ counts }) => counts))
  return { project: id, name, share, sent, refused }
}

/**
 * All events of some persons, since a sample of events would show no person's history.
 * @param share 0 to 1.
 * @param personOf the person that an id is linked to, or the id itself.
 */
export function createSampledJob(job: StagedJob, share: number, personOf: (distinctId: string) => string): StagedJob {
  // The hash is salted to differ from the hash that assigns lanes; otherwise the whole sample could fall into one lane.
  const isChosen = (distinctId: string) => crc32(`sample ${personOf(distinctId)}`) % buckets < share * buckets
  return {
    parts: job.parts,
    async *readPart(part, afterLine) {
      // Include all groups, so that the groups of the sampled events have their properties.
      const isWhole = part.id.startsWith('groups/')
      for await (const outcome of job.readPart(part, afterLine))
        yield isWhole ? outcome : selectChosenEvents(outcome, isChosen)
    },
  }
}

function selectChosenEvents(outcome: StagedOutcome, isChosen: (distinctId: string) => boolean): StagedOutcome {
  const { result } = outcome
  if (result.kind !== 'events') return outcome
  const events = result.events.filter(({ distinctId }) => isChosen(distinctId))
  if (events.length === 0) return { ...outcome, result: { kind: 'skipped', reason: 'filtered' } }
  return { ...outcome, result: { ...result, events } }
}

export async function printRehearsalInProject(job: Job, sent: RehearsedInProject, json: boolean): Promise<void> {
  if (json) return printJson(sent)
  const refused = sent.refused === 0 ? '' : `, and ${formatCount(sent.refused, 'event was', 'events were')} refused`
  printLines([
    `${formatCount(sent.sent, 'event')} of ${formatPercent(sent.share)} of the persons, with their whole history, ${sent.sent === 1 ? 'is' : 'are'} in the project ${sent.name ?? sent.project}${refused}.`,
    'Nothing was sent to the target.',
    await describeNextStep(job),
  ])
}
