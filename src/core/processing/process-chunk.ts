// Turns a chunk of the log into rows and changes by applying its events, in order, to the loaded state. Pure: the same
// records and loaded state give the same rows byte for byte, so a crash between writing the rows and committing the state
// does no harm. `services/processing/process-events.ts` reads, loads and writes.

import {
  anonymizeReject,
  createRejectFromDamage,
  createRejectFromEvent,
  createRejectFromLogRecord,
  createRejectFromRecording,
} from '#core/processing/rejects/rejects.ts'
import { describeReject, raiseWarningsFromNotes } from '../capture/edge-warnings.ts'
import { type CapturedEvent, type CapturedReject, importWithoutJob } from '../events/captured-event.ts'
import { groupEventNames } from '../events/event-names.ts'
import { defaultLaneOf, type LogStream } from '../events/log-stream.ts'
import type { PersonIdOverride, RejectedEvent, StoredEvent, StoredRecording } from '../events/stored-event.ts'
import type { GeoipLocation } from '../geoip.ts'
import type { GeneratedEvent } from '../imports/import-changes.ts'
import { firstImportJobId, type ImplicitJob, isJobPending, toStagingProjectId } from '../imports/import-job.ts'
import { ErasedRecords } from '../persons/erasure.ts'
import { utcDay } from '../usage.ts'
import { applyEvent } from './apply-event.ts'
import { CalledFlags } from './called-flags.ts'
import type { ChunkChanges, LoadedChunk } from './chunk.ts'
import { ChunkReport } from './chunk-report.ts'
import { openChunkState, type ProjectState } from './chunk-state.ts'
import { collectImportChanges } from './collect-import-changes.ts'
import { type DeduplicatedCall, deduplicatedReason, FlagCalls, type StoredFlagCall } from './deduplicate-flag-calls.ts'
import { cacheGeoipLookups } from './enrich-event.ts'
import { doesLinkErasedId, findErasedItem, personErased } from './erased-items.ts'
import { isGeneratedEvent, type ParsedChunk, type ParsedEvent, type ParsedRecording } from './parse-chunk.ts'
import { collectStateChanges } from './state-changes.ts'

export interface ProcessedChunk {
  readonly rows: {
    readonly events: readonly StoredEvent[]
    /** The chunk's rows of import jobs that are not published yet. */
    readonly pendingEvents: readonly StoredEvent[]
    readonly overrides: readonly PersonIdOverride[]
    readonly recordings: readonly StoredRecording[]
    readonly rejected: readonly RejectedEvent[]
    readonly deduplicated: readonly DeduplicatedCall[]
    /** How often persons had been erased, by project. */
    readonly erasures: ReadonlyMap<number, number>
  }
  /** The log record of each row that the store may refuse. */
  readonly sources: {
    readonly stream: LogStream
    readonly events: readonly ParsedEvent[]
    readonly pendingEvents: readonly ParsedEvent[]
    readonly recordings: readonly ParsedRecording[]
  }
  readonly changes: ChunkChanges
  /** Characters of the persons' properties in all rows. */
  readonly personTextLength: number
  /** By project id: characters of property text that its events wrote to groups, counting each write. */
  readonly groupTextLengths: ReadonlyMap<number, number>
  /** Projects that keep no addresses, not even in rejects. */
  readonly anonymousProjectIds: ReadonlySet<number>
}

export interface ProcessOptions {
  /** Id of the log that the chunk was read from. Makes the ids of damaged records unique across logs. */
  readonly logId: string
  /** Returns null for an unknown address. */
  readonly lookUpGeoip: (address: string) => GeoipLocation | null
  /** The jobs that collect imports without a job, by `buildImportDayKey` of project and day; none if absent. */
  readonly implicitJobs?: ImplicitJobs
  /** Rebuilds rows that were stored before: rows of a published job are visible, and nothing is rejected. */
  readonly isRestoring?: boolean
  /** Overrides that earlier, uncommitted tries of the chunk wrote to the event store. */
  readonly publishedOverrides?: Iterable<PersonIdOverride>
  /** Limit of the total characters of person properties, which each row repeats; no limit if absent. */
  readonly personTextMax?: number
  /** Offsets of records whose merge conflicted with other writers on every try, and which are processed without it. */
  readonly lostMerges?: ReadonlySet<number>
  /** Stored flag calls that the chunk's flag calls may repeat, for projects that deduplicate them. */
  readonly storedFlagCalls?: readonly StoredFlagCall[]
}

/** The chunk's rows would exceed `personTextMax`: the caller must process a smaller chunk. */
export class ChunkTooLargeError extends Error {
  constructor(recordCount: number) {
    super(`the rows of ${recordCount} records are too large together`)
    this.name = 'ChunkTooLargeError'
  }
}

