// Parses the JSON of a chunk's records once, and collects what to load before `process-chunk.ts` applies them. A record that
// cannot be parsed becomes a value of a separate kind, so that it never stops its chunk.

import {
  acceptedItemOf,
  type CapturedEvent,
  type CapturedRecording,
  type CapturedReject,
  importWithoutJob,
} from '../events/captured-event.ts'
import { groupEventNames } from '../events/event-names.ts'
import { mayBeGeneratedEvent } from '../events/generated-event.ts'
import { readGroupIdentity } from '../events/group-identity.ts'
import type { RecordAt, StreamInfo } from '../events/log-stream.ts'
import { firstImportJobId, toStagingProjectId } from '../imports/import-job.ts'
import { isJsonObject, type JsonObject, parseJson } from '../json.ts'
import type { ChunkSubjects } from './chunk.ts'
import { isIllegalDistinctId, readMergeRequest } from './person-merge.ts'

/** Records as read from the log. */
export interface ChunkRecords extends StreamInfo {
  readonly records: readonly RecordAt[]
}

export interface ParsedEvent {
  readonly kind: 'event'
  readonly offset: number
  readonly event: CapturedEvent
  readonly properties: JsonObject
  /** The event's top-level `$set` and `$set_once`. */
  readonly set: JsonObject | null
  readonly setOnce: JsonObject | null
}

export interface ParsedRecording {
  readonly kind: 'recording'
  readonly offset: number
  readonly recording: CapturedRecording
}

export type ParsedRecord =
  | ParsedEvent
  | ParsedRecording
  /** A recording whose processing failed before. */
  | {
      readonly kind: 'failed_recording'
      readonly offset: number
      readonly recording: CapturedRecording
      readonly message: string
    }
  /** An event that cannot be processed: its properties are not an object, or processing it failed before. */
  | { readonly kind: 'failed'; readonly offset: number; readonly event: CapturedEvent; readonly message: string }
  | { readonly kind: 'reject'; readonly offset: number; readonly reject: CapturedReject }
  | { readonly kind: 'damaged'; readonly offset: number; readonly body: Uint8Array; readonly appendedAtMs: number }

export interface ParsedChunk extends StreamInfo {
  readonly records: readonly ParsedRecord[]
}

/** @param failures offsets of records that must not be processed, with the reason. */
export function parseChunk(chunk: ChunkRecords, failures: ReadonlyMap<number, string>): ParsedChunk {
  const { stream, traffic } = chunk
  return { stream, traffic, records: chunk.records.map(at => parseRecord(at, failures)) }
}

function parseRecord({ offset, record }: RecordAt, failures: ReadonlyMap<number, string>): ParsedRecord {
  if (record.kind === 'reject') return { kind: 'reject', offset, reject: record.reject }
  if (record.kind === 'damaged') return { ...record, offset }
  const message = failures.size > 0 ? failures.get(offset) : undefined
  if (record.kind === 'recording') {
    const { recording } = record
    return message === undefined
      ? { kind: 'recording', offset, recording }
      : { kind: 'failed_recording', offset, recording, message }
  }
  const { event } = record
  if (message !== undefined) return { kind: 'failed', offset, event, message }
  try {
    const properties = parseJson(event.propertiesJson)
    if (!isJsonObject(properties)) return { kind: 'failed', offset, event, message: 'properties are not an object' }
    return {
      kind: 'event',
      offset,
      event,
      properties,
      set: parseMap(event.setJson),
      setOnce: parseMap(event.setOnceJson),
    }
  } catch (cause) {
    if (!(cause instanceof SyntaxError) && !(cause instanceof RangeError)) throw cause
    return { kind: 'failed', offset, event, message: cause.message }
  }
}

function parseMap(text: string | null): JsonObject | null {
  const value = text === null ? null : parseJson(text)
  return value !== null && isJsonObject(value) ? value : null
}

/** Events and refused items of imports without a job. */
export function listImportsWithoutJob({ records }: ParsedChunk): Pick<CapturedEvent, 'projectId' | 'capturedAtMs'>[] {
  return records.flatMap(record => {
    const item = record.kind === 'event' ? record.event : record.kind === 'reject' ? record.reject : null
    return item?.importJobId === importWithoutJob ? item : []
  })
}

