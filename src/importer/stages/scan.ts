// Stage 3: reads all staged records in time order before anything is sent. It collects facts, links of devices to users,
// changes of groups and persons, and repeated records. The fixed order makes the result independent of threads and
// restarts. Source: docs/wire/import.md §1.0 (I1 to I6), §1.2, §2.1.

import { mkdirSync } from 'node:fs'
import { isJsonObject } from '#core/json.ts'
import { unlimitedSpace, type WaitForSpace } from '#importer/read/disk-space.ts'
import { hashManifest } from '../job/approval.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { checkPause } from '../job/job-paused.ts'
import { JobLedger } from '../job/ledger.ts'
import { countBlankLines, countRecordsRead, type Manifest } from '../job/manifest.ts'
import type { ImportPlan } from '../job/plan.ts'
import type { StageProgress } from '../job/progress.ts'
import type { StagedPart } from '../job/staged-part.ts'
import { allowNull, Type } from '../records/file-schema.ts'
import { findChangedProperties, type GeneratedEvents, generateEvents } from '../records/generated-events.ts'
import type { ImportSource } from '../records/import-source.ts'
import type { ConvertedRecord, ImportedEvent } from '../records/imported-event.ts'
import { createJobConversion, type JobConversion } from './job-conversion.ts'
import { readPartLines } from './part-lines.ts'
import { type Repeat, Repeats } from './repeats.ts'
import { countPartsWithFacts, FactsMissing, ScanFacts } from './scan-facts.ts'
import { encodeScanNote, hasScanNotes, type ScanNote, writeScanNotes } from './scan-notes.ts'
import type { StagedLine } from './staged-line.ts'
import { checkZone, findWrongZone, findZoneShift, revealsZone, type ZoneShift } from './zone-shift.ts'

/** `stats.json`: the scan's results for the whole job. */
export interface ScanStats {
  readonly v: 1
  /** The hash of the scanned manifest, which includes the plan's mapping. */
  readonly scannedSha256: string
  /** The checksum of the ledger after the scan. */
  readonly ledgerSha256: string
  readonly groupEvents: number
  readonly linkEvents: number
  /** How often a user other than the first was seen on a device. */
  readonly sharedDevices: number
  readonly devices: ReturnType<JobLedger['deviceCounts']>
  readonly repeatedRecords: number
  readonly zoneShift: ZoneShift | null
  /** How many records may have times of another zone, if no record reveals the zone. */
  readonly zoneUnproved: number
  /** The actual shift of the times, if hardly any time fits the given zone. */
  readonly wrongZone: ZoneShift | null
}

/** Counts so far, stored with every finished part. */
interface ScanCounts {
  parts: number
  sharedDevices: number
  repeatedRecords: number
  zoneShifts: Record<string, number>
  zoneUnproved: number
  zoneDiffers: number
  /** The first group types in time order, as many as a project can have. */
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

/** As returned by `Repeats.state`. */
const repeatsSchema = Type.Object({ timeUs: allowNull(Type.Number()), seen: Type.Array(Type.String()) })

export interface ScanOptions {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly manifest: Manifest
  readonly source: ImportSource
  readonly progress: StageProgress
  readonly signal: AbortSignal
  /** Without it, the disk may be filled completely. */
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
  zoneShift: allowNull(zoneShiftSchema),
  zoneUnproved: Type.Number(),
  wrongZone: allowNull(zoneShiftSchema),
})

/** @returns null if no scan has finished. */
export function readStats(folder: JobFolder): ScanStats | null {
  return folder.readJson(statsFile, statsSchema)
}

/** @throws JobStopped if the times are not, or may not be, in the zone that they are read in. */
export async function scanRecords(options: ScanOptions): Promise<ScanStats> {
  const { folder, plan, manifest, source } = options
  const scannedSha256 = hashManifest(manifest)
  // A finished scan is repeated from the beginning; only a stopped one continues.
  if (readStats(folder) !== null || !isScanOf(folder, scannedSha256)) deleteScan(folder)
  const ledger = new JobLedger(folder.file(ledgerFile))
  try {
    ledger.putProgress('manifest', scannedSha256)
    const conversion = createJobConversion(plan, source, (kind, key) => facts.find(kind, key))
    const facts: ScanFacts = new ScanFacts(ledger, conversion.converter, manifest.parts.length)
    const counts = await scanWithFacts({ ...options, ledger, conversion, facts })
    const ledgerSha256 = await ledger.sha256(options.signal)
    const stats = { ...createStats(scannedSha256, ledger, counts), ledgerSha256 }
    folder.writeJson(statsFile, stats)
    checkZone(stats, manifest.sourceTimezone)
    return stats
  } finally {
    ledger.rollback()
    ledger.close()
  }
}

/** Counts all records read, blank lines included, in every pass, so that all figures of a job agree. */
function beginPass(progress: StageProgress, manifest: Manifest): void {
  progress.begin('scan', { records: countRecordsRead(manifest) })
  progress.add({ records: countBlankLines(manifest), isEarlier: true })
}

/**
 * @returns null if any output of the scan is missing or belongs to another manifest: a partial scan would silently send too
 *   few events. Scanning again is deterministic.
 */
export function readScan(folder: JobFolder, manifest: Manifest): ScanStats | null {
  const stats = readStats(folder)
  if (stats?.scannedSha256 !== hashManifest(manifest)) return null
  if (!manifest.parts.every(part => hasScanNotes(folder, part))) return null
  const isWhole = askLedger(
    folder,
    ledger =>
      ledger.readProgress('counts', countsSchema)?.parts === manifest.parts.length &&
      ledger.readProgress('manifest', Type.String()) === stats.scannedSha256 &&
      ledger.generatedCount() === stats.groupEvents + stats.linkEvents,
  )
  return isWhole ? stats : null
}

