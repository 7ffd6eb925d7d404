// Opens a staged and scanned job, for rehearsal, sending and verification.

import type { JsonObject } from '#core/json.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobLedger } from '../job/ledger.ts'
import { countBlankLines, type Manifest } from '../job/manifest.ts'
import type { ImportPlan } from '../job/plan.ts'
import type { StagedJob, StagedOutcome, StagedPart } from '../job/staged-part.ts'
import { fitsOtherQuoting } from '../read/parse-record.ts'
import { addToSet, replaceRefusedLink } from '../records/generated-events.ts'
import type { ImportSource } from '../records/import-source.ts'
import type {
  Conversion,
  ConvertedRecord,
  ImportedEvent,
  PersonSnapshot,
  RecordNote,
} from '../records/imported-event.ts'
import type { UnseenNames } from '../records/unseen-names.ts'
import { createJobConversion, type JobConversion } from './job-conversion.ts'
import { type PartLine, readPartLines } from './part-lines.ts'
import { findTable, ledgerFile } from './scan.ts'
import { decodeScanNote, readScanNotes, type ScanNote } from './scan-notes.ts'
import { shownSourceMax } from './staged-line.ts'

export interface OpenStagedJob extends StagedJob {
  /** @returns the user that a device is linked to, or the id itself. Ids with the same result belong to one person. */
  personOf(distinctId: string): string
  close(): void
}

export interface OpenOptions {
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly manifest: Manifest
  readonly source: ImportSource
  /** Records which names of the configuration occur in the records. */
  readonly unseenNames?: UnseenNames
}

export function openStagedJob({ folder, plan, manifest, source, unseenNames }: OpenOptions): OpenStagedJob {
  const ledger = new JobLedger(folder.file(ledgerFile))
  const conversion = createJobConversion(plan, source, (kind, key) => ledger.findFact(kind, key), unseenNames)
  return {
    parts: manifest.parts,
    generatedCount: ledger.generatedCount(),
    blankLines: countBlankLines(manifest),
    *generatedEvents({ afterIndex } = { afterIndex: -1 }) {
      let index = afterIndex + 1
      for (const event of ledger.generatedEvents(index)) yield { index: index++, event }
    },
    async *readPart(part: StagedPart, afterLine = 0): AsyncGenerator<StagedOutcome> {
      const notes = readScanNotes(folder, part)
      for await (const line of readPartLines(folder, part, afterLine))
        yield createOutcome(line, decodeScanNote(notes[line.number - 1]!), { plan, manifest, conversion, unseenNames })
    },
    personOf: distinctId => ledger.userOf(distinctId) ?? distinctId,
    close: () => ledger.close(),
  }
}

interface OutcomeContext extends Pick<OpenOptions, 'plan' | 'manifest'> {
  readonly conversion: JobConversion
  readonly unseenNames: UnseenNames | undefined
}

function createOutcome(
  { number, byteEnd, staged }: PartLine,
  note: ScanNote,
  { plan, manifest, conversion, unseenNames }: OutcomeContext,
): StagedOutcome {
  const { object, line, byte, text } = staged
  // A repeat found by id (not by content) may have fields that are still unseen.
  const isLookedAt = (note.d === 'i' || note.d === 'o') && unseenNames?.isWaiting === true
  const converted = note.d === undefined || isLookedAt ? conversion.convert(staged, findTable(manifest, staged)) : null
  const record = note.d === undefined ? converted : null
  const { object: name, columns, delimiter, hasEscapes = false } = manifest.objects[object]!
  const raw = { object: name, line, byte }
  const cells = 'value' in staged.parsed ? staged.parsed.value : null
  const isTwofold =
    columns !== undefined &&
    text.length < shownSourceMax &&
    fitsOtherQuoting(text, columns.length, delimiter ?? ',', hasEscapes)
  const notes = isTwofold ? [hasEscapes ? 'csv_quotes:escaped' : 'csv_quotes:doubled'] : []
  return {
    line: number,
    byteEnd,
    raw,
    ordinal: staged.ordinal,
    text,
    sourceSha256: staged.sourceSha256,
    unreadableBytes: staged.unreadableBytes,
    ...(columns !== undefined && { row: { columns, cells } }),
    result: record === null ? createRepeatResult(note) : createResult(note, record, notes, plan),
  }
}

function createRepeatResult({ d }: ScanNote): StagedOutcome['result'] {
  if (d === 'c') return { kind: 'collapsed' }
  return { kind: 'skipped', reason: d === 'o' ? 'differs_in_source' : 'duplicate_in_source' }
}

function createResult(
  note: ScanNote,
  record: Conversion,
  notes: readonly RecordNote[],
  { limits }: ImportPlan,
): StagedOutcome['result'] {
  if ('skipped' in record) return { kind: 'skipped', reason: record.skipped }
  if ('rejected' in record) return { kind: 'rejected', ...record.rejected }
  if (note.g === 1) {
    const type = JSON.stringify(record.events[0]!.properties.$group_type)
    const detail = `a project can have ${limits.groupTypesMax} group types, and that many others come before ${type}`
    return { kind: 'rejected', reason: 'group_type_limit', field: '$group_type', detail }
  }
  const shared = Array.from({ length: note.s ?? 0 }, () => 'shared_device')
  return {
    kind: 'events',
    events: createOwnEvents(record, note),
    notes: [...(record.notes ?? []), ...shared, ...notes],
    dropped: record.dropped ?? [],
  }
}

/** The record's own events; the first one sets the person properties that were new at its time. */
function createOwnEvents({ events, person }: ConvertedRecord, note: ScanNote): readonly ImportedEvent[] {
  const [first, ...others] = events
  const isRefused = note.r === 1
  if (person === undefined || first === undefined) return replaceRefusedLink(events, isRefused)
  const news = note.p === undefined ? person.properties : pickByIndex(person, note.p)
  return replaceRefusedLink([addToSet(first, news), ...others], isRefused)
}

function pickByIndex({ properties }: PersonSnapshot, indexes: readonly number[]): JsonObject {
  const keys = Object.keys(properties)
  return Object.fromEntries(indexes.map(index => [keys[index]!, properties[keys[index]!]!]))
}
