// What a rehearsal finds about records that give no events: their reasons, whether they are too many, whether files are
// truncated, and whether the records come from another product. Source: docs/wire/import.md §2.6.

import { formatCount } from '#core/format-count.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import { parseJsonLine } from '#importer/read/parse-record.ts'
import type { RawPosition, ReadRecord } from '#importer/read/read-record.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import { ImportConfigError, type ImportSource, type RecordConverter } from '#importer/records/import-source.ts'
import type { RecordRejectReason } from '#importer/records/imported-event.ts'
import { compareTexts } from './event-counts.ts'
import { formatPercent } from './format-figures.ts'
import type { DamagedFile, ReasonCount } from './import-report.ts'

const examplesMax = 20
const filesMax = 100
const fixesMax = 5

interface Counted {
  count: number
  readonly fields: Set<string>
  readonly files: Set<string>
  readonly examples: { object: string; line: number; field: string | null }[]
  /** Remedies, if they differ among records with the same reason. */
  readonly fixes: Set<string>
}

/** Counts rejects or skips by reason, with their files and some example positions. */
export class ReasonCounts {
  total = 0
  readonly #reasons = new Map<string, Counted>()

  /**
   * @param times how many records have this reason. The position is that of the first record. @param fix the remedy; needed
   * only if the reason does not determine it.
   */
  add(
    reason: string,
    field: string | null,
    { object, line }: Pick<RawPosition, 'object' | 'line'>,
    times = 1,
    fix?: string,
  ): void {
    this.total += times
    const counted = this.#reasons.getOrInsertComputed(reason, () => ({
      ...{ count: 0, fields: new Set<string>(), files: new Set<string>(), examples: [], fixes: new Set<string>() },
    }))
    counted.count += times
    if (fix !== undefined && counted.fixes.size < fixesMax) counted.fixes.add(fix)
    if (field !== null) counted.fields.add(field)
    if (counted.files.size < filesMax) counted.files.add(object)
    if (counted.examples.length < examplesMax) counted.examples.push({ object, line, field })
  }

  /** @param fixOf returns the remedy for a reason. */
  reasons(fixOf: (reason: string) => string): readonly ReasonCount[] {
    return [...this.#reasons]
      .map(([reason, { count, fields, files, examples, fixes }]) => ({
        reason,
        count,
        fields: [...fields].toSorted(compareTexts),
        files: [...files].toSorted(compareTexts),
        fix: fixes.size === 0 ? fixOf(reason) : [...fixes].join(' '),
        examples,
      }))
      .toSorted((a, b) => b.count - a.count || compareTexts(a.reason, b.reason))
  }
}

/** A reject counts as one record unless it is this many times longer than the average readable record. */
const lengthsMin = 4

/**
 * Estimates how many records the rejects contain. A reject may be an unreadable stretch of a file, so counting it as one would
 * report the loss of thousands of records as a single one.
 */
export class RejectedRecordEstimate {
  readonly #read = { count: 0, bytes: 0 }
  /** Unreadable stretches by the power of two of their length, since the average record length is known only at the end. */
  readonly #unreadable = new Map<number, { count: number; bytes: number }>()
  #otherRejects = 0

  addRead(bytes: number): void {
    this.#read.count++
    this.#read.bytes += bytes
  }

  /** @param bytes null for a reject that is certainly one record, such as a line, or a record rejected for its content. */
  addReject(bytes: number | null): void {
    if (bytes === null) {
      this.#otherRejects++
      return
    }
    const magnitude = Math.floor(Math.log2(Math.max(1, bytes)))
    const sum = this.#unreadable.getOrInsertComputed(magnitude, () => ({ count: 0, bytes: 0 }))
    sum.count++
    sum.bytes += bytes
  }

