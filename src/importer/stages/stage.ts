// Stage 2: sorts the raw files into parts of one event day each, in time order, and writes the manifest, which fixes their
// bytes. The result depends only on the files and the plan, wherever a run was stopped.
// Source: docs/wire/import.md §2.1, §2.2, §2.5.

import { rmSync } from 'node:fs'
import { unlimitedSpace, type WaitForSpace } from '#importer/read/disk-space.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause } from '../job/job-paused.ts'
import { type Manifest, type RawSource, rawSourceSchema, writeManifest } from '../job/manifest.ts'
import { hashMapping, type ImportPlan } from '../job/plan.ts'
import type { StageProgress } from '../job/progress.ts'
import { type StagedPart, stagedPartSchema } from '../job/staged-part.ts'
import type { ReadRecords } from '../read/read-record.ts'
import { Type } from '../records/file-schema.ts'
import type { RecordConverter } from '../records/import-source.ts'
import { formatTime } from '../records/source-time.ts'
import { PartWriter, partBytesMax } from './part-writer.ts'
import { checkUnchangedWhileRead, hashRawFile } from './raw-sources.ts'
import { readSortedDay } from './sort-day.ts'
import { checkFileCount, nameDayFile, spill, unknownDay } from './spill.ts'

export interface StageOptions {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly read: ReadRecords
  /** Prepared without facts of other records, since no time depends on them. */
  readonly converter: RecordConverter
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** Without it, the disk may be filled completely. */
  readonly waitForSpace?: WaitForSpace
  /** Bytes to buffer and to sort at once, and the maximum size of a part; smaller in tests. */
  readonly sizes?: { readonly held: number; readonly sorted: number; readonly part: number }
}

const hashesFile = 'spill/raw.json'
const hashesSchema = Type.Object({ mapping: Type.String(), sources: Type.Array(rawSourceSchema) })
const sortedDaysFile = 'spill/sorted.jsonl'
const sortedDaySchema = Type.Object({ day: Type.String(), partsOfDay: Type.Array(stagedPartSchema) })

export async function stageRecords(options: StageOptions): Promise<Manifest> {
  const { folder, plan, progress, sizes } = options
  checkFileCount(plan.files)
  progress.begin('stage', {})
  progress.waiting('the hashes of the files')
  const raw = await readRawSources(options)
  progress.begin('stage', { bytes: raw.reduce((sum, { bytes }) => sum + bytes, 0) })
  const done = readSortedDays(folder)
  const { objects, days } = await spill({
    ...options,
    files: plan.files,
    sorted: done,
    ...(sizes && { heldBytesMax: sizes.held }),
  })
  checkUnchangedWhileRead(raw)
  progress.begin('stage', { bytes: Object.values(days).reduce((sum, bytes) => sum + bytes, 0), unit: 'records sorted' })
  const parts = await sortDays(options, days, done)
  const manifest = createManifest(plan, { raw, objects, parts })
  writeManifest(folder, manifest)
  folder.remove('spill')
  return manifest
}

/** The hashes of all files, from when the stage first began. */
async function readRawSources({ folder, plan, signal }: StageOptions): Promise<readonly RawSource[]> {
  const mapping = hashMapping(plan)
  const known = folder.readJson(hashesFile, hashesSchema)
  if (known !== null && known.mapping === mapping && areSourcesUnchanged(known.sources)) return known.sources
  // Records of an older version of a file, or with times read by another mapping, may already be spilled.
  folder.remove('spill', 'staged')
  const sources: RawSource[] = []
  for (const file of plan.files) {
    checkPause(signal)
    sources.push(await hashRawFile(file, signal))
  }
  folder.writeJson(hashesFile, { mapping, sources })
  return sources
}

function areSourcesUnchanged(sources: readonly RawSource[]): boolean {
  try {
    checkUnchangedWhileRead(sources)
    return true
  } catch {
    return false
  }
}

/** Sorts the oldest day first, and the records without a day last. */
async function sortDays(
  options: StageOptions,
  bytesOf: Readonly<Record<string, number>>,
  done: ReadonlyMap<string, readonly StagedPart[]>,
): Promise<StagedPart[]> {
  const { folder, progress, signal } = options
  const parts: StagedPart[] = []
  const days = Object.keys(bytesOf)
  for (const day of [...days.filter(each => each !== unknownDay).toSorted(), unknownDay]) {
    if (!days.includes(day)) continue
    checkPause(signal)
    progress.day(day)
    const known = done.get(day)
    const partsOfDay = known ?? (await sortOneDay(day, options))
    if (known !== undefined) progress.add({ records: sumRecords(known), bytes: bytesOf[day]!, isEarlier: true })
    else folder.appendLine(sortedDaysFile, { day, partsOfDay })
    rmSync(nameDayFile(folder, day), { force: true })
    parts.push(...partsOfDay)
  }
  progress.day(null)
  return parts
}

async function sortOneDay(
  day: string,
  { folder, progress, signal, sizes, waitForSpace = unlimitedSpace }: StageOptions,
): Promise<readonly StagedPart[]> {
  const writer = new PartWriter(folder, day, sizes?.part ?? partBytesMax)
  for await (const { bytes, key } of readSortedDay(folder, day, sizes?.sorted, waitForSpace)) {
    checkPause(signal)
    // Do not wait for a day of a single part: it frees space, since its spilled lines are removed afterwards.
    if (!writer.holds(bytes)) await waitForSpace()
    writer.add(bytes, key)
    progress.add({ records: 1, bytes: bytes.length })
  }
  writer.end()
  return writer.parts
}

/** The days that earlier runs have sorted. */
function readSortedDays(folder: JobFolder): Map<string, readonly StagedPart[]> {
  const lines = folder.readLines(sortedDaysFile, sortedDaySchema)
  return new Map(lines.map(({ day, partsOfDay }) => [day, partsOfDay]))
}

function sumRecords(counted: readonly { readonly records: number }[]): number {
  return counted.reduce((sum, { records }) => sum + records, 0)
}

function createManifest(
  plan: ImportPlan,
  { raw, objects, parts }: Pick<Manifest, 'raw' | 'objects' | 'parts'>,
): Manifest {
  const known = parts.filter(({ firstUs }) => firstUs !== null)
  const zone = plan.config.source_timezone
  return {
    v: 1,
    jobId: plan.jobId,
    source: plan.source,
    sourceTimezone: typeof zone === 'string' ? zone : null,
    createdAt: plan.createdAt,
    toolVersion: plan.toolVersion,
    mappingSha256: hashMapping(plan),
    raw,
    objects,
    parts,
    totals: {
      records: sumRecords(parts),
      bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
      days: new Set(known.map(({ id }) => id.split('/')[0])).size,
    },
    sourceRange:
      known.length === 0 ? null : { first: formatTime(known[0]!.firstUs!), last: formatTime(known.at(-1)!.lastUs!) },
  }
}
