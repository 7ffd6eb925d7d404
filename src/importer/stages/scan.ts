// Stage 3: all staged records once, in the order of time, before anything is sent: facts first, then who is linked to
// which device, what is news about groups and persons, and which records repeat. Because it goes through everything in
// one order, the result knows nothing of threads or restarts. Source: docs/wire/import.md §1.0 (I1 to I6), §1.2, §2.1.

import { mkdirSync } from 'node:fs'
import { isJsonObject } from '#core/json.ts'
import { unlimitedSpace, type WaitForSpace } from '#importer/read/disk-space.ts'
import { manifestSha256 } from '../job/approval.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause } from '../job/job-paused.ts'
import { JobLedger } from '../job/ledger.ts'
import { blankLinesOf, type Manifest, recordsRead } from '../job/manifest.ts'
import type { ImportPlan } from '../job/plan.ts'
import type { StageProgress } from '../job/progress.ts'
import type { StagedPart } from '../job/staged-part.ts'
import { orNull, Type } from '../records/file-schema.ts'
import { findChangedProperties, type GeneratedEvents, generateEvents } from '../records/generated-events.ts'
import type { ImportSource } from '../records/import-source.ts'
import type { ConvertedRecord, ImportedEvent } from '../records/imported-event.ts'
import { type JobConversion, jobConversion } from './job-conversion.ts'
import { partLines } from './part-lines.ts'
import { type Repeat, Repeats } from './repeats.ts'
import { FactsMissing, partsWithFacts, ScanFacts } from './scan-facts.ts'
import { encodeScanNote, hasScanNotes, type ScanNote, writeScanNotes } from './scan-notes.ts'
import type { StagedLine } from './staged-line.ts'
import { findWrongZone, findZoneShift, showsZone, stopForZone, type ZoneShift } from './zone-shift.ts'

/** `stats.json`: what the scan found of the job as a whole. */
export interface ScanStats {
  readonly v: 1
  /** The hash of the manifest that was scanned, which includes the plan's mapping. */
  readonly scannedSha256: string
  /** The sum over the ledger that the scan left. */
  readonly ledgerSha256: string
  readonly groupEvents: number
  readonly linkEvents: number
  /** How often another user came to a device than its first. */
  readonly sharedDevices: number
  readonly devices: ReturnType<JobLedger['deviceCounts']>
  readonly repeatedRecords: number
  readonly zoneShift: ZoneShift | null
  /** Records whose times may be of another zone, where no record at all shows the zone. */
  readonly zoneUnproved: number
  /** What the times are instead, where hardly any of them is of the zone that was given. */
  readonly wrongZone: ZoneShift | null
}

/** What is counted on the way, kept with every finished part. */
interface ScanCounts {
  parts: number
  sharedDevices: number
  repeatedRecords: number
  zoneShifts: Record<string, number>
  zoneUnproved: number
  zoneDiffers: number
  /** The first ones in the order of time, as many as a project may have. */
  groupTypes: string[]
}

const countsSchema = Type.Object({
  parts: Type.Number(),
  sharedDevices: Type.Number(),
  repeatedRecords: Type.Number(),
  zoneShifts: Type.Record(Type.Number()),
  zoneUnproved: Type.Number(),
  zoneDiffers: Type.Number(),
  groupTypes: Type.Array(Type.String()),
})

/** As `Repeats.state` gives it. */
const repeatsSchema = Type.Object({ timeUs: orNull(Type.Number()), seen: Type.Array(Type.String()) })

export interface ScanOptions {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly manifest: Manifest
  readonly source: ImportSource
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** The disk may be filled unless it is given. */
  readonly waitForSpace?: WaitForSpace
}

const statsFile = 'stats.json'
export const ledgerFile = 'ledger.db'

