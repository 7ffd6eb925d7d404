// Stage 3: converts every staged record, once and in the order of time, and writes the events to parts of one day each.
// What other records contribute to an event (facts, links of devices to users, changes of groups and persons, repetitions)
// depends only on that order, so the parts do not depend on where a run was stopped. Source: docs/wire/import.md §1.0 (I1
// to I6), §2.1.

import { isJsonObject } from '#core/json.ts'
import { isYieldDue, yieldToEventLoop } from '#importer/read/event-loop.ts'
import { JobDatabase } from '../job/job-database.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped, throwIfPaused } from '../job/job-paused.ts'
import { type GeneratedKind, JobLedger } from '../job/ledger.ts'
import { countBlankLines, type Manifest, type RawObject, readManifest, writeManifest } from '../job/manifest.ts'
import { hashConversionSettings, type ImportPlan } from '../job/plan.ts'
import { isGeneratedPart, type StagedPart, type StagedResult, sumStagedParts } from '../job/staged-part.ts'
import { fitsOtherQuoting } from '../read/parse-record.ts'
import { allowNull, type Static, Type } from '../records/file-schema.ts'
import { createRecordEvents } from '../records/generated-events.ts'
import type { ImportSource } from '../records/import-source.ts'
import type { Conversion, ConvertedRecord, ImportedEvent } from '../records/imported-event.ts'
import { formatTime, utcDay } from '../records/source-time.ts'
import { UnseenNames, watchStateSchema } from '../records/unseen-names.ts'
import { createJobConverter, type JobConversion, type StageContext } from './job-conversion.ts'
import { PartLines } from './part-lines.ts'
import { Repeats, repeatsSchema } from './repeats.ts'
import { decodeRecord, shownSourceMax } from './staged-line.ts'
import { firstPosition, type StagedRecord, StagedRecords } from './staged-records.ts'
import { checkConfiguredZone } from './zone-shift.ts'

export const unknownDay = 'unknown-day'
/** The size of a part before compression. A part ends with the line that reaches this size, and is in memory as a whole. */
const partBytesDefault = 16 * 1024 * 1024

/** How far a scan has come, stored with every part. */
const stateSchema = Type.Object({
  position: Type.Object({ timeUs: allowNull(Type.Number()), id: Type.Number() }),
  sharedDevices: Type.Number(),
  zoneNotes: Type.Record(Type.Number()),
  /** The group types that occur first in the order of time, as many as a project can have. */
  groupTypes: Type.Array(Type.String()),
  repeats: repeatsSchema,
  names: Type.Array(watchStateSchema),
})
type ScanState = Static<typeof stateSchema>

export interface ScanOptions extends StageContext {
  readonly source: ImportSource
  /** The size at which a part ends, before compression; smaller in tests. */
  readonly partBytes?: number
}

/** @throws JobStopped if the times are, or may be, in another zone than the zone they are read in. */
export async function scanRecords(options: ScanOptions): Promise<Manifest> {
  const { folder, plan } = options
  let manifest: Manifest
  {
    using records = openFullyStagedRecords(folder, plan)
    if (records === null) throw new JobStopped(`${folder.path} holds no staged records of this plan`)
    using database = openDatabase(folder, records.identity())
    manifest = await new Scan(options, records, database).run()
    writeManifest(folder, manifest)
  }
  StagedRecords.remove(folder)
  checkConfiguredZone(manifest.scan.zoneNotes, manifest.sourceTimezone)
  return manifest
}

/** @returns null unless all records of the plan's files are staged. */
export function openFullyStagedRecords(folder: JobFolder, plan: ImportPlan): StagedRecords | null {
  const wanted = hashConversionSettings(plan)
  return StagedRecords.open(folder, ({ mapping, isComplete }) => isComplete && mapping === wanted)
}

/** @returns the manifest of a finished scan of this mapping; null if there is none, or a part of it is missing. */
export function readFinishedScan(folder: JobFolder, plan: ImportPlan): Manifest | null {
  const manifest = readManifest(folder)
  if (manifest?.mappingSha256 !== hashConversionSettings(plan)) return null
  return JobDatabase.ask(folder, database => database.holds(manifest)) === true ? manifest : null
}

/** Opens the database of a stopped scan of the same records, or a new one. */
function openDatabase(folder: JobFolder, identity: string): JobDatabase {
  const isOfRecords = JobDatabase.ask(folder, database => {
    database.readProgress('scan', stateSchema)
    return database.readProgress('records', Type.String()) === identity
  })
  if (isOfRecords !== true) JobDatabase.remove(folder)
  const database = new JobDatabase(folder)
  database.putProgress('records', identity)
  return database
}

class Scan {
  readonly #options: ScanOptions
  readonly #records: StagedRecords
  readonly #database: JobDatabase
  readonly #ledger: JobLedger
  readonly #objects: readonly RawObject[]
  readonly #names: UnseenNames
  readonly #conversion: JobConversion
  readonly #repeats: Repeats
  readonly #state: ScanState
  /** How many parts each day has, generated events included. */
  readonly #partsOfDay = new Map<string, number>()
  readonly #parts: StagedPart[]

