// Which events join two ids into one person, whether from a record or generated.

import { ownValue } from '#core/json.ts'
import { isLink } from './generated-events.ts'
import type { ImportedEvent } from './imported-event.ts'

/** The property that names the other id, by the event. */
const joinedBy: Readonly<Record<string, string>> = {
  $identify: '$anon_distinct_id',
  $create_alias: 'alias',
  $merge_dangerously: 'alias',
}

/** @returns the id whose person the event joins with its own; null for events that join none. */
export function findJoinedId({ event, distinctId, properties }: ImportedEvent): string | null {
  const key = Object.hasOwn(joinedBy, event) ? joinedBy[event]! : null
  const id = key === null ? undefined : ownValue(properties, key)
  return typeof id === 'string' && isLink({ userId: distinctId, deviceId: id }) ? id : null
}
