// A chunk's records with their JSON parsed, once: what the single load is for and what `process-chunk.ts` applies.
// A record that cannot be parsed is a value here, so that it never stops its chunk.

import type { CapturedEvent, CapturedReject, CapturedReplay, LogLane, LogRecord } from '../events/captured-event.ts'
import { groupEventNames } from '../events/event-names.ts'
import { groupIdentityOf } from '../events/group-identity.ts'
import { isJsonObject, type JsonObject, parseJson } from '../json.ts'
import type { ChunkSubjects } from './chunk.ts'
import { isIllegalDistinctId, mergeRequestOf } from './person-merge.ts'

/** Records as they were read: `records[0]` stands at `firstOffset`. */
export interface ChunkRecords {
  readonly lane: LogLane
  readonly firstOffset: number
  readonly records: readonly LogRecord[]
}

export interface ParsedEvent {
  readonly kind: 'event'
  readonly offset: number
  readonly event: CapturedEvent
  readonly properties: JsonObject
  /** The top-level maps. */
  readonly set: JsonObject | null
  readonly setOnce: JsonObject | null
}

export interface ParsedReplay {
  readonly kind: 'replay'
  readonly offset: number
  readonly replay: CapturedReplay
}

export type ParsedRecord =
  | ParsedEvent
  | ParsedReplay
  /** A replay whose processing has failed before. */
  | {
      readonly kind: 'failed_replay'
      readonly offset: number
      readonly replay: CapturedReplay
      readonly message: string
    }
  /** An event that cannot be processed: its text is not an object, or processing it has failed before. */
  | { readonly kind: 'failed'; readonly offset: number; readonly event: CapturedEvent; readonly message: string }
  | { readonly kind: 'reject'; readonly offset: number; readonly reject: CapturedReject }
  | { readonly kind: 'damaged'; readonly offset: number; readonly body: Uint8Array; readonly appendedAtMs: number }

export interface ParsedChunk {
  readonly lane: LogLane
  readonly records: readonly ParsedRecord[]
}

/** @param failures offsets of records that must not be processed, with the reason. */
export function parseChunk(chunk: ChunkRecords, failures: ReadonlyMap<number, string>): ParsedChunk {
  const records = chunk.records.map((record, index) => parseRecord(record, chunk.firstOffset + index, failures))
  return { lane: chunk.lane, records }
}

function parseRecord(record: LogRecord, offset: number, failures: ReadonlyMap<number, string>): ParsedRecord {
  if (record.kind === 'reject') return { kind: 'reject', offset, reject: record.reject }
  if (record.kind === 'damaged') return { ...record, offset }
  const message = failures.size > 0 ? failures.get(offset) : undefined
  if (record.kind === 'replay') {
    const { replay } = record
    return message === undefined
      ? { kind: 'replay', offset, replay }
      : { kind: 'failed_replay', offset, replay, message }
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

/** What the chunk's events may touch, each once: for the single load before they are applied. */
export function chunkSubjects(chunk: ParsedChunk): ChunkSubjects {
  const distinctIds = new Map<number, Set<string>>()
  const mergingDistinctIds: { projectId: number; distinctId: string }[] = []
  const groups = new Map<string, ChunkSubjects['groups'][number]>()
  for (const record of chunk.records) {
    // These touch no person, but it has to be known whether their projects still exist, and what they want kept.
    const projectId = projectIdOf(record)
    if (projectId !== null && !distinctIds.has(projectId)) distinctIds.set(projectId, new Set())
    if (record.kind !== 'event') continue
    const { event, properties } = record
    const ids = distinctIds.get(event.projectId)!
    ids.add(event.distinctId)
    const merge = mergeRequestOf(event.name, properties)
    if (merge !== null && !isIllegalDistinctId(merge.otherId)) {
      ids.add(merge.otherId)
      const { projectId, distinctId } = event
      mergingDistinctIds.push({ projectId, distinctId }, { projectId, distinctId: merge.otherId })
    }
    if (!groupEventNames.has(event.name)) continue
    const group = groupIdentityOf(properties)
    if (group !== null)
      groups.set(JSON.stringify([event.projectId, group.typeName, group.key]), {
        projectId: event.projectId,
        ...group,
      })
  }
  return {
    distinctIds: [...distinctIds].flatMap(([projectId, ids]) =>
      Array.from(ids, distinctId => ({ projectId, distinctId })),
    ),
    groups: [...groups.values()],
    projectIds: [...distinctIds.keys()],
    mergingDistinctIds,
  }
}

/** Null for a damaged record, which names no project. */
function projectIdOf(record: ParsedRecord): number | null {
  switch (record.kind) {
    case 'event':
    case 'failed':
      return record.event.projectId
    case 'replay':
    case 'failed_replay':
      return record.replay.projectId
    case 'reject':
      return record.reject.projectId
    case 'damaged':
      return null
  }
}
