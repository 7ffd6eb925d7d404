// The first half of staging: reads the raw files in order and writes their records to one file per event day. Progress is
// noted after every raw file, so a killed run continues with the file that it had not finished.

import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { formatCount } from '#core/format-count.ts'
import { unlimitedSpace, type WaitForSpace } from '#importer/read/disk-space.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause, JobStopped } from '../job/job-paused.ts'
import { type RawObject, rawObjectSchema } from '../job/manifest.ts'
import type { StageProgress } from '../job/progress.ts'
import { appendToFile, cutFile } from '../read/own-files.ts'
import type { RawFile, ReadRecord, ReadRecords } from '../read/read-record.ts'
import { Type } from '../records/file-schema.ts'
import type { RecordConverter, SourceRecord } from '../records/import-source.ts'
import { RecordReject } from '../records/imported-event.ts'
import { utcDay } from '../records/source-time.ts'
import { describeDamage, findDamage } from './report/rejects.ts'
import { encodeLine, type LineKey } from './staged-line.ts'

export const unknownDay = 'unknown-day'
const heldBytesMax = 16 * 1024 * 1024
const lineEnd = Buffer.from('\n')
/**
 * Limit of the manifest's list of files, including files in archives, in characters of JSON. In memory the list takes about
 * ten times that. Enough for 500,000 files in archives, or half as many on disk.
 */
const listedCharsMax = 64 * 2 ** 20
/** For a file's hash, size and time, in addition to its path. */
const fileCharsMin = 200
const damagesSaid = 20
const noteFile = 'spill/done.jsonl'

/** The records written so far. */
export interface Spilled {
  readonly objects: readonly RawObject[]
  /** Bytes by event day. */
  readonly days: Readonly<Record<string, number>>
}

/** A line for each raw file that was read to the end: its objects, and the new lengths of the days that it added to. */
const noteSchema = Type.Object({
  objects: Type.Array(rawObjectSchema),
  days: Type.Record(Type.Number()),
})

export interface SpillOptions {
  readonly folder: JobFolder
  readonly files: readonly RawFile[]
  readonly read: ReadRecords
  readonly converter: RecordConverter
  readonly progress: StageProgress
  readonly signal: AbortSignal
  readonly heldBytesMax?: number
  readonly waitForSpace?: WaitForSpace
  /** Days that are already sorted, whose spilled lines are no longer needed. */
  readonly sorted: { has(day: string): boolean }
}

/** Spills the records of all files without a note. */
export async function spill(options: SpillOptions): Promise<Spilled> {
  const { folder, files, progress, waitForSpace = unlimitedSpace } = options
  // Wait before cutting anything off: otherwise lines left by a full disk would be cut off, only to fill the disk again.
  await waitForSpace()
  const notes = readValidNotes(options)
  const days = new DayFiles(folder, options.heldBytesMax ?? heldBytesMax)
  const lengths = collectLengths(notes)
  days.cutTo(lengths)
  const objects = new ListedObjects(files, notes)
  for (const [index, file] of files.entries()) {
    if (index < notes.length) {
      progress.add({ bytes: sizeOnDisk(file), isEarlier: true })
      continue
    }
    const first = objects.all.length
    await spillFile(file, objects, days, options)
    await waitForSpace()
    days.flush()
    const grown = days.takeGrown()
    folder.appendLine(noteFile, { objects: objects.all.slice(first), days: grown } satisfies Spilled)
    Object.assign(lengths, grown)
  }
  if (objects.damaged > damagesSaid) progress.say(`${formatCount(objects.damaged, 'file')} are damaged in total.`)
  return { objects: objects.all, days: lengths }
}

/** @throws JobStopped for more files than a manifest can list. */
export function checkFileCount(files: readonly RawFile[]): void {
  new ListedObjects(files)
}

/** The objects of the raw files, by index. */
class ListedObjects {
  readonly all: RawObject[] = []
  damaged = 0
  #charsLeft = listedCharsMax