const zoneShiftSchema = Type.Object({
  seconds: Type.Number(),
  text: Type.String(),
  share: Type.Number(),
  example: Type.String(),
})
const statsSchema = Type.Object({
  v: Type.Literal(1),
  scannedSha256: Type.String(),
  ledgerSha256: Type.String(),
  groupEvents: Type.Number(),
  linkEvents: Type.Number(),
  sharedDevices: Type.Number(),
  devices: Type.Object({ all: Type.Number(), shared: Type.Number() }),
  repeatedRecords: Type.Number(),
  zoneShift: orNull(zoneShiftSchema),
  zoneUnproved: Type.Number(),
  wrongZone: orNull(zoneShiftSchema),
})

/** @returns null before a scan has ended. */
export function readStats(folder: JobFolder): ScanStats | null {
  return folder.readJson(statsFile, statsSchema)
}

/** @throws JobStopped when the times are not in the zone that they are read in, or may be of another. */
export async function scanRecords(options: ScanOptions): Promise<ScanStats> {
  const { folder, plan, manifest, source } = options
  const scannedSha256 = manifestSha256(manifest)
  // What a scan has finished is made anew as a whole; only one that was stopped goes on.
  if (readStats(folder) !== null || !isScanOf(folder, scannedSha256)) forgetScan(folder)
  const ledger = new JobLedger(folder.file(ledgerFile))
  try {
    ledger.putProgress('manifest', scannedSha256)
    const conversion = jobConversion(plan, source, (kind, key) => facts.find(kind, key))
    const facts: ScanFacts = new ScanFacts(ledger, conversion.converter, manifest.parts.length)
    const counts = await scanWithFacts({ ...options, ledger, conversion, facts })
    const ledgerSha256 = await ledger.sha256(options.signal)
    const stats = { ...statsOf(scannedSha256, ledger, counts), ledgerSha256 }
    folder.writeJson(statsFile, stats)
    stopForZone(stats, manifest.sourceTimezone)
    return stats
  } finally {
    ledger.rollback()
    ledger.close()
  }
}

/** Records are those that were read, in whichever pass: figures of one job that differ would have to be explained. */
function beginPass(progress: StageProgress, manifest: Manifest): void {
  progress.begin('scan', { records: recordsRead(manifest) })
  progress.add({ records: blankLinesOf(manifest), isEarlier: true })
}

/**
 * @returns the scan's statistics; null unless all that it left is there and of this manifest, since a part of it would
 *   send too little without a word. It is made anew then, and is the same.
 */
export function readScan(folder: JobFolder, manifest: Manifest): ScanStats | null {
  const stats = readStats(folder)
  if (stats?.scannedSha256 !== manifestSha256(manifest)) return null
  if (!manifest.parts.every(part => hasScanNotes(folder, part))) return null
  const isWhole = ledgerSays(
    folder,
    ledger =>
      ledger.readProgress('counts', countsSchema)?.parts === manifest.parts.length &&
      ledger.readProgress('manifest', Type.String()) === stats.scannedSha256 &&
      ledger.generatedCount() === stats.groupEvents + stats.linkEvents,
  )
  return isWhole ? stats : null
}

/** Whether what there is of a scan is of these bytes. */
function isScanOf(folder: JobFolder, scannedSha256: string): boolean {
  return ledgerSays(folder, ledger => {
    progressOf(ledger)
    return ledger.readProgress('manifest', Type.String()) === scannedSha256
  })
}

/** How far a scan is; it throws for what no scan writes. */
function progressOf(ledger: JobLedger) {
  return {
    factParts: partsWithFacts(ledger),
    counts: ledger.readProgress('counts', countsSchema),
    repeats: ledger.readProgress('repeats', repeatsSchema),
  }
}

/** @returns false without a ledger that can be read. */
function ledgerSays(folder: JobFolder, question: (ledger: JobLedger) => boolean): boolean {
  return JobLedger.ask(folder.file(ledgerFile), question) ?? false
}

/** Has to come before staging anew: a ledger that outlives the notes of its parts would take them for written. */
export function forgetScan(folder: JobFolder): void {
  // The log of the database first, which would otherwise be taken for that of the next one.
  folder.remove(statsFile, `${ledgerFile}-wal`, `${ledgerFile}-shm`, ledgerFile, 'scanned')
}

