// The stages of a job in order. Each stage knows whether it is done, so a run continues with the first stage that is not.
// Source: docs/wire/import.md §2.1.

import { hashManifest } from '#importer/job/approval.ts'
import { JobDatabase } from '#importer/job/job-database.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import { type Manifest, manifestFile, readManifest } from '#importer/job/manifest.ts'
import { hashConversionSettings, type ImportPlan, writePlan } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import type { FindSpaceProblem, WaitForSpace } from '#importer/read/disk-space.ts'
import { createRecordReader } from '#importer/read/read-files.ts'
import { listSources } from '#importer/sources/sources.ts'
import { createJobConverter } from '#importer/stages/job-conversion.ts'
import { checkSourcesUnchanged } from '#importer/stages/raw-sources.ts'
import { rehearseImport } from '#importer/stages/rehearse.ts'
import { type Rehearsal, readRehearsal, reportNames } from '#importer/stages/report/import-report.ts'
import { openFullyStagedRecords, readFinishedScan, scanRecords } from '#importer/stages/scan.ts'
import { setUnknownTimes, stageRecords } from '#importer/stages/stage.ts'
import { StagedRecords } from '#importer/stages/staged-records.ts'
import { checkConfiguredZone } from '#importer/stages/zone-shift.ts'
import { quotePath } from '../messages/print.ts'
import { addKnownProjectToPlan } from '../service/known-project.ts'
import { queryTargetFacts } from '../service/query-target-facts.ts'
import type { Job } from './open-job.ts'
import { addPersonProfileTimeToPlan } from './profile-time.ts'

export interface StageRun extends Job {
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** Checks before each download that the reserve on the folder's disk stays free. */
  readonly findSpaceProblem: FindSpaceProblem
  /** Waits while no more than the reserve is free on the disk. */
  readonly waitForSpace: WaitForSpace
}

export interface JobStage {
  /** @throws JobStopped when the stage's result is outdated and running the stage again would not help. */
  isDone(job: Job): boolean | Promise<boolean>
  run(run: StageRun): Promise<void>
}

const stage: JobStage = {
  async isDone({ folder, plan }) {
    const scanned = readFinishedScan(folder, plan)
    if (scanned !== null) {
      await checkSourcesUnchanged(scanned.raw)
      return true
    }
    using records = openFullyStagedRecords(folder, plan)
    if (records !== null) await checkSourcesUnchanged(records.sources)
    return records !== null
  },
  async run({ folder, plan, source, progress, signal, waitForSpace }) {
    removeStageResults(folder)
    const spool = { folder: folder.file('spool'), waitForSpace }
    const read = createRecordReader(plan.format === null ? { spool } : { spool, format: plan.format })
    const { converter } = createJobConverter(plan, source, () => null)
    using records = await stageRecords({ folder, plan, read, converter, progress, signal, waitForSpace })
    const withTime = addPersonProfileTimeToPlan(plan, records)
    if (withTime !== null) {
      progress.say(
        `Profiles have no time: using that of the last event, ${String(withTime.config.profile_timestamp)} (override with --profile-timestamp).`,
      )
      // Write the plan before the times are set: after a crash in between, everything is staged again with the new plan.
      writePlan(folder, withTime)
      setUnknownTimes(records, createJobConverter(withTime, source, () => null).converter)
    }
    records.complete(hashConversionSettings(withTime ?? plan))
    folder.remove('spool')
  },
}

const scan: JobStage = {
  isDone({ folder, plan }) {
    const manifest = readFinishedScan(folder, plan)
    if (manifest === null) return false
    checkConfiguredZone(manifest.scan.zoneNotes, manifest.sourceTimezone)
    return true
  },
  async run({ folder, plan, source, progress, signal, waitForSpace }) {
    await scanRecords({ folder, plan, source, progress, signal, waitForSpace })
  },
}

const rehearsal: JobStage = {
  isDone: ({ folder, plan }) => isReportCurrent(readRehearsal(folder), requireManifest(folder), plan),
  async run(run) {
    const { folder, source, progress, signal, waitForSpace } = run
    // Remove the staged records, which a crash after the scan may have left behind.
    StagedRecords.remove(folder)
    const plan = await addKnownProjectToPlan(folder, run.plan)
    const manifest = requireManifest(folder)
    await rehearseImport({
      ...{ folder, plan, manifest, progress, signal, waitForSpace },
      otherSources: listSources().filter(({ name }) => name !== source.name),
      monotonicNowMs: () => performance.now(),
      nowMs: Date.now,
      askTarget: asked => queryTargetFacts({ ...run, plan }, asked),
    })
  },
}

/** The stages before the approval. */
export const stagesToRehearse: readonly JobStage[] = [stage, scan, rehearsal]

/** Whether a report describes the job in its current state. */
export function isReportCurrent(report: Rehearsal | null, manifest: Manifest, plan: ImportPlan): boolean {
  return report?.hashes.manifest === hashManifest(manifest) && report.hashes.mapping === hashConversionSettings(plan)
}

/** Removes the output of the stages when the mapping has changed, since it is wrong for the new mapping. */
export function removeStageResults(folder: Job['folder']): void {
  folder.remove(manifestFile, 'rejects', 'rehearsal', ...Object.values(reportNames))
  JobDatabase.remove(folder)
}

export function requireManifest(folder: Job['folder']): Manifest {
  const manifest = readManifest(folder)
  if (manifest === null)
    throw new JobStopped(`${folder.path} has not been staged yet: pennon import run ${quotePath(folder.path)}`)
  return manifest
}
