// The stages of a job in order. Each knows whether it is done, so a run continues with the first that is not.
// Source: docs/wire/import.md §2.1.

import { statSync } from 'node:fs'
import { type ApprovedParts, hashManifest } from '#importer/job/approval.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { type Manifest, manifestFile, readManifest } from '#importer/job/manifest.ts'
import { hashMapping, type ImportPlan, writePlan } from '#importer/job/plan.ts'
import type { StageName, StageProgress } from '#importer/job/progress.ts'
import type { FindSpaceProblem, WaitForSpace } from '#importer/read/disk-space.ts'
import { createRecordReader } from '#importer/read/read-files.ts'
import { listSources } from '#importer/sources/sources.ts'
import { createJobConversion } from '#importer/stages/job-conversion.ts'
import { checkUnchanged } from '#importer/stages/raw-sources.ts'
import { rehearse } from '#importer/stages/rehearse.ts'
import { deleteRehearsalRejects } from '#importer/stages/reject-files.ts'
import { readRehearsal, reportNames } from '#importer/stages/report/import-report.ts'
import { deleteScan, readScan, readStats, scanRecords } from '#importer/stages/scan.ts'
import { stageRecords } from '#importer/stages/stage.ts'
import { checkZone } from '#importer/stages/zone-shift.ts'
import { quotePath } from '../messages/next-line.ts'
import { askTargetFacts } from '../service/ask-target-facts.ts'
import { addKnownProject } from '../service/known-project.ts'
import type { Job } from './open-job.ts'
import { planWithProfileTime } from './profile-time.ts'

export interface StageRun extends Job {
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** Checks the reserve on the folder's disk, for downloads. */
  readonly findSpaceProblem: FindSpaceProblem
  /** Waits while only the reserve is free. */
  readonly waitForSpace: WaitForSpace
}

export interface JobStage {
  readonly name: StageName
  /** @throws JobStopped when its result is outdated and running it again would not help. */
  isDone(job: Job): boolean | Promise<boolean>
  run(run: StageRun): Promise<void>
}

export const stage: JobStage = {
  name: 'stage',
  async isDone({ folder, plan }) {
    const manifest = readManifest(folder)
    if (manifest === null) return false
    if (manifest.mappingSha256 !== hashMapping(plan)) return false
    await checkUnchanged(manifest.raw)
    return (await planWithProfileTime(folder, plan, manifest)) === null
  },
  async run({ folder, plan, source, progress, signal, waitForSpace }) {
    removeStageResults(folder)
    const spool = { folder: folder.file('spill'), waitForSpace }
    const read = createRecordReader(plan.format === null ? { spool } : { spool, format: plan.format })
    const stageBy = (current: ImportPlan) => {
      const { converter } = createJobConversion(current, source, () => null)
      return stageRecords({ folder, plan: current, read, converter, progress, signal, waitForSpace })
    }
    const withTime = await planWithProfileTime(folder, plan, await stageBy(plan))
    if (withTime === null) return
    progress.say(
      `Profiles have no time: using that of the last event, ${String(withTime.config.profile_timestamp)} (override with --profile-timestamp). Staging again.`,
    )
    writePlan(folder, withTime)
    folder.remove(manifestFile)
    await stageBy(withTime)
  },
}

export const scan: JobStage = {
  name: 'scan',
  isDone({ folder }) {
    const manifest = requireManifest(folder)
    const stats = readScan(folder, manifest)
    if (stats === null) return false
    checkZone(stats, manifest.sourceTimezone)
    return true
  },
  async run({ folder, plan, source, progress, signal, waitForSpace }) {
    await scanRecords({ folder, plan, manifest: requireManifest(folder), source, progress, signal, waitForSpace })
  },
}

export const rehearsal: JobStage = {
  name: 'rehearse',
  isDone({ folder, plan }) {
    const report = readRehearsal(folder)
    return (
      report !== null &&
      report.hashes.manifest === hashManifest(requireManifest(folder)) &&
      report.hashes.mapping === hashMapping(plan)
    )
  },
  async run(run) {
    const { folder, source, progress, signal, waitForSpace } = run
    const plan = await addKnownProject(folder, run.plan)
    const stats = readStats(folder)!
    const manifest = requireManifest(folder)
    await rehearse({
      ...{ folder, plan, manifest, stats, source, progress, signal, waitForSpace },
      otherSources: listSources().filter(({ name }) => name !== source.name),
      monotonicNowMs: () => performance.now(),
      nowMs: Date.now,
      askTarget: asked => askTargetFacts({ ...run, plan }, asked),
    })
  },
}

/** The stages before the approval. */
export const stagesToRehearse: readonly JobStage[] = [stage, scan, rehearsal]

/** Removes the output of the stages, which is wrong for another mapping. */
export function removeStageResults(folder: Job['folder']): void {
  folder.remove(manifestFile, 'rehearsal', ...Object.values(reportNames))
  deleteRehearsalRejects(folder)
  deleteScan(folder)
}

export function requireManifest(folder: Job['folder']): Manifest {
  const manifest = readManifest(folder)
  if (manifest === null)
    throw new JobStopped(`${folder.path} has not been staged yet: pennon import run ${quotePath(folder.path)}`)
  return manifest
}

/** The present state of everything that an approval covers. */
export function collectApprovedParts({ folder, plan }: Pick<Job, 'folder' | 'plan'>): ApprovedParts {
  return { plan, manifest: requireManifest(folder), ledgerSha256: readStats(folder)?.ledgerSha256 ?? null }
}

/** @returns bytes; 0 for a missing file. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