  /** @throws JobStopped */
  constructor(files: readonly RawFile[], notes: readonly Spilled[] = []) {
    for (const { path, object } of files) this.#take(path.length + object.length + fileCharsMin)
    for (const note of notes) for (const object of note.objects) this.add(object)
  }

  /** @returns its index. @throws JobStopped */
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

/** @returns bytes; 0 for a missing file. */
function sizeOnDisk({ path }: RawFile): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

export function nameDayFile(folder: JobFolder, day: string): string {
  return folder.file('spill', `${day}.lines`)
}

async function spillFile(
  file: RawFile,
  objects: ListedObjects,
  days: DayFiles,
  { read, converter, progress, signal, waitForSpace = unlimitedSpace }: SpillOptions,
): Promise<void> {
  const blanks = new Map<number, { count: number; readonly firstLine: number }>()
  const indexes = new Map<string, number>()
  const ordinals = new Map<string, number>()
  let [bytesRead, recordsRead] = [0, 0]
  const onDiskBytes = (bytes: number) => {
    bytesRead += bytes
    progress.add({ bytes })
  }
  for await (const record of read(file, onDiskBytes)) {
    checkPause(signal)
    const { raw, table, parsed } = record
    const name = JSON.stringify([raw.object, table])
    let object = indexes.get(name)
    if (object === undefined) {
      object = objects.add({ object: raw.object, table, ...selectColumns(record) })
      indexes.set(name, object)
    }
    const damage = findDamage(record, recordsRead)
    if (damage === null) recordsRead++
    else if (objects.all[object]!.damage === undefined) {
      objects.change(object, { damage })
      if (objects.damaged <= damagesSaid) progress.say(describeDamage({ object: raw.object, ...damage }))
    }
    const ordinal = (ordinals.get(raw.object) ?? 0) + 1
    ordinals.set(raw.object, ordinal)
    if ('skipped' in parsed && parsed.skipped === 'blank_line') {
      const blank = blanks.get(object)
      if (blank === undefined) blanks.set(object, { count: 1, firstLine: raw.line })
      else blank.count++
      progress.add({ records: 1, bytes: record.bytes.length + 1 })
      continue
    }
    const timeUs = 'value' in parsed ? findTime(converter, { value: parsed.value, table, ordinal }) : null
    const key: LineKey = { timeUs, object, line: raw.line, byte: raw.byte }
    const line = encodeLine(record, key, ordinal)
    if (!days.holds(line)) await waitForSpace()
    days.add(timeUs === null ? unknownDay : utcDay(timeUs), line)
    progress.add({ records: 1, rejects: 'rejected' in parsed ? 1 : 0 })
  }
  progress.add({ bytes: Math.max(0, sizeOnDisk(file) - bytesRead) })
  for (const [index, blank] of blanks) objects.change(index, { blank })
}

/** A larger header is not stored, since no user could repair a row with it. */
const keptHeaderMax = 64 * 1024

/** Rejects show column names beside the cells, and repaired rows are read with them. */
function selectColumns({
  columns,
  delimiter,
  hasEscapes,
}: ReadRecord): Pick<RawObject, 'columns' | 'delimiter' | 'hasEscapes'> {
  if (columns === undefined || columns.reduce((sum, name) => sum + name.length, 0) > keptHeaderMax) return {}
  return {
    columns,
    ...(delimiter !== undefined && { delimiter }),
    ...(hasEscapes !== undefined && { hasEscapes }),
  }
}

/** @returns null for a record without a valid time, whose line has no day. */
function findTime(converter: RecordConverter, record: SourceRecord): number | null {
  try {
    return converter.timeOf(record)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return null
  }
}

/** @returns a note for each raw file that need not be read again. */
function readValidNotes({ folder, sorted }: SpillOptions): readonly Spilled[] {
  const notes = folder.readLines(noteFile, noteSchema)
  // After a power failure, files may be shorter than noted; then everything is read again.
  const isWhole = (day: string, bytes: number) => sorted.has(day) || readDaySize(folder, day) >= bytes
  if (notes.length > 0 && Object.entries(collectLengths(notes)).every(([day, bytes]) => isWhole(day, bytes)))
    return notes
  folder.remove(noteFile)
  for (const name of listDayFiles(folder)) rmSync(folder.file('spill', name))
  return []
}

function collectLengths(notes: readonly Spilled[]): Record<string, number> {
  const lengths: Record<string, number> = {}
  for (const { days } of notes) Object.assign(lengths, days)
  return lengths
}

function listDayFiles(folder: JobFolder): readonly string[] {
  return existsSync(folder.file('spill'))
    ? readdirSync(folder.file('spill')).filter(name => name.endsWith('.lines'))
    : []
}

function readDaySize(folder: JobFolder, day: string): number {
  return statSync(nameDayFile(folder, day), { throwIfNoEntry: false })?.size ?? 0
}

/** The files of days. Buffers their lines and writes them together. */
class DayFiles {
  readonly #folder: JobFolder
  /** Lines of all days in order of arrival, in one buffer, which costs the garbage collector nothing. */
  readonly #held: Buffer
  #heldBytes = 0
  /** Start and end of each line of a day in `#held`. */
  readonly #places = new Map<string, number[]>()
  readonly #lengths = new Map<string, number>()
  readonly #grown = new Set<string>()

