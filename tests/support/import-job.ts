// A job in a separate folder, for tests of the stages of an import.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import { readManifest } from '#importer/job/manifest.ts'
import { hashConversionSettings, type ImportLimits, type ImportPlan } from '#importer/job/plan.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import { isGeneratedPart, type StagedJob, type StagedOutcome, type StagedPart } from '#importer/job/staged-part.ts'
import { unlimitedSpace, type WaitForSpace } from '#importer/read/disk-space.ts'
import { createRecordReader } from '#importer/read/read-files.ts'
import type { ReadRecords } from '#importer/read/read-record.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { createJobConverter } from '#importer/stages/job-conversion.ts'
import { openStagedJob } from '#importer/stages/part-lines.ts'
import { rehearseImport } from '#importer/stages/rehearse.ts'
import { listRejectFiles, type RejectLine } from '#importer/stages/reject-files.ts'
import { type ScanOptions, scanRecords } from '#importer/stages/scan.ts'
import { type StageOptions, stageRecords } from '#importer/stages/stage.ts'
import { silentProgress } from './silent-progress.ts'
import { tempDir } from './temp-dir.ts'

export const limits: ImportLimits = {
  maxRejectShare: 0.01,
  holdLiveWindow: false,
  retentionDays: null,
  groupTypesMax: 5,
}

export interface TestJobOptions {
  readonly config?: JsonObject
  readonly limits?: Partial<ImportLimits>
  readonly sizes?: Pick<StageOptions, 'committedBytes'> & Pick<ScanOptions, 'partBytes'>
  readonly read?: ReadRecords
  /** Called with each record that a stage has finished; may throw, as a crash would. */
  readonly onRecord?: () => void
  /** Called before each few MiB that a stage writes. */
  readonly waitForSpace?: WaitForSpace
}

/** The stages of a job over raw files, as `pennon import run` calls them. */
export class TestJob {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly source: ImportSource
  readonly progress: StageProgress
  readonly signal = new AbortController().signal
  readonly #options: TestJobOptions

  constructor(folder: string, source: ImportSource, files: readonly string[], options: TestJobOptions = {}) {
    this.folder = new JobFolder(folder)
    this.source = source
    this.#options = options
    const { onRecord } = options
    this.progress = { ...silentProgress, add: ({ records = 0 }) => records === 1 && onRecord?.() }
    this.plan = {
      v: 4,
      jobId: 'job-1',
      createdAt: '2026-01-15T00:00:00.000Z',
      toolVersion: '0.0.0',
      source: source.name,
      config: options.config ?? {},
      files: files.map(path => ({ path, object: path.slice(path.lastIndexOf('/') + 1) })),
      fetch: null,
      format: null,
      target: null,
      limits: { ...limits, ...options.limits },
    }
  }

  get #context() {
    const { folder, plan, source, progress, signal } = this
    const { waitForSpace = unlimitedSpace, sizes } = this.#options
    return { folder, plan, source, progress, signal, waitForSpace, ...sizes }
  }

  get manifest() {
    return readManifest(this.folder)!
  }

  async stage(): Promise<void> {
    const { converter } = createJobConverter(this.plan, this.source, () => null)
    const { read = createRecordReader({ spool: { folder: this.folder.file('spool') } }) } = this.#options
    using records = await stageRecords({ ...this.#context, read, converter })
    records.complete(hashConversionSettings(this.plan))
  }

  scan() {
    return scanRecords(this.#context)
  }

  /** Both, as after a plan or its files have changed. */
  async stageAndScan() {
    await this.stage()
    return this.scan()
  }

  async rehearse() {
    return rehearseImport({ ...this.#context, manifest: this.manifest, monotonicNowMs: () => 0 })
  }

  /** All stages before the approval. */
  async report() {
    await this.stageAndScan()
    return this.rehearse()
  }

  open() {
    return openStagedJob(this.folder, this.manifest)
  }
}

type FileContent = string | Buffer | readonly object[]

/** @param files by name; those without a name are JSON lines. Records are written as lines of JSON. */
export function jobOf(
  t: TestContext,
  files: readonly FileContent[] | Readonly<Record<string, FileContent>>,
  source: ImportSource,
  options: TestJobOptions = {},
): TestJob {
  const raw = tempDir(t)
  const paths = Object.entries(files).map(([name, content]) => {
    const path = join(raw, Array.isArray(files) ? `${name}.jsonl` : name)
    writeFileSync(path, typeof content === 'string' || Buffer.isBuffer(content) ? content : jsonLines(content))
    return path
  })
  return new TestJob(tempDir(t), source, paths, options)
}

export function jsonLines(records: readonly object[]): string {
  return records.map(record => `${JSON.stringify(record)}\n`).join('')
}

/** Stops a stage after some records, as a crash would. */
export class StopSwitch {
  /** How many records are left before the stop. */
  left = Number.POSITIVE_INFINITY

  readonly onRecord = (): void => {
    if (this.left-- === 0) throw new Error('stopped here')
  }

  /** Runs a stage again until nothing stops it. @param leftOf how many records each run may finish. */
  async runUntilDone(run: () => Promise<unknown>, leftOf: () => number, onStopped = () => {}): Promise<void> {
    for (let isDone = false; !isDone; onStopped()) {
      this.left = leftOf()
      isDone = await run().then(
        () => true,
        error => {
          assert.match(String(error), /stopped here/)
          return false
        },
      )
    }
    this.left = Number.POSITIVE_INFINITY
  }
}

/** Of the last rehearsal, in the order of the file. */
export function rejectsOf({ folder }: TestJob): RejectLine[] {
  const texts = listRejectFiles(folder).flatMap(({ path }) => readFileSync(path, 'utf8').split('\n').slice(0, -1))
  return texts.map(text => JSON.parse(text) as RejectLine).toSorted((a, b) => a.line - b.line)
}

/** What all records were converted to, and the events made from several of them. */
export async function resultsOf(job: TestJob) {
  using staged = job.open()
  const outcomes = await outcomesOf(staged)
  const results = outcomes.map(({ result }) => result)
  const events = results.flatMap(result => (result.kind === 'events' ? result.events : []))
  return { outcomes, results, events, generated: await generatedOf(staged) }
}

/** What the records of the files were converted to. */
export async function outcomesOf(job: StagedJob): Promise<StagedOutcome[]> {
  return outcomesIn(job, part => !isGeneratedPart(part))
}

/** The events made from several records, in the order of sending. */
export async function generatedOf(job: StagedJob): Promise<ImportedEvent[]> {
  const outcomes = await outcomesIn(job, isGeneratedPart)
  return outcomes.flatMap(({ result }) => (result.kind === 'events' ? result.events : []))
}

async function outcomesIn(job: StagedJob, isWanted: (part: StagedPart) => boolean): Promise<StagedOutcome[]> {
  const outcomes: StagedOutcome[] = []
  for (const part of job.parts.filter(isWanted)) for await (const outcome of job.readPart(part)) outcomes.push(outcome)
  return outcomes
}
