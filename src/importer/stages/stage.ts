// Stage 2: reads the raw files in order and stores their records with their times, for the scan to read them in the order
// of time. A killed run continues at the record after its last commit. Source: docs/wire/import.md §2.1, §2.2, §2.5.

import { statSync } from 'node:fs'
import { formatCount } from '#core/format-count.ts'
import { JobStopped, throwIfPaused } from '../job/job-paused.ts'
import type { RawObject, RawSource } from '../job/manifest.ts'
import { hashConversionSettings } from '../job/plan.ts'
import type { CsvHeader } from '../read/parse-record.ts'
import type { RawFile, ReadRecord, ReadRecords } from '../read/read-record.ts'
import type { RecordConverter, SourceRecord } from '../records/import-source.ts'
import { RecordReject } from '../records/imported-event.ts'
import type { StageContext } from './job-conversion.ts'
import { checkUnchangedWhileRead, hashRawFile, isUnchangedSinceHashed } from './raw-sources.ts'
import { describeDamage, findFileDamage } from './report/rejects.ts'
import { decodeRecord, encodeRecordContent, encodeRecordPlace } from './staged-line.ts'
import { type NewRecord, StagedRecords } from './staged-records.ts'

const committedBytesDefault = 16 * 1024 * 1024
/**
 * Limit of the manifest's list of files, including files in archives, in characters of JSON. In memory the list takes about
 * ten times that. Enough for 500,000 files in archives, or half as many on disk.
 */
const listedCharsMax = 64 * 2 ** 20
/** Characters of JSON for a file's hash, size and time, in addition to its path. */
const fileCharsMin = 200
const damagesSaid = 20

export interface StageOptions extends StageContext {
  readonly read: ReadRecords
  /** Prepared without facts of other records, since no time depends on them. */
  readonly converter: RecordConverter
  /** Bytes of records per commit; fewer in tests. */
  readonly committedBytes?: number
}

/** @returns the records of all files, which the caller completes and closes. @throws JobStopped, JobPaused */
export async function stageRecords(options: StageOptions): Promise<StagedRecords> {
  const { plan, progress, waitForSpace } = options
  const objects = new ListedObjects(plan.files)
  progress.begin('stage', {})
  progress.waiting('the hashes of the files')
  const records = await openRecords(options)
  try {
    progress.begin('stage', { bytes: records.sources.reduce((sum, { bytes }) => sum + bytes, 0) })
    // Wait for disk space before writing: otherwise a run that a full disk stopped would fail again at once.
    await waitForSpace()
    await readFiles(records, objects, options)
    checkUnchangedWhileRead(records.sources)
    return records
  } catch (error) {
    records.close()
    throw error
  }
}

/** Continues a stopped run if neither the files nor the plan have changed since. */
async function openRecords({ folder, plan, signal }: StageOptions): Promise<StagedRecords> {
  const mapping = hashConversionSettings(plan)
  const known = StagedRecords.open(
    folder,
    each => each.mapping === mapping && each.sources.every(isUnchangedSinceHashed),
  )
  if (known !== null) return known
  const sources: RawSource[] = []
  for (const file of plan.files) {
    throwIfPaused(signal)
    sources.push(await hashRawFile(file, signal))
  }
  return StagedRecords.create(folder, mapping, sources)
}

async function readFiles(records: StagedRecords, objects: ListedObjects, options: StageOptions): Promise<void> {
  const { plan, progress } = options
  const done = records.files()
  for (const object of done.flatMap(file => file.objects)) objects.add(object)
  const recordsDone = done.reduce((sum, file) => sum + file.records, 0)
  progress.add({ records: recordsDone, isEarlier: true })
  const batch = new Batch(records, records.count - recordsDone, options)
  records.begin()
  for (const [index, file] of plan.files.entries())
    if (index < done.length) progress.add({ bytes: readSizeOnDisk(file), isEarlier: true })
    else {
      const first = objects.all.length
      const count = await readFile(file, objects, batch, options)
      records.endFile(index, { objects: objects.all.slice(first), records: count })
    }
  records.commit()
  if (objects.damaged > damagesSaid) progress.say(`${formatCount(objects.damaged, 'file')} are damaged in total.`)
}

/** The objects of the raw files, by index. */
class ListedObjects {
  readonly all: RawObject[] = []
  damaged = 0
  #charsLeft = listedCharsMax

  /** @throws JobStopped */
  constructor(files: readonly RawFile[]) {
    for (const { path, object } of files) this.#take(path.length + object.length + fileCharsMin)
  }

  /** @returns the object's index. @throws JobStopped */
  add(object: RawObject): number {
    this.#take(JSON.stringify(object).length)
    if (object.damage !== undefined) this.damaged++
    return this.all.push(object) - 1
  }

  /** @throws JobStopped */
  change(index: number, change: Pick<RawObject, 'damage' | 'blank'>): void {
    this.#take(JSON.stringify(change).length)
    if (change.damage !== undefined) this.damaged++
    this.all[index] = { ...this.all[index]!, ...change }
  }

