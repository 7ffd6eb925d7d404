// Finds the records of a chunk that are dropped because their person was erased after they were accepted.

import type { Lane } from '../events/captured-event.ts'
import type { ErasedRecords } from '../persons/erasure.ts'
import type { ParsedEvent, ParsedRecord } from './parse-chunk.ts'
import { readMergeRequest } from './person-merge.ts'

/** The reason for which such a record is dropped. */
export const personErased = 'person_erased'

interface RecordItem {
  readonly projectId: number
  readonly distinctId: string
  readonly lane: Lane
}

/** Null for a damaged record, whose distinct id is unknown. */
function readItem(record: ParsedRecord): RecordItem | null {
  switch (record.kind) {
    case 'event':
    case 'failed':
      return record.event
    case 'recording':
    case 'failed_recording':
      return { projectId: record.recording.projectId, distinctId: record.recording.distinctId, lane: 'replay' }
    case 'reject':
      return record.reject
    case 'damaged':
      return null
  }
}

/** The item of a record that was accepted before its distinct id was erased, so that it is dropped; null for others. */
export function findErasedItem(erased: ErasedRecords, record: ParsedRecord): RecordItem | null {
  if (erased.isEmpty) return null
  const item = readItem(record)
  const what = record.kind === 'recording' || record.kind === 'failed_recording' ? 'recordings' : 'events'
  return item !== null && erased.has(what, item.projectId, item.distinctId, record.offset) ? item : null
}

/** Whether the event links its id with one that was erased after the event was accepted. */
export function linksErased(erased: ErasedRecords, { event, properties, offset }: ParsedEvent): boolean {
  if (erased.isEmpty) return false
  const merge = readMergeRequest(event.name, properties)
  return merge !== null && erased.has('events', event.projectId, merge.otherId, offset)
}
