// A chunk of the log becomes rows and changes: every event in order, against what was loaded for it. Pure: the same
// records and the same loaded state give the same rows byte for byte, which is what makes a crash between writing the
// rows and committing the state harmless. Reading, loading and writing is `services/processing/process-events.ts`.

import { rejectDetails, warnOfNotes } from '../capture/edge-warnings.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import type { PersonIdOverride, RejectedEvent, StoredEvent, StoredReplay } from '../events/stored-event.ts'
import { type GeoipLocation, type GeoipProperties, geoipProperties } from '../geoip.ts'
import { applyEvent } from './apply-event.ts'
import type { ChunkChanges, LoadedChunk } from './chunk.ts'
import { ChunkReport } from './chunk-report.ts'
import { closeChunkState, openChunkState, type ProjectState } from './chunk-state.ts'
import type { GeoipOf } from './enrich-event.ts'
import type { ParsedChunk, ParsedEvent, ParsedReplay } from './parse-chunk.ts'
import { anonymized, rejectOfDamage, rejectOfEvent, rejectOfReject, rejectOfReplay } from './rejects.ts'
import { FlagCalls, type StoredFlagCall, type ThinnedCall, thinnedReason } from './thin-flag-calls.ts'

export interface ProcessedChunk {
  readonly rows: {
    readonly events: readonly StoredEvent[]
    /** Rows of import jobs that are not published yet. */
    readonly pendingEvents: readonly StoredEvent[]
    readonly overrides: readonly PersonIdOverride[]
    readonly replays: readonly StoredReplay[]
    readonly rejected: readonly RejectedEvent[]
    readonly thinned: readonly ThinnedCall[]
  }
  /** The log record behind each of those rows that the store may refuse. */
  readonly sources: {
    readonly events: readonly ParsedEvent[]
    readonly pendingEvents: readonly ParsedEvent[]
    readonly replays: readonly ParsedReplay[]
  }
  readonly changes: ChunkChanges
  /** Characters of the persons' properties in all rows. */
  readonly personTextLength: number
  /** Projects that want no address kept, in rejects either. */
  readonly anonymousProjectIds: ReadonlySet<number>
}

export interface ProcessOptions {
  /** Null for an address that nothing is known of. */
  readonly lookUpGeoip: (address: string) => GeoipLocation | null
  /** Jobs whose rows are kept apart until they are published. */
  readonly pendingJobIds?: ReadonlySet<number>
  /** Overrides that the event store got from earlier tries of the chunk, which were not committed. */
  readonly toldOverrides?: Iterable<PersonIdOverride>
  /** How much text of persons the rows may carry together, any when absent: each has the properties of its person. */
  readonly personTextMax?: number
  /** Records whose merge other writers have overtaken every time: they go on without it. */
  readonly lostMerges?: ReadonlySet<number>
  /** The flag calls in the event store that those of the chunk may repeat, for projects that thin them. */
  readonly storedFlagCalls?: readonly StoredFlagCall[]
}

/** The rows of the chunk would carry more than `personTextMax`: a smaller one is to be processed. */
export class ChunkTooLargeError extends Error {
  constructor(recordCount: number) {
    super(`the rows of ${recordCount} records are too large together`)
    this.name = 'ChunkTooLargeError'
  }
}