  constructor(folder: JobFolder, heldBytesMax: number) {
    this.#folder = folder
    this.#held = Buffer.allocUnsafeSlow(heldBytesMax)
    mkdirSync(folder.file('spill'), { recursive: true })
  }

  /** Cuts off lines that a killed run wrote from an unfinished file. Nothing is added to a day once it is sorted. */
  cutTo(lengths: Readonly<Record<string, number>>): void {
    for (const name of listDayFiles(this.#folder)) {
      const day = name.slice(0, -'.lines'.length)
      const bytes = lengths[day] ?? 0
      cutFile(nameDayFile(this.#folder, day), bytes)
      if (bytes > 0) this.#lengths.set(day, bytes)
    }
  }

  /** Whether the line fits into the buffer; otherwise, adding it writes the buffer first. */
  holds(line: Buffer): boolean {
    return this.#heldBytes + line.length + 1 <= this.#held.length
  }

  add(day: string, line: Buffer): void {
    const start = this.#placeFor(line.length + 1)
    if (start === null) {
      this.#append(day, Buffer.concat([line, lineEnd]))
      return
    }
    this.#held.set(line, start)
    this.#held.set(lineEnd, start + line.length)
    const places = this.#places.get(day)
    if (places === undefined) this.#places.set(day, [start, this.#heldBytes])
    else places.push(start, this.#heldBytes)
  }

  flush(): void {
    for (const [day, places] of this.#places) this.#append(day, this.#linesAt(places))
    this.#places.clear()
    this.#heldBytes = 0
  }

  /** @returns null if the line is larger than the whole buffer. */
  #placeFor(length: number): number | null {
    if (this.#heldBytes + length > this.#held.length) this.flush()
    if (length > this.#held.length) return null
    const start = this.#heldBytes
    this.#heldBytes += length
    return start
  }

  #linesAt(places: readonly number[]): Buffer {
    const lines: Buffer[] = []
    for (let at = 0; at < places.length; at += 2) lines.push(this.#held.subarray(places[at]!, places[at + 1]!))
    return Buffer.concat(lines)
  }

  #append(day: string, bytes: Buffer): void {
    appendToFile(nameDayFile(this.#folder, day), bytes)
    this.#grown.add(day)
    this.#lengths.set(day, (this.#lengths.get(day) ?? 0) + bytes.length)
  }

  /** The lengths of the days that have grown since the last call. */
  takeGrown(): Record<string, number> {
    const grown = Object.fromEntries([...this.#grown].map(day => [day, this.#lengths.get(day)!]))
    this.#grown.clear()
    return grown
  }
}
