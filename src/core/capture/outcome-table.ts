// The one table about a capture request: a row for each item, in order, and the records that the items became. It is made
// where the body is read (a decode thread for a large body) and is transferred out of that thread without being copied.
// Later decisions (quotas, hot distinct ids, import-only) are passes that give rows another outcome. Metrics, counts,
// rejects and answers are read from the final table. Source: docs/decisions/0039-one-outcome-table.md.

import { type CapturedEvent, type CapturedReject, type Lane, lanes } from '../events/captured-event.ts'
import { findTrafficOfLane, type Traffic } from '../events/log-stream.ts'
import { type EncodedRecords, RecordEncoder, type SettledVisitor } from '../log/record-codec.ts'
import { RecordView } from '../log/record-view.ts'
import type { Steps } from '../maybe-steps.ts'
import { releaseBytesMemory, shortenBytes } from '../release-bytes.ts'
import { isSameVisitor, type VisitorFacts } from './cookieless-event.ts'
import type { EventRefusal } from './normalize-event.ts'
import { importOnlyCode, type Outcome, outcomes, resourceOfOverQuotaCode } from './outcomes.ts'
import { type EventResource, eventResourceOf, eventResources } from './quota-resource.ts'

export interface OutcomeTable {
  /** Two cells per row: where its record begins (-1 for none), and bit fields as listed in `column`. */
  readonly cells: Int32Array<ArrayBuffer>
  /** Records of the live events and of the imports; null when there are none. */
  live: EncodedRecords | null
  import: EncodedRecords | null
  /** Records of the items that did not become events. Those that may be kept come first. */
  rejects: EncodedRecords | null
  /** One entry for each row with `hasVisitorAt`, in the order of the rows. No record contains these facts. */
  readonly visitors: readonly VisitorFacts[]
}

type Run = Traffic | 'rejects'

/** A project may have this many rejects stored per second, so the bodies of further rejects are not needed. */
export const rejectCountMax = 100

const cellsPerRow = 2
/** The bits of a row's second cell. */
const column = {
  /** Index in `outcomes`. */
  code: { at: 0, mask: 0xff },
  lane: { at: 8, mask: 0xf },
  /** The quota that the row is subject to: its index in `eventResources` plus 1; 0 for none, as for imports. */
  resource: { at: 12, mask: 0xf },
  /** Not an event: its record is among the rejects. */
  isReject: { at: 16, mask: 1 },
  /** The client sent no uuid. */
  isUuidMade: { at: 17, mask: 1 },
  /** The client sent no name, or one that is not a string. */
  isNameless: { at: 18, mask: 1 },
  /** A bad item for which the whole request is refused. */
  refusesRequest: { at: 19, mask: 1 },
  /** An event of cookieless mode that will be hashed. */
  hasVisitor: { at: 20, mask: 1 },
} as const
type Column = (typeof column)[keyof typeof column]

export function rowCountOf({ cells }: OutcomeTable): number {
  return cells.length / cellsPerRow
}

export function outcomeCodeAt(table: OutcomeTable, row: number): number {
  return readColumn(table, row, column.code)
}

export function outcomeAt(table: OutcomeTable, row: number): Outcome {
  return outcomes[outcomeCodeAt(table, row)]!
}

/** Changes an item's outcome. If items with the new outcome are not stored, its record is not appended to the log. */
export function setOutcomeCode(table: OutcomeTable, row: number, code: number): void {
  writeColumn(table, row, column.code, code)
}

export function setEveryOutcomeCode(table: OutcomeTable, code: number): void {
  for (let row = 0; row < rowCountOf(table); row++) setOutcomeCode(table, row, code)
}

export function laneAt(table: OutcomeTable, row: number): Lane {
  return lanes[laneIndexAt(table, row)]!
}

/** The index of the row's lane in `lanes`. */
export function laneIndexAt(table: OutcomeTable, row: number): number {
  return readColumn(table, row, column.lane)
}

export function setLane(table: OutcomeTable, row: number, lane: Lane): void {
  writeColumn(table, row, column.lane, lanes.indexOf(lane))
}