/** Whether the stored progress of a scan belongs to this manifest. */
function isScanOf(folder: JobFolder, scannedSha256: string): boolean {
  return askLedger(folder, ledger => {
    readScanProgress(ledger)
    return ledger.readProgress('manifest', Type.String()) === scannedSha256
  })
}

/** Reads how far a scan is. @throws LedgerDamage for data that no scan writes. */
function readScanProgress(ledger: JobLedger) {
  return {
    factParts: countPartsWithFacts(ledger),
    counts: ledger.readProgress('counts', countsSchema),
    repeats: ledger.readProgress('repeats', repeatsSchema),
  }
}

/** @returns false if there is no readable ledger. */
function askLedger(folder: JobFolder, question: (ledger: JobLedger) => boolean): boolean {
  return JobLedger.ask(folder.file(ledgerFile), question) ?? false
}

/** Must be called before staging again: a leftover ledger would claim that notes exist for the new parts. */
export function deleteScan(folder: JobFolder): void {
  // Remove the WAL first; otherwise, after a crash, it would be applied to the next database.
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
  // Scan the part with the asking record again, as if the scan had been stopped in it.
  ledger.rollback()
  progress.day(null)
  beginPass(progress, manifest)
  await collectRemainingFacts(run)
  beginPass(progress, manifest)
  return scanParts(run)
}

/** Collects the facts of the remaining parts. */
async function collectRemainingFacts(run: ScanRun): Promise<void> {
  const { folder, manifest, progress, signal, ledger, facts, waitForSpace = unlimitedSpace } = run
  for (const [index, part] of manifest.parts.entries()) {
    if (index < facts.partsTaken) {
      progress.add({ records: part.records, isEarlier: true })
      continue
    }
    await waitForSpace()
    ledger.begin()
    for await (const { staged } of readPartLines(folder, part)) {
      checkPause(signal)
      progress.add({ records: 1 })
      collectFacts(facts, manifest, staged)
    }
    facts.endPart(index)
    ledger.commit()
  }
}

function collectFacts(facts: ScanFacts, manifest: Manifest, staged: StagedLine): void {
  const { parsed, ordinal } = staged
  if ('value' in parsed) facts.take({ value: parsed.value, table: findTable(manifest, staged), ordinal })
}

async function scanParts(run: ScanRun): Promise<ScanCounts> {
  const { folder, manifest, progress, ledger, facts, waitForSpace = unlimitedSpace } = run
  const kept = readScanProgress(ledger)
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
    // Write the file before the commit: after a crash in between, the same file is written again.
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
  for await (const { staged } of readPartLines(folder, part)) {
    checkPause(signal)
    progress.add({ records: 1 })
    if (!areFactsTaken) collectFacts(facts, manifest, staged)
    notes.push(encodeScanNote(lines.scan(staged)))
  }
  return notes
}

/** Scans lines in order. */
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
    const record = conversion.convert(staged, findTable(manifest, staged))
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
   * Whether the record only describes groups of types beyond the project's limit. Other events are useful without their
   * group too, and the service keeps them. Source: docs/wire/import.md §2.6 (`group_type_limit`).
   */
  #isOfRefusedGroup({ events, groups = [] }: ConvertedRecord): boolean {
    const { groupTypes } = this.#counts
    const { groupTypesMax } = this.#run.plan.limits
    for (const type of [...groups.map(group => group.type), ...events.flatMap(listGroupTypes)])
      if (!groupTypes.includes(type) && groupTypes.length < groupTypesMax) groupTypes.push(type)
    if (events.length === 0 || events.some(({ event }) => event !== '$groupidentify')) return false
    return events.flatMap(listGroupTypes).every(type => !groupTypes.includes(type))
  }

  #generated(record: ConvertedRecord): GeneratedEvents {
    const generated = generateEvents(this.#run.manifest.source, record, this.#ledger)
    for (const event of generated.groups) this.#ledger.addGenerated('group', event)
    for (const event of generated.links) this.#ledger.addGenerated('link', event)
    this.#counts.sharedDevices += generated.notes.length
    return generated
  }

  /** @returns indexes of the new person properties; null if all are new. */
  #news({ person, events }: ConvertedRecord): readonly number[] | null {
    if (person === undefined || events.length === 0) return null
    const before = this.#ledger.person(person.distinctId, person.properties)
    const news = findChangedProperties(person, before)
    const keys = Object.keys(person.properties)
    if (Object.keys(news).length === keys.length) return null
    return keys.flatMap((key, index) => (Object.hasOwn(news, key) ? [index] : []))
  }
}

function listGroupTypes({ properties }: ImportedEvent): readonly string[] {
  const { $groups, $group_type } = properties
  return [
    ...(typeof $group_type === 'string' ? [$group_type] : []),
    ...(isJsonObject($groups) ? Object.keys($groups) : []),
  ]
}

export function findTable({ objects }: Manifest, { object }: StagedLine): string | null {
  return objects[object]!.table
}

function createStats(scannedSha256: string, ledger: JobLedger, counts: ScanCounts): Omit<ScanStats, 'ledgerSha256'> {
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
    // A single time of receipt is enough to reveal the zone.
    zoneUnproved: revealsZone(counts.zoneShifts) ? 0 : counts.zoneUnproved,
  }
}