  #take(chars: number): void {
    this.#charsLeft -= chars
    if (this.#charsLeft < 0)
      throw new JobStopped(
        'The export has more files, including those in archives, than one import can list. Plan several imports, each with some of the files',
      )
  }
}

/** Adds records, and commits them from time to time. */
class Batch {
  readonly #records: StagedRecords
  readonly #options: StageOptions
  #bytes = 0
  #known: number

  /** @param known how many records of the next file an earlier run has stored. */
  constructor(records: StagedRecords, known: number, options: StageOptions) {
    this.#records = records
    this.#options = options
    this.#known = known
  }

  /** Whether an earlier run has stored the next record. */
  isKnown(): boolean {
    return this.#known > 0 && this.#known-- > 0
  }

  /** Whether the record still fits into the open transaction. */
  holds({ json, extra }: NewRecord): boolean {
    const { committedBytes = committedBytesDefault } = this.#options
    return this.#bytes === 0 || this.#bytes + json.length + extra.length <= committedBytes
  }

  async commit(): Promise<void> {
    this.#records.commit()
    this.#bytes = 0
    await this.#options.waitForSpace()
    this.#records.begin()
  }

  add(record: NewRecord, hasFacts: boolean): void {
    this.#records.add(record, hasFacts)
    this.#bytes += record.json.length + record.extra.length
  }
}

/** @returns bytes; 0 for a missing file. */
function readSizeOnDisk({ path }: RawFile): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** @returns how many records of the file are stored. */
async function readFile(
  file: RawFile,
  objects: ListedObjects,
  batch: Batch,
  { read, converter, progress, signal }: StageOptions,
): Promise<number> {
  const blanks = new Map<number, { count: number; readonly firstLine: number }>()
  const indexes = new Map<string, number>()
  const ordinals = new Map<string, number>()
  let [bytesRead, recordsRead, stored] = [0, 0, 0]
  const onDiskBytes = (bytes: number) => {
    bytesRead += bytes
    progress.add({ bytes })
  }
  for await (const record of read(file, onDiskBytes)) {
    throwIfPaused(signal)
    const { raw, table, parsed } = record
    const name = JSON.stringify([raw.object, table])
    const object = indexes.getOrInsertComputed(name, () =>
      objects.add({ object: raw.object, table, ...selectHeader(record) }),
    )
    const damage = findFileDamage(record, recordsRead)
    if (damage === null) recordsRead++
    else if (objects.all[object]!.damage === undefined) {
      objects.change(object, { damage })
      if (objects.damaged <= damagesSaid) progress.say(describeDamage({ object: raw.object, ...damage }))
    }
    const ordinal = (ordinals.get(raw.object) ?? 0) + 1
    ordinals.set(raw.object, ordinal)
    if ('skipped' in parsed && parsed.skipped === 'blank_line') {
      blanks.getOrInsertComputed(object, () => ({ count: 0, firstLine: raw.line })).count++
      progress.add({ records: 1 })
      continue
    }
    stored++
    if (!batch.isKnown()) {
      const sourceRecord = 'value' in parsed ? { value: parsed.value, table, ordinal } : null
      const timeUs = sourceRecord && findTime(converter, sourceRecord)
      const hasFacts = sourceRecord !== null && (converter.factsOf?.(sourceRecord) ?? []).length > 0
      const place = encodeRecordPlace({ object, line: raw.line, byte: raw.byte, ordinal })
      const added = { ...encodeRecordContent(record), timeUs, place }
      if (!batch.holds(added)) await batch.commit()
      batch.add(added, hasFacts)
    }
    progress.add({ records: 1, rejects: 'rejected' in parsed ? 1 : 0 })
  }
  progress.add({ bytes: Math.max(0, readSizeOnDisk(file) - bytesRead) })
  for (const [index, blank] of blanks) objects.change(index, { blank })
  return stored
}

/** A CSV header with more characters is not stored, since no user could repair a row with it. */
const keptHeaderMax = 64 * 1024

/** Rejects show column names next to the cells, and repaired rows are read with these names. */
function selectHeader({ header }: ReadRecord): Partial<CsvHeader> {
  const chars = header?.columns.reduce((sum, name) => sum + name.length, 0) ?? 0
  return header === undefined || chars > keptHeaderMax ? {} : header
}

/** Sets the times of records that had none, with a converter that gives them a time. */
export function setUnknownTimes(records: StagedRecords, converter: RecordConverter): void {
  const objects = records.files().flatMap(file => file.objects)
  records.setUnknownTimes(record => {
    const { parsed, ordinal, raw } = decodeRecord(record, objects)
    return 'value' in parsed ? findTime(converter, { value: parsed.value, table: raw.table, ordinal }) : null
  })
}

/** The time by which a record is sorted; null if the record has no time, or an unreadable time. */
function findTime(converter: RecordConverter, record: SourceRecord): number | null {
  try {
    return converter.timeOf(record)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return null
  }
}