/** The quota that a row is subject to; null for an import and for a bad item that does not refuse its request. */
export function resourceAt(table: OutcomeTable, row: number): EventResource | null {
  return eventResources[readColumn(table, row, column.resource) - 1] ?? null
}

export function isNamelessAt(table: OutcomeTable, row: number): boolean {
  return readColumn(table, row, column.isNameless) === 1
}

export function hasGeneratedUuidAt(table: OutcomeTable, row: number): boolean {
  return readColumn(table, row, column.isUuidMade) === 1
}

/** Whether the row is an event of cookieless mode that will be hashed. */
export function hasVisitorAt(table: OutcomeTable, row: number): boolean {
  return readColumn(table, row, column.hasVisitor) === 1
}

/** Whether a bad item is kept by itself instead of refusing its request. */
export function isKeptRejectAt(table: OutcomeTable, row: number): boolean {
  return outcomeAt(table, row).result === 'reject' && readColumn(table, row, column.refusesRequest) === 0
}

/**
 * Reads the records of rows. A row that is not stored keeps its record until `removeUnstoredRecords` removes it; other rows keep
 * theirs until the log has taken over the records.
 */
export class TableRecords {
  readonly #table: OutcomeTable
  readonly #views: Partial<Record<Run, RecordView>> = {}

  constructor(table: OutcomeTable) {
    this.#table = table
  }

  /** The view is valid until the next call. */
  at(row: number): RecordView {
    const run = readRunAt(this.#table, row)
    this.#views[run] ??= new RecordView(this.#table[run]!.bytes)
    return this.#views[run].moveTo(this.#table.cells[row * cellsPerRow]!)
  }
}

export interface RequestRefusal {
  readonly row: number
  readonly reason: EventRefusal
  /** The field at fault with its place, such as `batch.3.distinct_id`. */
  readonly field: string
  /** Uuid, name and distinct id of the item at fault. */
  readonly uuid: string
  readonly name: string
  readonly distinctId: string
}

/** The first bad item that refuses the whole request, or null. */
export function readRequestRefusal(table: OutcomeTable): RequestRefusal | null {
  for (let row = 0; row < rowCountOf(table); row++) {
    if (readColumn(table, row, column.refusesRequest) === 0) continue
    const { result, reason } = outcomeAt(table, row)
    if (result !== 'reject') continue
    const { field, uuid, name, distinctId } = new TableRecords(table).at(row)
    return { row, reason: reason as EventRefusal, field, uuid, name, distinctId }
  }
  return null
}

/**
 * Why none of a request's valid events is stored: the reason of the first event that a quota or import-only mode left out.
 * Null when some item is stored or none was left out.
 */
export function findLeftOutReason(table: OutcomeTable): string | null {
  let first: string | null = null
  for (let row = 0; row < rowCountOf(table); row++) {
    const { isStored, reason } = outcomeAt(table, row)
    if (isStored) return null
    const code = outcomeCodeAt(table, row)
    if (code === importOnlyCode || resourceOfOverQuotaCode(code) !== null) first ??= reason
  }
  return first
}

/**
 * Builds a table. Events have to be added in the order of their rows. Each run of records (live, imports, rejects) is in
 * the order in which they were added.
 */
export class TableWriter {
  readonly #cells: Int32Array<ArrayBuffer>
  readonly #encoders: Record<Run, RecordEncoder | null> = { live: null, import: null, rejects: null }
  readonly #visitors: VisitorFacts[] = []

  constructor(itemCount: number) {
    this.#cells = allocateCells(itemCount * cellsPerRow)
  }

  addEvent(row: number, event: CapturedEvent, code: number, { isUuidMade, visitor, settled = null }: EventRow): void {
    const { lane } = event
    const encoder = this.#encoderOf(findTrafficOfLane(lane))
    // No quota applies to imports. Source: docs/wire/ingestion.md 5.
    const resource = event.historicalMigration ? null : eventResourceOf(event.name, event.propertiesJson)
    const flags = (isUuidMade ? toBit(column.isUuidMade) : 0) | (visitor === null ? 0 : toBit(column.hasVisitor))
    if (visitor !== null) this.#addVisitor(visitor)
    this.#addRow(row, encoder, code, lane, resource, flags)
    encoder.addEvent(event, settled)
  }

