// Finds the records of a chunk that are dropped because their person was erased after they were accepted.

import { acceptedItemOf, type Lane } from '../events/captured-event.ts'
import type { ErasedRecords } from '../persons/erasure.ts'
import type { ParsedEvent, ParsedRecord } from './parse-chunk.ts'
import { readMergeRequest } from './person-merge.ts'

/** The reason for dropping a record of an erased person. */
export const personErased = 'person_erased'

/**
 * The item of a record that was accepted before its distinct id was erased, so that it is dropped; null for any other
 * record.
 */
export function findErasedItem(
  erased: ErasedRecords,
  record: ParsedRecord,
): { readonly projectId: number; readonly lane: Lane } | null {
  if (erased.isEmpty) return null
  const item = acceptedItemOf(record)
  if (item === null) return null
  const lane = 'lane' in item ? item.lane : 'replay'
  const what = 'lane' in item ? 'events' : 'recordings'
  return erased.has(what, item.projectId, item.distinctId, record.offset) ? { projectId: item.projectId, lane } : null
}

/** Whether the event links its id with an id that was erased after the event was accepted. */
export function doesLinkErasedId(erased: ErasedRecords, { event, properties, offset }: ParsedEvent): boolean {
  if (erased.isEmpty) return false
  const merge = readMergeRequest(event.name, properties)
  return merge !== null && erased.has('events', event.projectId, merge.otherId, offset)
}
