// The first half of staging: records leave the raw files in their order and are put down by event day. What is put down
// is noted after every raw file, so a stage that was killed goes on with the file that it had not finished.

import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import Type from 'typebox'
import { counted } from '#core/counted.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause, JobStopped } from '../job/job-paused.ts'
import { type RawObject, rawObjectSchema } from '../job/manifest.ts'
import type { StageProgress } from '../job/progress.ts'
import { appendToFile, cutFile } from '../read/own-files.ts'
import type { RawFile, ReadRecord, ReadRecords } from '../read/read-record.ts'
import { anyRoom, type UntilRoom } from '../read/until-room.ts'
import { convertRecord } from '../records/convert-record.ts'
import type { RecordConverter, SourceRecord } from '../records/import-source.ts'
import { type ConvertedRecord, RecordReject } from '../records/imported-event.ts'
import { utcDay } from '../records/source-time.ts'
import { damageIn, damageText } from './report/damaged-files.ts'
import { encodeLine, type LineKey } from './staged-line.ts'

export const unknownDay = 'unknown-day'
const heldBytesMax = 16 * 1024 * 1024
const lineEnd = Buffer.from('\n')
/** All of them are in memory at once, and in the manifest. */
const objectsMax = 200_000
const damagesSaid = 20
const noteFile = 'spill/done.json'

/** What is put down, as of the last raw file that was read to its end. */
export interface SpillNote {
  readonly files: number
  readonly objects: readonly RawObject[]
  /** Bytes by event day. */
  readonly days: Readonly<Record<string, number>>
}

const noteSchema = Type.Object({
  files: Type.Number(),
  objects: Type.Array(rawObjectSchema),
  days: Type.Record(Type.String(), Type.Number()),
})

export interface SpillOptions {
  readonly folder: JobFolder
  readonly files: readonly RawFile[]
  readonly read: ReadRecords
  readonly converter: RecordConverter
  readonly progress: StageProgress
  readonly signal: AbortSignal
  readonly heldBytesMax?: number
  readonly untilRoom?: UntilRoom
  /** Days that are sorted already, so that nothing of them is needed. */
  readonly sorted: { has(day: string): boolean }
}

/** Puts down the records of all files that are not noted yet. */
export async function spill(options: SpillOptions): Promise<SpillNote> {
  const { folder, files, progress, untilRoom = anyRoom } = options
  // Before anything is cut off: what a full disk left half done would only be written again, and fill it again.
  await untilRoom()
  let note = lastNote(options)
  const days = new DayFiles(folder, options.heldBytesMax ?? heldBytesMax)
  days.cutTo(note.days)
  checkCount(files.length)
  for (const [index, file] of files.entries()) {
    if (index < note.files) {
      progress.add({ bytes: sizeOnDisk(file), isEarlier: true })
      continue
    }
    const objects = [...note.objects]
    await spillFile(file, objects, days, options)
    await untilRoom()
    days.flush()
    note = { files: index + 1, objects, days: days.lengths() }
    folder.writeJson(noteFile, note)
  }
  const damaged = note.objects.filter(({ damage }) => damage !== undefined).length
  if (damaged > damagesSaid) progress.say(`${counted(damaged, 'file')} in all are damaged.`)
  return note
}

/** @throws JobStopped */
function checkCount(files: number): void {
  if (files > objectsMax)
    throw new JobStopped(
      `The export has more than ${objectsMax.toLocaleString('en')} files, with those in archives, and one import takes no more. Plan an import for a part of them at a time`,
    )
}

/** @returns bytes; 0 for a file that is not there. */
function sizeOnDisk({ path }: RawFile): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

export function dayFile(folder: JobFolder, day: string): string {
  return folder.file('spill', `${day}.lines`)
}