  addReject(
    row: number,
    reject: CapturedReject,
    code: number,
    { resource, isNameless, refusesRequest }: RejectRow,
  ): void {
    const flags =
      toBit(column.isReject) |
      (isNameless ? toBit(column.isNameless) : 0) |
      (refusesRequest ? toBit(column.refusesRequest) : 0)
    const encoder = this.#encoderOf('rejects')
    this.#addRow(row, encoder, code, reject.lane, resource, flags)
    encoder.addReject(reject)
  }

  finish(): OutcomeTable {
    const { live, import: imports, rejects } = this.#encoders
    return {
      cells: this.#cells,
      live: live?.finish() ?? null,
      import: imports?.finish() ?? null,
      rejects: rejects?.finish() ?? null,
      visitors: this.#visitors,
    }
  }

  /** Most events of one request have the same visitor, so consecutive events share one object with the facts. */
  #addVisitor(visitor: VisitorFacts): void {
    const last = this.#visitors.at(-1)
    this.#visitors.push(last !== undefined && isSameVisitor(last, visitor) ? last : visitor)
  }

  #encoderOf(run: Run): RecordEncoder {
    this.#encoders[run] ??= new RecordEncoder()
    return this.#encoders[run]
  }

  #addRow(
    row: number,
    encoder: RecordEncoder,
    code: number,
    lane: Lane,
    resource: EventResource | null,
    flags: number,
  ): void {
    this.#cells[row * cellsPerRow] = encoder.bytes
    this.#cells[row * cellsPerRow + 1] =
      (code << column.code.at) |
      (lanes.indexOf(lane) << column.lane.at) |
      ((resource === null ? 0 : eventResources.indexOf(resource) + 1) << column.resource.at) |
      flags
  }
}

/**
 * Allocates by size: V8 keeps up to 64 bytes on its own heap, up to 4 KiB come from Node's pool, and longer arrays own
 * their buffer, so that they can be transferred.
 */
function allocateCells(length: number): Int32Array<ArrayBuffer> {
  if (length <= 16 || length > 1_024) return new Int32Array(length)
  const { buffer, byteOffset } = Buffer.allocUnsafe(length * Int32Array.BYTES_PER_ELEMENT)
  return new Int32Array(buffer, byteOffset, length)
}

/** The columns that an event's row has in addition to those of all rows. */
export interface EventRow {
  readonly isUuidMade: boolean
  /** What an event of cookieless mode said about its visitor, if it will be hashed; null for every other event. */
  readonly visitor: VisitorFacts | null
  /** The visitor of a cookieless event, if it is settled already. */
  readonly settled?: SettledVisitor | null
}

/** The columns that the row of an item that did not become an event has in addition to those of all rows. */
export interface RejectRow {
  /** If this quota is used up, the item is left out for that reason instead of its fault; null for none. */
  readonly resource: EventResource | null
  readonly isNameless: boolean
  readonly refusesRequest: boolean
}

function readRunAt(table: OutcomeTable, row: number): Run {
  return readColumn(table, row, column.isReject) === 1 ? 'rejects' : findTrafficOfLane(laneAt(table, row))
}

/** What one step of `removeUnstoredRecords` handles: less than a millisecond's work. */
const recordsPerStep = 512
const bytesPerStep = 1024 * 1024

/**
 * Removes the records that are not stored from the live events and the imports, in place; the remaining records keep their
 * order. Works in steps, since a run of records may be as long as the whole request.
 */
export function* removeUnstoredRecords(table: OutcomeTable): Steps<void> {
  for (const traffic of ['live', 'import'] as const) {
    const records = table[traffic]
    if (records !== null) table[traffic] = yield* compactRecords(table, traffic, records)
  }
}