/** Which record made processing throw, so that it can be set aside and the rest go on. */
export class RecordError extends Error {
  readonly offset: number
  constructor(offset: number, cause: unknown) {
    super(`record ${offset}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'RecordError'
    this.offset = offset
  }
}

/**
 * Applies a chunk. Neither `chunk` nor `loaded` is changed.
 * @throws RecordError for a record that the rules cannot digest, ChunkTooLargeError; nothing of the attempt is kept.
 */
export function processChunk(chunk: ParsedChunk, loaded: LoadedChunk, options: ProcessOptions): ProcessedChunk {
  const projects = openChunkState(loaded)
  const report = new ChunkReport()
  const geoipOf = rememberedGeoip(options.lookUpGeoip)
  const rejected: RejectedEvent[] = []
  const visible = { rows: [] as StoredEvent[], sources: [] as ParsedEvent[] }
  const pending = { rows: [] as StoredEvent[], sources: [] as ParsedEvent[] }
  const replays: ParsedReplay[] = []
  const { personTextMax = Number.POSITIVE_INFINITY, lostMerges, storedFlagCalls = [] } = options
  const flagCalls = new FlagCalls(storedFlagCalls)
  const work: ChunkWork = { projects, report, geoipOf, rejected, lostMerges, flagCalls, thinned: [] }
  let personTextLength = 0
  for (const record of chunk.records) {
    switch (record.kind) {
      case 'event': {
        const row = applyRecord(work, record)
        if (row === null) break
        personTextLength += row.personPropertiesJson.length
        if (personTextLength > personTextMax) throw new ChunkTooLargeError(chunk.records.length)
        const list = options.pendingJobIds?.has(row.importJobId) === true ? pending : visible
        list.rows.push(row)
        list.sources.push(record)
        break
      }
      case 'replay':
        if (projects.has(record.replay.projectId)) {
          replays.push(record)
          report.count(record.replay.projectId, 'replay', 'stored', '')
        } else report.count(record.replay.projectId, 'replay', 'dropped', 'unknown_project')
        break
      case 'failed_replay':
        rejected.push(rejectOfReplay(record.offset, record.replay, 'processing_failed', record.message))
        report.count(record.replay.projectId, 'replay', 'rejected', 'processing_failed')
        break
      case 'failed':
        rejected.push(rejectOfEvent(record.offset, record.event, 'processing_failed', record.message))
        report.count(record.event.projectId, record.event.lane, 'rejected', 'processing_failed')
        break
      case 'reject':
        rejected.push(rejectOfReject(record.offset, record.reject))
        report.warn(record.reject, record.reject.reason, rejectDetails(rejected.at(-1)!.rejectId, record.reject))
        report.count(record.reject.projectId, record.reject.lane, 'rejected', record.reject.reason)
        break
      case 'damaged':
        rejected.push(rejectOfDamage(record.offset, chunk.lane, record))
        report.count(0, chunk.lane, 'rejected', 'log_record_damaged')
        break
      default:
        record satisfies never
    }
  }
  const anonymousProjectIds = new Set(loaded.projects.filter(({ anonymizeIps }) => anonymizeIps).map(({ id }) => id))
  const { changes, overrides } = closeChunkState(projects, options.toldOverrides)
  return {
    rows: {
      events: visible.rows,
      pendingEvents: pending.rows,
      overrides,
      replays: replays.map(({ replay }) => replay),
      rejected: rejected.map(reject => anonymized(reject, anonymousProjectIds)),
      thinned: work.thinned,
    },
    sources: { events: visible.sources, pendingEvents: pending.sources, replays },
    changes: { ...changes, warnings: report.allWarnings(), outcomes: report.allOutcomes() },
    personTextLength,
    anonymousProjectIds,
  }
}

interface ChunkWork {
  readonly projects: ReadonlyMap<number, ProjectState>
  readonly report: ChunkReport
  readonly geoipOf: GeoipOf
  readonly rejected: RejectedEvent[]
  readonly lostMerges: ReadonlySet<number> | undefined
  readonly flagCalls: FlagCalls
  readonly thinned: ThinnedCall[]
}

/** @returns null for an event that does not become a row. */
function applyRecord(work: ChunkWork, record: ParsedEvent): StoredEvent | null {
  const { report, geoipOf } = work
  const { event, offset } = record
  const state = work.projects.get(event.projectId)
  if (state === undefined) {
    report.count(event.projectId, event.lane, 'dropped', 'unknown_project')
    return null
  }
  if (event.lane === 'historical') report.noteRecentImport(event)
  const warn = warnerOf(report, event)
  if (event.notes !== 0) warnOfNotes(event, warn)
  try {
    const mergeIsLost = work.lostMerges?.has(offset) === true
    const applied = applyEvent({ state, geoipOf, warn, mergeIsLost, flagCalls: work.flagCalls }, record)
    if (applied.kind === 'stored') {
      report.count(event.projectId, event.lane, 'stored', '')
      return applied.row
    }
    if (applied.kind === 'dropped') report.count(event.projectId, event.lane, 'dropped', applied.reason)
    else if (applied.kind === 'thinned') {
      work.thinned.push(applied.call)
      report.count(event.projectId, event.lane, 'dropped', thinnedReason)
    } else {
      work.rejected.push(rejectOfEvent(offset, event, 'message_size_too_large', 'properties'))
      report.count(event.projectId, event.lane, 'rejected', 'message_size_too_large')
    }
    return null
  } catch (cause) {
    throw new RecordError(offset, cause)
  }
}

function warnerOf(report: ChunkReport, event: CapturedEvent): (type: string, details: JsonDetails) => void {
  return (type, details) => report.warn(event, type, details)
}

type JsonDetails = Parameters<ChunkReport['warn']>[2]

/** One look-up per address and chunk. */
function rememberedGeoip(lookUp: ProcessOptions['lookUpGeoip']): GeoipOf {
  const known = new Map<string, GeoipProperties | null>()
  return address => {
    let properties = known.get(address)
    if (properties === undefined) {
      const location = lookUp(address)
      properties = location === null ? null : geoipProperties(location)
      known.set(address, properties)
    }
    return properties
  }
}
