// Which accepted events never become a row, and why. Every drop is counted under its reason; most raise a warning too.

import { groupEventNames, groupIdentityOf, groupKeyLengthMax } from '../groups/group-update.ts'
import { type JsonObject, ownValue } from '../json.ts'
import { mergeEventNames } from '../persons/person-merge.ts'
import type { CapturedEvent } from './captured-event.ts'

export const dropReasons = [
  'unknown_project',
  'heatmap',
  'client_ingestion_warning',
  'skipping_event_invalid_distinct_id',
  'invalid_anon_distinct_id',
  'invalid_alias',
  'group_key_too_long',
  'cookieless_not_supported',
  'invalid_event_when_process_person_profile_is_false',
] as const
export type DropReason = (typeof dropReasons)[number]

export interface Drop {
  readonly reason: DropReason
  /** Details of the warning to raise under the reason's name, or null. */
  readonly warning: JsonObject | null
}

const distinctIdLengthMax = 400

/** Null when the event goes on. Source: docs/wire/ingestion.md 6.1 steps 2, 3 and 6; 6.2, 6.5, 6.7, 2.7. */
export function findDrop(event: CapturedEvent, properties: JsonObject, isPersonless: boolean): Drop | null {
  const { name, distinctId } = event
  const ids = { eventUuid: event.uuid, event: name, distinctId }
  if (name.startsWith('$$')) {
    if (name === '$$heatmap') return { reason: 'heatmap', warning: null }
    if (name === '$$client_ingestion_warning') {
      const message = ownValue(properties, '$$client_ingestion_warning_message') ?? ''
      return { reason: 'client_ingestion_warning', warning: { ...ids, message } }
    }
  }
  if (distinctId.length > distinctIdLengthMax)
    return { reason: 'skipping_event_invalid_distinct_id', warning: { ...ids, distinctId: distinctId.slice(0, 100) } }
  if (properties.$cookieless_mode === true) return { reason: 'cookieless_not_supported', warning: ids }
  if (mergeEventNames.has(name)) {
    const isIdentify = name === '$identify'
    const otherId = ownValue(properties, isIdentify ? '$anon_distinct_id' : 'alias')
    if (otherId !== undefined && otherId !== null && typeof otherId !== 'string')
      return { reason: isIdentify ? 'invalid_anon_distinct_id' : 'invalid_alias', warning: ids }
    if (isPersonless) return { reason: 'invalid_event_when_process_person_profile_is_false', warning: ids }
  }
  if (groupEventNames.has(name)) {
    const key = groupIdentityOf(properties)?.key
    if (key !== undefined && key.length > groupKeyLengthMax) return { reason: 'group_key_too_long', warning: ids }
  }
  return null
}
