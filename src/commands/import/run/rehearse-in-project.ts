// `pennon import run FOLDER --rehearsal-project KEY`: sends the whole history of some persons to a project for tests, and
// compares its events with the target. Source: docs/wire/import.md §2.7, §2.11.

import { tableLines } from '#commands/client/table.ts'
import { type Terminal, terminalOf } from '#commands/client/terminal.ts'
import { printable } from '#core/printable.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { hashMapping } from '#importer/job/plan.ts'
import { createSampledJob, rehearsalMark } from '#importer/send/sampled-job.ts'
import { sendStage } from '#importer/send/send-stage.ts'
import { openStagedJob } from '#importer/stages/open-staged-job.ts'
import { compareProjects, type ProjectDiff } from '#importer/verify/compare-projects.ts'
import { collectExpectedEvents } from '#importer/verify/expected-events.ts'
import { waitForStream } from '#importer/verify/verify-stage.ts'
import { requireManifest, type StageRun } from '../job/job-stages.ts'
import { quotePath } from '../messages/next-line.ts'
import { printJson } from '../messages/print.ts'
import { createServiceApi, wallClock } from '../service/service-api.ts'

export interface RehearsalProject {
  readonly projectKey: string
  /** Its id. */
  readonly project: string
  /** The share of the persons, 0 to 1. */
  readonly share: number
  readonly rate?: number
}

/** @throws JobPaused, JobStopped */
export async function rehearseInProject(run: StageRun, options: RehearsalProject): Promise<ProjectDiff> {
  const { plan, source, progress, signal } = run
  const { projectKey, project, share, rate } = options
  const { target } = plan
  if (target === null) throw new JobStopped('the plan has no target, so the URL of the rehearsal project is unknown')
  const rehearsalApi = createServiceApi({ ...target, projectId: project }, progress, signal)
  const manifest = requireManifest(run.folder)
  const whole = openStagedJob({ folder: run.folder, plan, manifest, source })
  try {
    const personOf = (id: string) => whole.personOf(id)
    const job = createSampledJob(whole, share, personOf)
    const mapping = hashMapping(plan)
    // Another share or mapping is another rehearsal.
    const folder = new JobFolder(run.folder.file('rehearsal-project', `${project}-${share}-${mapping.slice(0, 8)}`))
    const checkpoint = await sendStage({
      ...{ folder, job, progress, signal, projectKey, personOf, clock: wallClock, source: plan.source },
      identity: {
        jobId: `${plan.jobId}${rehearsalMark}`,
        serviceJobId: null,
        target: target.address,
        project,
        approvalSha256: 'rehearsal',
        mappingSha256: mapping,
      },
      secretJobId: null,
      maxRejectShare: plan.limits.maxRejectShare,
      ...(rate !== undefined && { rate }),
    })
    const { names } = await collectExpectedEvents({ folder, job, checkpoint, progress, signal })
    await waitForStream(rehearsalApi, progress)
    const diff = await compareProjects(names, rehearsalApi, createServiceApi(target, progress, signal))
    run.folder.writeJson('rehearsal-project/diff.json', diff)
    return diff
  } finally {
    whole.close()
  }
}

export function printDiff(diff: ProjectDiff, path: string, json: boolean): void {
  if (json) {
    printJson(diff)
    return
  }
  process.stdout.write(`${diffLines(diff, path, terminalOf(process.stdout)).join('\n')}\n`)
}

export function diffLines(diff: ProjectDiff, path: string, terminal: Terminal): readonly string[] {
  const count = (value: number | undefined) => (value ?? 0).toLocaleString('en')
  const columns = [
    { title: 'Event', value: (row: ProjectDiff['rows'][number]) => row.event, widthMin: 12 },
    { title: 'Sent', value: (row: ProjectDiff['rows'][number]) => count(row.sent), align: 'right' as const },
    {
      title: 'Rehearsal',
      value: (row: ProjectDiff['rows'][number]) => count(row.rehearsal?.events),
      align: 'right' as const,
    },
    {
      title: 'Persons',
      value: (row: ProjectDiff['rows'][number]) => count(row.rehearsal?.persons),
      align: 'right' as const,
    },
    {
      title: 'Target',
      value: (row: ProjectDiff['rows'][number]) => count(row.target?.events),
      align: 'right' as const,
    },
  ]
  const messages = [
    ...(diff.missing.length === 0
      ? ['All sent events are in the rehearsal project.']
      : [`Missing from the rehearsal project: ${diff.missing.join(', ')}.`]),
    ...(diff.newInTarget.length === 0 ? [] : [`New to the target: ${diff.newInTarget.join(', ')}.`]),
    'Nothing was sent to the target.',
    `Next: pennon import approve ${quotePath(path)} (after reading the report: pennon import report ${quotePath(path)})`,
  ]
  return [...tableLines(columns, diff.rows, terminal), '', ...messages.map(printable)]
}