interface ScanRun extends ScanOptions {
  readonly ledger: JobLedger
  readonly conversion: JobConversion
  readonly facts: ScanFacts
}

async function scanWithFacts(run: ScanRun): Promise<ScanCounts> {
  const { ledger, progress, manifest } = run
  beginPass(progress, manifest)
  try {
    return await scanParts(run)
  } catch (error) {
    if (!(error instanceof FactsMissing)) throw error
  }
  // The part with the record that asked is scanned anew, as if the scan had been stopped in it.
  ledger.rollback()
  progress.day(null)
  beginPass(progress, manifest)
  await takeOtherFacts(run)
  beginPass(progress, manifest)
  return scanParts(run)
}

/** Reads the parts whose facts are not known yet. */
async function takeOtherFacts(run: ScanRun): Promise<void> {
  const { folder, manifest, progress, signal, ledger, facts, waitForSpace = unlimitedSpace } = run
  for (const [index, part] of manifest.parts.entries()) {
    if (index < facts.partsTaken) {
      progress.add({ records: part.records, isEarlier: true })
      continue
    }
    await waitForSpace()
    ledger.begin()
    for await (const { staged } of partLines(folder, part)) {
      checkPause(signal)
      progress.add({ records: 1 })
      takeFacts(facts, manifest, staged)
    }
    facts.endPart(index)
    ledger.commit()
  }
}

function takeFacts(facts: ScanFacts, manifest: Manifest, staged: StagedLine): void {
  const { parsed, ordinal } = staged
  if ('value' in parsed) facts.take({ value: parsed.value, table: tableOf(manifest, staged), ordinal })
}

async function scanParts(run: ScanRun): Promise<ScanCounts> {
  const { folder, manifest, progress, ledger, facts, waitForSpace = unlimitedSpace } = run
  const kept = progressOf(ledger)
  let counts: ScanCounts = kept.counts ?? {
    parts: 0,
    sharedDevices: 0,
    repeatedRecords: 0,
    zoneShifts: {},
    zoneUnproved: 0,
    zoneDiffers: 0,
    groupTypes: [],
  }
  const repeats = new Repeats(ledger)
  if (kept.repeats !== null) repeats.restore(kept.repeats)
  for (const [index, part] of manifest.parts.entries()) {
    if (index < counts.parts) {
      progress.add({ records: part.records, isEarlier: true })
      continue
    }
    progress.day(part.id.split('/')[0]!)
    const next = structuredClone(counts)
    await waitForSpace()
    ledger.begin()
    const notes = await scanPart(part, index, run, new LineScan(run, repeats, next))
    // The file first: a crash in between writes the same file again.
    mkdirSync(folder.file('scanned'), { recursive: true })
    writeScanNotes(folder, part, notes)
    if (index >= facts.partsTaken) facts.endPart(index)
    next.parts = index + 1
    ledger.putProgress('counts', next)
    ledger.putProgress('repeats', repeats.state())
    ledger.commit()
    counts = next
  }
  ledger.forgetTimestampGroup()
  progress.day(null)
  return counts
}

async function scanPart(
  part: StagedPart,
  index: number,
  { folder, manifest, progress, signal, facts }: ScanRun,
  lines: LineScan,
): Promise<readonly string[]> {
  const notes: string[] = []
  const areFactsTaken = index < facts.partsTaken
  for await (const { staged } of partLines(folder, part)) {
    checkPause(signal)
    progress.add({ records: 1 })
    if (!areFactsTaken) takeFacts(facts, manifest, staged)
    notes.push(encodeScanNote(lines.scan(staged)))
  }
  return notes
}

/** Takes in one line after the other. */
class LineScan {
  readonly #run: ScanRun
  readonly #ledger: JobLedger
  readonly #repeats: Repeats
  readonly #counts: ScanCounts

  constructor(run: ScanRun, repeats: Repeats, counts: ScanCounts) {
    this.#run = run
    this.#ledger = run.ledger
    this.#repeats = repeats
    this.#counts = counts
  }