async function spillFile(
  file: RawFile,
  objects: RawObject[],
  days: DayFiles,
  { read, converter, progress, signal, untilRoom = anyRoom }: SpillOptions,
): Promise<void> {
  const blanks = new Map<number, { count: number; readonly firstLine: number }>()
  const indexes = new Map<string, number>()
  const ordinals = new Map<string, number>()
  let damages = objects.filter(each => each.damage !== undefined).length
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
      object = objects.push({ object: raw.object, table, ...columnsOf(record) }) - 1
      indexes.set(name, object)
      checkCount(objects.length)
    }
    const damage = damageIn(record, recordsRead)
    if (damage === null) recordsRead++
    else if (objects[object]!.damage === undefined) {
      objects[object] = { ...objects[object]!, damage }
      if (++damages <= damagesSaid) progress.say(damageText({ object: raw.object, ...damage }))
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
    const timeUs = 'value' in parsed ? timeOf(converter, record, ordinal) : null
    const key: LineKey = { timeUs, object, line: raw.line, byte: raw.byte }
    const line = encodeLine(record, key, ordinal)
    if (!days.holds(line)) await untilRoom()
    days.add(timeUs === null ? unknownDay : utcDay(timeUs), line)
    progress.add({ records: 1, rejects: 'rejected' in parsed ? 1 : 0 })
  }
  progress.add({ bytes: Math.max(0, sizeOnDisk(file) - bytesRead) })
  for (const [index, blank] of blanks) objects[index] = { ...objects[index]!, blank }
}

/** A header that is larger is no help to anybody. */
const keptHeaderMax = 64 * 1024

/** Rejects show the names beside the cells, and repaired rows are read by them. */
function columnsOf({
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

/** When a record happened; null when it is rejected or skipped, so that it has a line but no day. */
function timeOf(converter: RecordConverter, { parsed, table, bytes }: ReadRecord, ordinal: number): number | null {
  if (!('value' in parsed)) return null
  const record = { value: parsed.value, table, ordinal }
  const outcome = convertRecord(converter, record, bytes.length)
  if ('events' in outcome) return earliest(outcome)
  return 'skipped' in outcome ? timeWithoutFacts(converter, record) : null
}

function timeWithoutFacts(converter: RecordConverter, record: SourceRecord): number | null {
  try {
    return converter.timeOf?.(record) ?? null
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return null
  }
}

function earliest({ events, links = [], groups = [] }: ConvertedRecord): number | null {
  let first: number | null = null
  for (const list of [events, links, groups])
    for (const { timeUs } of list) if (first === null || timeUs < first) first = timeUs
  return first
}

function lastNote({ folder, sorted }: SpillOptions): SpillNote {
  const note = folder.readJson(noteFile, noteSchema)
  // After a power failure files may be shorter than noted; then all is read again.
  const isWhole = (day: string, bytes: number) => sorted.has(day) || sizeOf(folder, day) >= bytes
  if (note !== null && Object.entries(note.days).every(([day, bytes]) => isWhole(day, bytes))) return note
  for (const name of dayFilesIn(folder)) rmSync(folder.file('spill', name))
  return { files: 0, objects: [], days: {} }
}

function dayFilesIn(folder: JobFolder): readonly string[] {
  return existsSync(folder.file('spill'))
    ? readdirSync(folder.file('spill')).filter(name => name.endsWith('.lines'))
    : []
}

function sizeOf(folder: JobFolder, day: string): number {
  return statSync(dayFile(folder, day), { throwIfNoEntry: false })?.size ?? 0
}

/** Files of days, written together when enough is held. */
class DayFiles {
  readonly #folder: JobFolder
  /** Lines of all days as they came: bytes in one piece, which cost nothing to keep. */
  readonly #held: Buffer
  #heldBytes = 0
  /** Where each line of a day begins and ends in it. */
  readonly #places = new Map<string, number[]>()
  readonly #lengths = new Map<string, number>()

  constructor(folder: JobFolder, heldBytesMax: number) {
    this.#folder = folder
    this.#held = Buffer.allocUnsafeSlow(heldBytesMax)
    mkdirSync(folder.file('spill'), { recursive: true })
  }

  /** Leaves out what a killed run wrote of the file that it had not finished; nothing is added once a day is sorted. */
  cutTo(lengths: Readonly<Record<string, number>>): void {
    for (const name of dayFilesIn(this.#folder)) {
      const day = name.slice(0, -'.lines'.length)
      const bytes = lengths[day] ?? 0
      cutFile(dayFile(this.#folder, day), bytes)
      if (bytes > 0) this.#lengths.set(day, bytes)
    }
  }

  /** Whether another line has a place; it is added without one too, after what is held is written. */
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

  /** @returns null for more than can be held at all. */
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
    appendToFile(dayFile(this.#folder, day), bytes)
    this.#lengths.set(day, (this.#lengths.get(day) ?? 0) + bytes.length)
  }

  lengths(): Record<string, number> {
    return Object.fromEntries([...this.#lengths].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }
}