function* compactRecords(
  table: OutcomeTable,
  traffic: Traffic,
  records: EncodedRecords,
): Generator<void, EncodedRecords | null> {
  const { cells } = table
  const { bytes } = records
  const view = new RecordView(bytes)
  let end = 0
  let recordCount = 0
  let looked = 0
  let stepEnd = bytesPerStep
  for (let row = 0; row < rowCountOf(table); row++) {
    if (readRunAt(table, row) !== traffic) continue
    const start = cells[row * cellsPerRow]!
    const { size } = view.moveTo(start)
    cells[row * cellsPerRow] = outcomeAt(table, row).isStored ? end : -1
    if (outcomeAt(table, row).isStored) {
      if (end !== start) bytes.copyWithin(end, start, start + size)
      end += size
      recordCount++
    }
    if (++looked % recordsPerStep !== 0 && end < stepEnd) continue
    stepEnd = end + bytesPerStep
    yield
  }
  if (recordCount > 0) return { bytes: shortenBytes(bytes, end), recordCount }
  releaseBytesMemory(bytes)
  return null
}

/**
 * Rewrites the records of the live events and of the imports, filling in the settled visitors. The table does not change
 * until `finish`.
 */
export class EventRewriter {
  readonly #table: OutcomeTable
  readonly #records: TableRecords
  readonly #encoders: Partial<Record<Run, RecordEncoder>> = {}
  readonly #starts: Int32Array

  constructor(table: OutcomeTable) {
    this.#table = table
    this.#records = new TableRecords(table)
    this.#starts = new Int32Array(rowCountOf(table)).fill(-1)
  }

  /** Call it for every row that is an event, in the order of the rows. @param settled null to copy the record as it is. */
  add(row: number, settled: SettledVisitor | null): void {
    const run = readRunAt(this.#table, row)
    this.#encoders[run] ??= new RecordEncoder()
    const encoder = this.#encoders[run]
    this.#starts[row] = encoder.bytes
    this.#records.at(row).copyTo(encoder, settled)
  }

  finish(): void {
    const table = this.#table
    for (const traffic of ['live', 'import'] as const) {
      if (table[traffic] !== null) releaseBytesMemory(table[traffic].bytes)
      table[traffic] = this.#encoders[traffic]?.finish() ?? null
    }
    for (let row = 0; row < rowCountOf(table); row++)
      if (this.#starts[row]! >= 0) table.cells[row * cellsPerRow] = this.#starts[row]!
  }
}

/** Whether the row's item did not become an event. */
export function isNotEventAt(table: OutcomeTable, row: number): boolean {
  return readColumn(table, row, column.isReject) === 1
}

/** Keeps the first `count` rejects, in the order in which they were found, and removes the records of the rest. */
export function keepFirstRejects(table: OutcomeTable, count: number): void {
  const { cells, rejects } = table
  if (rejects === null) return
  const view = new RecordView(rejects.bytes)
  let end = 0
  for (let kept = 0; kept < count; kept++) end += view.moveTo(end).size
  table.rejects = count === 0 ? null : { bytes: shortenBytes(rejects.bytes, end), recordCount: count }
  for (let row = 0; row < rowCountOf(table); row++)
    if (readRunAt(table, row) === 'rejects' && cells[row * cellsPerRow]! >= end) cells[row * cellsPerRow] = -1
}

/** Frees the records of a request of which nothing is stored, once its answer is ready. */
export function freeOutcomeTable({ live, import: imports, rejects }: OutcomeTable): void {
  for (const records of [live, imports, rejects]) if (records !== null) releaseBytesMemory(records.bytes)
}

/** Whether the row still has its record. */
export function hasRecordAt({ cells }: OutcomeTable, row: number): boolean {
  return cells[row * cellsPerRow] !== -1
}

function readColumn({ cells }: OutcomeTable, row: number, { at, mask }: Column): number {
  return (cells[row * cellsPerRow + 1]! >>> at) & mask
}

function writeColumn({ cells }: OutcomeTable, row: number, { at, mask }: Column, value: number): void {
  const place = row * cellsPerRow + 1
  cells[place] = (cells[place]! & ~(mask << at)) | (value << at)
}

function toBit({ at }: Column): number {
  return 1 << at
}