  /** An estimate from the average length of readable records, at least the number of rejects. */
  records(): number {
    const meanBytes = Math.max(1, this.#read.bytes / Math.max(1, this.#read.count))
    let records = this.#otherRejects
    for (const [magnitude, { count, bytes }] of this.#unreadable) {
      const isLong = this.#read.count > 0 && 2 ** magnitude >= lengthsMin * meanBytes
      records += isLong ? Math.max(count, Math.round(bytes / meanBytes)) : count
    }
    return records
  }
}

/** So few rejects are always allowed, even if there are hardly any more records. */
const rejectsMin = 5

/** Whether the share of rejected records is so large that the mapping is probably wrong. */
export function isShareTooLarge(rejected: number, read: number, maxShare: number): boolean {
  return rejected > rejectsMin && rejected / read > maxShare
}

/** @param held estimate of how many records the rejects contain, if some contain many. */
export function describeRejectShare(share: number, maxShare: number, held?: number): string {
  const long = held === undefined ? '' : `The unreadable parts are as long as about ${formatCount(held, 'record')}, so `
  return `${long}${formatPercent(share)} of the records are rejected; the job pauses above ${formatPercent(maxShare)} (--max-reject-share) and ${rejectsMin} records.`
}

/** The smallest value of --max-reject-share, in whole percent, that allows these rejects. */
export function formatSufficientRejectShare(rejected: number, read: number): string {
  return `${Math.ceil((rejected / Math.max(1, read)) * 100)}%`
}

/**
 * Reject reasons that concern a file rather than one of its records. A truncated file gives a single reject however much of
 * it is missing, so the share of rejects does not reveal it.
 */
const fileReasons: Partial<Record<RecordRejectReason, string>> = {
  truncated_record: 'it ends in the middle of a record',
  compressed_input: 'it cannot be decompressed',
}

/** @param records how many records were read from the file before. @returns null for a normal record. */
export function findFileDamage({ parsed, raw }: ReadRecord, records: number): Omit<DamagedFile, 'object'> | null {
  if (!('rejected' in parsed)) return null
  const why = fileReasons[parsed.rejected.reason]
  return why === undefined ? null : { records, line: raw.line, why: parsed.rejected.detail ?? why }
}

export function listDamagedFiles({ objects }: Manifest): readonly DamagedFile[] {
  return objects.flatMap(({ object, damage }) => (damage === undefined ? [] : [{ object, ...damage }]))
}

export function describeDamage({ object, records, line, why }: DamagedFile): string {
  const read = formatCount(records, 'record was', 'records were')
  return `${object} is damaged in line ${line.toLocaleString('en')} (${why}): ${read} read, and what follows is missing.`
}

const triedMax = 100

/**
 * Detects that rejected records come from another product than the plan says: a wrong `--source` rejects all of them, each for
 * a field that such records never have.
 */
export class OtherSourceDetector {
  readonly #counts: { readonly name: string; readonly converter: RecordConverter; events: number }[]
  #tried = 0

  /** @param sources all sources except the planned source. @param nowMs when the job was planned. */
  constructor(sources: readonly ImportSource[], nowMs: number) {
    this.#counts = sources.flatMap(({ name, prepare }) => {
      const converter = prepareOrNull(() => prepare({}, { nowMs, holdLiveWindow: false, findFact: () => null }))
      return converter === null ? [] : [{ name, converter, events: 0 }]
    })
  }

  /** Tries to convert a rejected record with each source. @param table of the record. */
  add({ source, line }: StagedOutcome, table: string | null): void {
    if (this.#tried >= triedMax) return
    const { text, row } = source()
    const parsed = row === undefined ? parseJsonLine(Buffer.from(text)) : { value: row.cells }
    if (!('value' in parsed) || parsed.value === null) return
    const { value } = parsed
    this.#tried++
    for (const count of this.#counts) {
      const outcome = convertRecord(count.converter, { value, table, ordinal: line })
      if ('events' in outcome && outcome.events.length > 0) count.events++
    }
  }

  /**
   * @returns the source that converts the most records, if it converts more than half and no other source converts as many;
   * otherwise null.
   */
  likely(): string | null {
    const [best, second] = this.#counts.toSorted((a, b) => b.events - a.events)
    if (best === undefined || best.events * 2 <= this.#tried || best.events === second?.events) return null
    return best.name
  }
}

/** @returns null for a source that requires a configuration, such as a mapping. */
function prepareOrNull(prepare: () => RecordConverter): RecordConverter | null {
  try {
    return prepare()
  } catch (error) {
    if (error instanceof ImportConfigError) return null
    throw error
  }
}

export function describeLikelySource(source: string): string {
  return `The rejected records look like records of another source: --source ${source}.`
}