/**
 * Everything that the chunk's events may touch, without repeats, for the single load before they are applied. Events of
 * import jobs touch their job's staging overlay.
 * @param isRestoring the events may belong to published jobs, whose rows refer to the project's own persons.
 */
export function listChunkSubjects(chunk: ParsedChunk, isRestoring = false): ChunkSubjects {
  const distinctIds = new Map<number, Set<string>>()
  const mergingDistinctIds: { projectId: number; distinctId: string }[] = []
  const groups = new Map<string, ChunkSubjects['groups'][number]>()
  const otherDistinctIds: { projectId: number; distinctId: string }[] = []
  const importJobIds = new Set<number>()
  const generated: { projectId: number; uuid: string }[] = []
  for (const record of chunk.records) {
    // Records other than events touch no person, but their project's settings are needed, and whether the project still
    // exists.
    const item = acceptedItemOf(record)
    if (item === null) continue
    const { projectId, distinctId } = item
    if (!distinctIds.has(projectId)) distinctIds.set(projectId, new Set())
    if (record.kind !== 'event' && distinctId !== '') otherDistinctIds.push({ projectId, distinctId })
    // A reject is reported with its import job too, so the job has to be loaded.
    if (record.kind === 'reject' && record.reject.importJobId >= firstImportJobId)
      importJobIds.add(record.reject.importJobId)
    if (record.kind !== 'event') continue
    const { importJobId } = record.event
    if (importJobId >= firstImportJobId) {
      importJobIds.add(importJobId)
      if (isGeneratedEvent(record.event)) generated.push({ projectId, uuid: record.event.uuid })
      addEvent(record, toStagingProjectId(importJobId))
      otherDistinctIds.push(...listEventIds(record))
      if (!isRestoring) continue
    }
    addEvent(record, projectId)
  }
  return {
    distinctIds: [...distinctIds].flatMap(([projectId, ids]) =>
      Array.from(ids, distinctId => ({ projectId, distinctId })),
    ),
    groups: [...groups.values()],
    projectIds: [...distinctIds.keys()].filter(id => id > 0),
    mergingDistinctIds,
    ...(otherDistinctIds.length > 0 && { otherDistinctIds }),
    ...(importJobIds.size > 0 && { importJobIds: [...importJobIds] }),
    ...(generated.length > 0 && { generated }),
  }

  function addEvent({ event: { distinctId, name }, properties }: ParsedEvent, subjectsId: number): void {
    let ids = distinctIds.get(subjectsId)
    if (ids === undefined) {
      ids = new Set()
      distinctIds.set(subjectsId, ids)
    }
    ids.add(distinctId)
    const merge = readMergeRequest(name, properties)
    if (merge !== null && subjectsId > 0 && !isIllegalDistinctId(merge.otherId)) {
      ids.add(merge.otherId)
      mergingDistinctIds.push(
        { projectId: subjectsId, distinctId },
        { projectId: subjectsId, distinctId: merge.otherId },
      )
    }
    if (!groupEventNames.has(name)) return
    const group = readGroupIdentity(properties)
    if (group !== null)
      groups.set(JSON.stringify([subjectsId, group.typeName, group.key]), { projectId: subjectsId, ...group })
  }
}

/** The ids that a job's event names, to check whether they were erased. Their persons come from the staging overlay. */
function listEventIds({ event: { projectId, distinctId, name }, properties }: ParsedEvent) {
  const merge = readMergeRequest(name, properties)
  const ids = merge === null || isIllegalDistinctId(merge.otherId) ? [distinctId] : [distinctId, merge.otherId]
  return ids.map(id => ({ projectId, distinctId: id }))
}

/** Whether an importer may have generated this event of a job. A generated event keeps its first time. */
export function isGeneratedEvent({ name, uuid, importJobId }: CapturedEvent): boolean {
  return importJobId >= firstImportJobId && mayBeGeneratedEvent(name, uuid)
}