  constructor(options: ScanOptions, records: StagedRecords, database: JobDatabase) {
    const { plan, source } = options
    this.#options = options
    this.#records = records
    this.#database = database
    this.#ledger = new JobLedger(database)
    this.#objects = records.files().flatMap(({ objects }) => objects)
    this.#names = new UnseenNames(this.#objects.flatMap(({ columns }) => columns ?? []))
    this.#conversion = createJobConverter(plan, source, (kind, key) => this.#ledger.findFact(kind, key), this.#names)
    this.#repeats = new Repeats(this.#ledger)
    const stored = database.readProgress('scan', stateSchema)
    this.#state = stored ?? createState()
    if (stored !== null) {
      this.#repeats.restore(stored.repeats)
      this.#names.restore(stored.names)
    }
    this.#parts = database.parts()
    for (const { id } of this.#parts) this.#nameNextPart(id.slice(0, id.indexOf('/')))
  }

  async run(): Promise<Manifest> {
    await this.#collectFacts()
    const { progress } = this.#options
    // Counts all records read, blank lines included, so that all figures of a job agree.
    const blankLines = countBlankLines({ objects: this.#objects })
    progress.begin('scan', { records: this.#records.count + blankLines })
    const done = sumStagedParts(this.#parts.filter(part => !isGeneratedPart(part))).records
    progress.add({ records: done + blankLines, isEarlier: true })
    await this.#convertRecords()
    await this.#writeGenerated()
    progress.day(null)
    return this.#manifest()
  }

  /** Collects all facts first, since they must be known before a record that looks up a fact is converted. */
  async #collectFacts(): Promise<void> {
    const { progress, waitForSpace } = this.#options
    const { factsOf } = this.#conversion.converter
    if (factsOf === undefined || this.#database.readProgress('facts', Type.Boolean()) !== null) return
    await waitForSpace()
    progress.waiting('the facts that records state about others')
    this.#database.begin()
    for (const record of this.#records.withFacts()) {
      throwIfPaused(this.#options.signal)
      if (isYieldDue()) await yieldToEventLoop()
      const { parsed, ordinal, raw } = decodeRecord(record, this.#objects)
      if ('value' in parsed)
        for (const fact of factsOf.call(this.#conversion.converter, { value: parsed.value, table: raw.table, ordinal }))
          this.#ledger.putFact(fact)
    }
    this.#database.putProgress('facts', true)
    this.#database.commit()
    progress.waiting(null)
  }

  async #convertRecords(): Promise<void> {
    const { progress, waitForSpace, partBytes = partBytesDefault } = this.#options
    let part: PartLines | null = null
    for (const record of this.#records.after(this.#state.position)) {
      throwIfPaused(this.#options.signal)
      if (isYieldDue()) await yieldToEventLoop()
      progress.add({ records: 1 })
      const day = record.timeUs === null ? unknownDay : utcDay(record.timeUs)
      if (part !== null && part.day !== day) part = this.#endPart(part)
      if (part === null) {
        progress.day(day)
        await waitForSpace()
        this.#database.begin()
        part = new PartLines(day)
      }
      part.add(record, this.#convert(record))
      if (part.bytesCount >= partBytes) part = this.#endPart(part)
    }
    if (part !== null) this.#endPart(part)
  }

  #endPart(part: PartLines): null {
    this.#write(part)
    this.#state.position = part.last
    this.#ledger.flush()
    const state: ScanState = { ...this.#state, repeats: this.#repeats.state(), names: this.#names.states() }
    this.#database.putProgress('scan', state)
    this.#database.commit()
    return null
  }

  #write(part: PartLines): void {
    const { count: records, firstUs, last } = part
    const id = this.#nameNextPart(part.day)
    this.#parts.push(this.#database.addPart({ id, records, firstUs, lastUs: last.timeUs }, part.bytes()))
  }

  #nameNextPart(day: string): string {
    const number = this.#partsOfDay.get(day) ?? 0
    this.#partsOfDay.set(day, number + 1)
    return `${day}/${number}`
  }

  /** Writes the events of groups and links: they are known only after the last record, but are sent first. */
  async #writeGenerated(): Promise<void> {
    await this.#options.waitForSpace()
    this.#database.begin()
    await this.#writeGeneratedOf('group', 'groups')
    await this.#writeGeneratedOf('link', 'links')
    this.#ledger.forgetGenerated()
    this.#ledger.forgetTimestampGroup()
    this.#database.commit()
  }

  async #writeGeneratedOf(kind: GeneratedKind, name: string): Promise<void> {
    const { partBytes = partBytesDefault } = this.#options
    let part = new PartLines(name)
    for (const event of this.#ledger.generatedEvents(kind)) {
      throwIfPaused(this.#options.signal)
      if (isYieldDue()) await yieldToEventLoop()
      part.addGenerated(event)
      if (part.bytesCount < partBytes) continue
      this.#write(part)
      part = new PartLines(name)
    }
    if (part.count > 0) this.#write(part)
  }

  #convert(record: StagedRecord): StagedResult {
    const content = decodeRecord(record, this.#objects)
    const { parsed, text, ordinal, raw } = content
    const converted: Conversion = this.#conversion.convert(content, ordinal, raw.table)
    if ('skipped' in converted) return { kind: 'skipped', reason: converted.skipped }
    if ('rejected' in converted) return { kind: 'rejected', ...converted.rejected }
    if (!('value' in parsed)) throw new Error('events of a record that could not be parsed')
    const { events } = converted
    const { source } = this.#options
    const repeat = this.#repeats.find(source.name, {
      ...{ timeUs: record.timeUs, events, value: parsed.value, textLength: text.length },
    })
    if (repeat !== null) return repeat === 'collapsed' ? { kind: repeat } : { kind: 'skipped', reason: repeat }
    if (this.#isOfRefusedGroup(converted)) return this.#rejectGroup(converted)
    this.#countZone(converted)
    const { groups, links, own, notes } = createRecordEvents(source.name, converted, this.#ledger)
    for (const event of groups) this.#ledger.addGenerated('group', event)
    for (const event of links) this.#ledger.addGenerated('link', event)
    this.#state.sharedDevices += notes.length - (converted.notes?.length ?? 0)
    return {
      kind: 'events',
      events: own,
      notes: [...notes, ...listQuotingNotes(content)],
      dropped: converted.dropped ?? [],
    }
  }

  #countZone({ notes = [] }: ConvertedRecord): void {
    const { zoneNotes } = this.#state
    for (const note of notes) if (note.startsWith('zone_')) zoneNotes[note] = (zoneNotes[note] ?? 0) + 1
  }

  /**
   * Whether the record only describes groups of types beyond the project's limit. Other events are useful even without
   * their group, and the service keeps them. Source: docs/wire/import.md §2.6 (`group_type_limit`).
   */
  #isOfRefusedGroup({ events, groups = [] }: ConvertedRecord): boolean {
    const { groupTypes } = this.#state
    const { groupTypesMax } = this.#options.plan.limits
    for (const type of [...groups.map(group => group.type), ...events.flatMap(listGroupTypes)])
      if (!groupTypes.includes(type) && groupTypes.length < groupTypesMax) groupTypes.push(type)
    if (events.length === 0 || events.some(({ event }) => event !== '$groupidentify')) return false
    return events.flatMap(listGroupTypes).every(type => !groupTypes.includes(type))
  }

  #rejectGroup({ events }: ConvertedRecord): StagedResult {
    const { groupTypesMax } = this.#options.plan.limits
    const type = JSON.stringify(events[0]!.properties.$group_type)
    const detail = `a project can have ${groupTypesMax} group types, and that many others come before ${type}`
    return { kind: 'rejected', reason: 'group_type_limit', field: '$group_type', detail }
  }

  #manifest(): Manifest {
    const { plan } = this.#options
    const generated = this.#parts.filter(isGeneratedPart)
    const parts = this.#parts.filter(part => !isGeneratedPart(part))
    const range = this.#records.range()
    const zone = plan.config.source_timezone
    return {
      v: 2,
      jobId: plan.jobId,
      source: plan.source,
      sourceTimezone: typeof zone === 'string' ? zone : null,
      createdAt: plan.createdAt,
      toolVersion: plan.toolVersion,
      mappingSha256: hashConversionSettings(plan),
      raw: this.#records.sources,
      objects: this.#objects,
      parts: [...generated, ...parts],
      totals: {
        records: this.#records.count,
        bytes: sumStagedParts(parts).bytes,
        days: [...this.#partsOfDay.keys()].filter(day => /^\d/.test(day)).length,
      },
      sourceRange: range && { first: formatTime(range.firstUs), last: formatTime(range.lastUs) },
      scan: {
        sharedDevices: this.#state.sharedDevices,
        devices: this.#ledger.deviceCounts(),
        zoneNotes: Object.entries(this.#state.zoneNotes).map(([note, count]) => ({ note, count })),
        unseenNames: this.#names.all(),
      },
    }
  }
}

function createState(): ScanState {
  return {
    position: firstPosition,
    sharedDevices: 0,
    zoneNotes: {},
    groupTypes: [],
    repeats: { timeUs: null, seen: [] },
    names: [],
  }
}

/** Notes a CSV row that would also be a valid row with the other way of escaping quotes. */
function listQuotingNotes({ text, raw }: { text: string; raw: RawObject }): string[] {
  const { columns, hasEscapes } = raw
  if (columns === undefined || text.length >= shownSourceMax || !fitsOtherQuoting(text, { ...raw, columns })) return []
  return [hasEscapes ? 'csv_quotes:escaped' : 'csv_quotes:doubled']
}

function listGroupTypes({ properties }: ImportedEvent): readonly string[] {
  const { $groups, $group_type } = properties
  return [
    ...(typeof $group_type === 'string' ? [$group_type] : []),
    ...(isJsonObject($groups) ? Object.keys($groups) : []),
  ]
}