  scan(staged: StagedLine): ScanNote {
    const { manifest, conversion } = this.#run
    const record = conversion.convert(staged, tableOf(manifest, staged))
    if (!('events' in record) || !('value' in staged.parsed)) return {}
    const repeat = this.#repeats.find(manifest.source, {
      timeUs: staged.timeUs,
      events: record.events,
      value: staged.parsed.value,
      textLength: staged.text.length,
    })
    if (repeat !== null) return this.#repeated(repeat)
    if (this.#isOfRefusedGroup(record)) return { g: 1 }
    this.#countZone(record)
    const { notes, isOwnLinkRefused } = this.#generated(record)
    const news = this.#news(record)
    return {
      ...(news !== null && { p: news }),
      ...(notes.length > 0 && { s: notes.length }),
      ...(isOwnLinkRefused && { r: 1 }),
    }
  }

  #countZone({ notes = [] }: ConvertedRecord): void {
    const { zoneShifts } = this.#counts
    for (const note of notes)
      if (note.startsWith('zone_shift:')) zoneShifts[note] = (zoneShifts[note] ?? 0) + 1
      else if (note === 'zone_shift_differs') this.#counts.zoneDiffers++
      else if (note === 'zone_unproved') this.#counts.zoneUnproved++
  }

  #repeated(repeat: Repeat): ScanNote {
    this.#counts.repeatedRecords++
    return { d: repeat }
  }

  /**
   * Whether the record only tells of groups whose type the project has no place for. Other events are worth something
   * without their group, and the receiver keeps those. Source: docs/wire/import.md §2.6 (`group_type_limit`).
   */
  #isOfRefusedGroup({ events, groups = [] }: ConvertedRecord): boolean {
    const { groupTypes } = this.#counts
    const { groupTypesMax } = this.#run.plan.limits
    for (const type of [...groups.map(group => group.type), ...events.flatMap(groupTypesOf)])
      if (!groupTypes.includes(type) && groupTypes.length < groupTypesMax) groupTypes.push(type)
    if (events.length === 0 || events.some(({ event }) => event !== '$groupidentify')) return false
    return events.flatMap(groupTypesOf).every(type => !groupTypes.includes(type))
  }

  #generated(record: ConvertedRecord): GeneratedEvents {
    const generated = generateEvents(this.#run.manifest.source, record, this.#ledger)
    for (const event of generated.groups) this.#ledger.addGenerated('group', event)
    for (const event of generated.links) this.#ledger.addGenerated('link', event)
    this.#counts.sharedDevices += generated.notes.length
    return generated
  }

  /** @returns null when all that is known of the person is news. */
  #news({ person, events }: ConvertedRecord): readonly number[] | null {
    if (person === undefined || events.length === 0) return null
    const before = this.#ledger.person(person.distinctId, person.properties)
    const news = findChangedProperties(person, before)
    const keys = Object.keys(person.properties)
    if (Object.keys(news).length === keys.length) return null
    return keys.flatMap((key, index) => (Object.hasOwn(news, key) ? [index] : []))
  }
}

function groupTypesOf({ properties }: ImportedEvent): readonly string[] {
  const { $groups, $group_type } = properties
  return [
    ...(typeof $group_type === 'string' ? [$group_type] : []),
    ...(isJsonObject($groups) ? Object.keys($groups) : []),
  ]
}

export function tableOf({ objects }: Manifest, { object }: StagedLine): string | null {
  return objects[object]!.table
}

function statsOf(scannedSha256: string, ledger: JobLedger, counts: ScanCounts): Omit<ScanStats, 'ledgerSha256'> {
  return {
    v: 1,
    scannedSha256,
    groupEvents: ledger.generatedCount('group'),
    linkEvents: ledger.generatedCount('link'),
    sharedDevices: counts.sharedDevices,
    devices: ledger.deviceCounts(),
    repeatedRecords: counts.repeatedRecords,
    zoneShift: findZoneShift(counts.zoneShifts),
    wrongZone: findWrongZone(counts.zoneShifts, counts.zoneDiffers),
    // A single time of receipt shows it.
    zoneUnproved: showsZone(counts.zoneShifts) ? 0 : counts.zoneUnproved,
  }
}