/** Identifies the record that made processing throw, so that it can be set aside and the remaining records processed. */
export class RecordError extends Error {
  readonly offset: number
  constructor(offset: number, cause: unknown) {
    super(`record ${offset}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'RecordError'
    this.offset = offset
  }
}

/**
 * Applies a chunk. Changes neither `chunk` nor `loaded`.
 * @throws RecordError for a record whose processing throws, or ChunkTooLargeError; nothing of the failed attempt is kept.
 */
export function processChunk(chunk: ParsedChunk, loaded: LoadedChunk, options: ProcessOptions): ProcessedChunk {
  const work = openWork(chunk, loaded, options)
  const { stream, projects, jobs, report, rejected } = work
  const visible = { rows: [] as StoredEvent[], sources: [] as ParsedEvent[] }
  const pending = { rows: [] as StoredEvent[], sources: [] as ParsedEvent[] }
  const recordings: ParsedRecording[] = []
  const { personTextMax = Number.POSITIVE_INFINITY } = options
  let personTextLength = 0
  for (const record of chunk.records) {
    const item = findErasedItem(work.erased, record)
    if (item !== null) {
      report.count(item.projectId, item.lane, 'dropped', personErased)
      continue
    }
    switch (record.kind) {
      case 'event': {
        const row = applyRecord(work, record)
        if (row === null) break
        personTextLength += row.personPropertiesJson.length
        if (personTextLength > personTextMax) throw new ChunkTooLargeError(chunk.records.length)
        const list = isOfPendingJob(work, record.event) ? pending : visible
        list.rows.push(row)
        list.sources.push(record)
        break
      }
      case 'recording':
        if (projects.has(record.recording.projectId)) {
          recordings.push(record)
          report.count(record.recording.projectId, 'replay', 'stored', '')
        } else report.count(record.recording.projectId, 'replay', 'dropped', 'unknown_project')
        break
      case 'failed_recording':
        rejected.push(
          createRejectFromRecording(
            { stream, offset: record.offset },
            record.recording,
            'processing_failed',
            record.message,
          ),
        )
        report.count(record.recording.projectId, 'replay', 'rejected', 'processing_failed')
        break
      case 'failed':
        rejected.push(
          createRejectFromEvent({ stream, offset: record.offset }, record.event, 'processing_failed', record.message),
        )
        report.count(record.event.projectId, record.event.lane, 'rejected', 'processing_failed')
        break
      case 'reject':
        rejected.push(createRejectFromLogRecord({ stream, offset: record.offset }, record.reject))
        report.warn(
          assignToImplicitJob(work, record.reject),
          record.reject.reason,
          describeReject(rejected.at(-1)!.rejectId, record.reject),
        )
        report.count(record.reject.projectId, record.reject.lane, 'rejected', record.reject.reason)
        break
      case 'damaged':
        rejected.push(
          createRejectFromDamage(
            { stream, offset: record.offset },
            { logId: options.logId, traffic: chunk.traffic },
            record,
          ),
        )
        report.count(0, defaultLaneOf(chunk.traffic), 'rejected', 'log_record_damaged')
        break
      default:
        record satisfies never
    }
  }
  const anonymousProjectIds = new Set(loaded.projects.filter(({ anonymizeIps }) => anonymizeIps).map(({ id }) => id))
  const { changes, overrides } = collectStateChanges(projects, options.publishedOverrides)
  return {
    rows: {
      events: visible.rows,
      pendingEvents: pending.rows,
      overrides,
      recordings: recordings.map(({ recording }) => recording),
      rejected: rejected.map(reject => anonymizeReject(reject, anonymousProjectIds)),
      deduplicated: work.deduplicated,
      erasures: loaded.erasures ?? noErasures,
    },
    sources: { stream, events: visible.sources, pendingEvents: pending.sources, recordings },
    changes: {
      ...changes,
      calledFlags: work.calledFlags.all(),
      warnings: report.allWarnings(jobs),
      outcomes: report.allOutcomes(),
      ...collectImportChanges(work, pending.rows),
      importUndos: new Map(loaded.projects.map(({ id }) => [id, loaded.importUndos?.get(id)?.count ?? 0])),
    },
    personTextLength,
    groupTextLengths: new Map(Array.from(projects, ([id, { groupTextLength }]) => [id, groupTextLength])),
    anonymousProjectIds,
  }
}

/** The implicit jobs of a day, by `buildImportDayKey`. */
export type ImplicitJobs = ReadonlyMap<string, readonly ImplicitJob[]>

const noImplicitJobs: ImplicitJobs = new Map()
const noErasures: ReadonlyMap<number, number> = new Map()

/** The key of the jobs that collect the imports of a project and a UTC day of acceptance. */
export function buildImportDayKey({
  projectId,
  capturedAtMs,
}: Pick<CapturedEvent, 'projectId' | 'capturedAtMs'>): string {
  return `${projectId} ${utcDay(capturedAtMs)}`
}

type ChunkWork = ReturnType<typeof openWork>

function openWork(chunk: ParsedChunk, loaded: LoadedChunk, options: ProcessOptions) {
  const { stream } = chunk
  return {
    stream,
    projects: openChunkState(loaded),
    jobs: new Map((loaded.importJobs ?? []).map(job => [job.id, job])),
    implicitJobs: options.implicitJobs ?? noImplicitJobs,
    /** The first times of generated events, by project and uuid. */
    generatedTimes: new Map(
      (loaded.generated ?? []).map(event => [`${event.projectId}:${event.uuid}`, event.timestampMs]),
    ),
    newGenerated: [] as GeneratedEvent[],
    isRestoring: options.isRestoring === true,
    report: new ChunkReport(),
    geoipOf: cacheGeoipLookups(options.lookUpGeoip),
    rejected: [] as RejectedEvent[],
    lostMerges: options.lostMerges,
    erased: new ErasedRecords(options.logId, stream, loaded.erasedIds ?? []),
    flagCalls: new FlagCalls(options.storedFlagCalls ?? []),
    deduplicated: [] as DeduplicatedCall[],
    calledFlags: new CalledFlags(),
  }
}

/** @returns null for an event that does not become a row. */
function applyRecord(work: ChunkWork, sent: ParsedEvent): StoredEvent | null {
  const { report } = work
  const project = work.projects.get(sent.event.projectId)
  if (project === undefined) {
    report.count(sent.event.projectId, sent.event.lane, 'dropped', 'unknown_project')
    return null
  }
  const implicitJob = sent.event.importJobId === importWithoutJob ? findImplicitJob(work, sent.event) : null
  if (implicitJob !== null) return applyToImplicitJob(work, sent, project, implicitJob.id)
  const record = isGeneratedEvent(sent.event) ? assignFirstSeenTime(work, sent) : sent
  const { event, offset } = record
  const state = findSubjects(work, event, project)
  if (state === null) {
    if (work.isRestoring) return null
    const job = work.jobs.get(event.importJobId)
    const isDiscarded = job?.state === 'discarding' || job?.state === 'discarded'
    if (job?.projectId === event.projectId)
      report.noteOfJob(event, isDiscarded ? importJobDiscarded : importJobClosed, toEventDetails(event))
    if (isDiscarded) {
      report.count(event.projectId, event.lane, 'dropped', importJobDiscarded)
      return null
    }
    work.rejected.push(createRejectFromEvent({ stream: work.stream, offset }, event, importJobClosed, 'import_job'))
    report.count(event.projectId, event.lane, 'rejected', importJobClosed)
    return null
  }
  // A group description that repeats earlier values also repeats the uuid of the earlier description: only the time with
  // which it was sent shows that it is the latest.
  if (record === sent || !groupEventNames.has(event.name)) return applyToState(work, record, state)
  const row = applyToState(work, sent, state)
  const sentLaterMs = sent.event.timestampMs - event.timestampMs
  return row === null ? null : { ...row, timestampMs: event.timestampMs, sentLaterMs }
}

/** @param sentJobId the job id that the event was sent with, kept in its reject: a replay joins the job of its own day. */
function applyToState(
  work: ChunkWork,
  record: ParsedEvent,
  state: ProjectState,
  sentJobId = record.event.importJobId,
): StoredEvent | null {
  const { stream, report, geoipOf, flagCalls } = work
  const { event, offset } = record
  if (event.historicalMigration) report.noteRecentImport(event)
  else report.noteAge(event)
  const warn = createWarner(report, event)
  if (event.notes !== 0) raiseWarningsFromNotes(event, warn)
  try {
    const mergeIsLost = work.lostMerges?.has(offset) === true
    const looksUpImport = work.jobs.get(event.importJobId)?.looksUpGeoip === true
    const mergesErased = doesLinkErasedId(work.erased, record)
    const context = { state, stream, geoipOf, looksUpImport, warn, mergeIsLost, mergesErased, flagCalls }
    const applied = applyEvent(context, record)
    if (applied.kind === 'stored' || applied.kind === 'deduplicated') work.calledFlags.note(event, record.properties)
    if (applied.kind === 'stored') {
      report.count(event.projectId, event.lane, 'stored', '')
      return applied.row
    }
    if (applied.kind === 'dropped') report.count(event.projectId, event.lane, 'dropped', applied.reason)
    else if (applied.kind === 'deduplicated') {
      work.deduplicated.push(applied.call)
      report.count(event.projectId, event.lane, 'dropped', deduplicatedReason)
    } else {
      const refused = { ...event, importJobId: sentJobId }
      work.rejected.push(createRejectFromEvent({ stream, offset }, refused, 'message_size_too_large', 'properties'))
      report.count(event.projectId, event.lane, 'rejected', 'message_size_too_large')
    }
    return null
  } catch (cause) {
    throw new RecordError(offset, cause)
  }
}

/** The job was published before its event was processed, or never existed: nothing may be added to it. */
const importJobClosed = 'import_job_closed'
/** Nothing of a discarded job is kept, so its late events do not become rejects. */
const importJobDiscarded = 'import_job_discarded'

function toEventDetails({ uuid, name, distinctId }: CapturedEvent): JsonDetails {
  return { eventUuid: uuid, event: name, distinctId }
}

function isOfPendingJob({ jobs }: ChunkWork, { importJobId }: CapturedEvent): boolean {
  const job = importJobId < firstImportJobId ? undefined : jobs.get(importJobId)
  return job !== undefined && isJobPending(job)
}

/**
 * The persons and groups that an event touches: those of its project, or of its job's staging overlay. Null for a closed
 * job.
 */
function findSubjects(work: ChunkWork, event: CapturedEvent, project: ProjectState): ProjectState | null {
  const { importJobId, projectId } = event
  if (importJobId < firstImportJobId) return project
  const job = work.jobs.get(importJobId)
  if (job?.projectId !== projectId) return null
  if (isJobPending(job)) return work.projects.get(toStagingProjectId(importJobId)) ?? null
  return work.isRestoring && (job.state === 'published' || job.state === 'publishing') ? project : null
}

/** The implicit job of an item: the first one that was still collecting when the item was accepted. */
function findImplicitJob({ implicitJobs }: ChunkWork, item: Pick<CapturedEvent, 'projectId' | 'capturedAtMs'>) {
  const jobs = implicitJobs.get(buildImportDayKey(item)) ?? []
  const endOf = ({ untilMs }: ImplicitJob) => untilMs ?? Number.POSITIVE_INFINITY
  const later = jobs.filter(job => endOf(job) >= item.capturedAtMs)
  return later.reduce<ImplicitJob | null>(
    (first, job) => (first === null || endOf(job) < endOf(first) ? job : first),
    null,
  )
}

/** Changes only the job's report: the reject's row stays without a job, so that a replay joins the job of its own day. */
function assignToImplicitJob(work: ChunkWork, reject: CapturedReject): CapturedReject {
  const implicitJob = reject.importJobId === importWithoutJob ? findImplicitJob(work, reject) : null
  return implicitJob === null ? reject : { ...reject, importJobId: implicitJob.id }
}

/** Applies an import without a job immediately, as part of the implicit job of its day. */
function applyToImplicitJob(
  work: ChunkWork,
  sent: ParsedEvent,
  project: ProjectState,
  importJobId: number,
): StoredEvent | null {
  const state = work.jobs.get(importJobId)?.state
  if (state !== 'published') {
    if (work.isRestoring) return null
    work.report.noteOfJob({ ...sent.event, importJobId }, importJobDiscarded, toEventDetails(sent.event))
    work.report.count(sent.event.projectId, sent.event.lane, 'dropped', importJobDiscarded)
    return null
  }
  const record = { ...sent, event: { ...sent.event, importJobId } }
  const row = applyToState(work, record, project, importWithoutJob)
  return row === null ? null : { ...row, importPartition: importWithoutJob }
}

/** Gives a generated event the time with which it was first seen, so that its copies in other jobs are the same event. */
function assignFirstSeenTime({ generatedTimes, newGenerated }: ChunkWork, record: ParsedEvent): ParsedEvent {
  const { projectId, uuid, timestampMs, importJobId } = record.event
  const known = generatedTimes.get(`${projectId}:${uuid}`)
  if (known === timestampMs) return record
  if (known !== undefined) return { ...record, event: { ...record.event, timestampMs: known } }
  generatedTimes.set(`${projectId}:${uuid}`, timestampMs)
  newGenerated.push({ projectId, uuid, timestampMs, importJobId })
  return record
}

function createWarner(report: ChunkReport, event: CapturedEvent): (type: string, details: JsonDetails) => void {
  return (type, details) => report.warn(event, type, details)
}

type JsonDetails = Parameters<ChunkReport['warn']>[2]
