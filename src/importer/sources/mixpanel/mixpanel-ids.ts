// The identities in Mixpanel's events. Source: docs/wire/import.md §1.0 (I1 to I5), §1.2 (identity, id, prefix).

import { getOwnValue, type JsonObject, type JsonValue } from '#core/json.ts'
import { checkIdLength, illegalForMixpanel, requireDistinctId, toLegalId } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks } from '#importer/records/generated-events.ts'
import { type IdentityLink, RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'

/** The person of a record, or the two persons that the record joins. */
export type Identity =
  | { readonly kind: 'event'; readonly distinctId: string }
  | { readonly kind: 'identify'; readonly userId: string; readonly deviceId: string }
  | { readonly kind: 'alias' | 'merge'; readonly distinctId: string; readonly alias: string }

/** Whether the record only joins a person with itself. */
export function isSelfJoin(ids: Identity): boolean {
  return ids.kind === 'identify' ? ids.userId === ids.deviceId : ids.kind !== 'event' && ids.distinctId === ids.alias
}

/** @throws RecordReject */
export function readIdentity(sourceName: string, from: JsonObject): Identity {
  switch (sourceName) {
    case '$identify': {
      const deviceId = readPersonId(getOwnValue(from, '$anon_id'))
      // Without an anonymous id there is nothing to link.
      if (deviceId === null) return { kind: 'event', distinctId: chooseDistinctId(from) }
      const userId = readPersonId(getOwnValue(from, '$identified_id')) ?? chooseDistinctId(from)
      return { kind: 'identify', userId: checkIdLength(userId), deviceId: checkIdLength(deviceId) }
    }
    case '$create_alias': {
      const distinctId = chooseDistinctId(from)
      return { kind: 'alias', distinctId, alias: requireId(getOwnValue(from, 'alias'), 'properties.alias') }
    }
    case '$merge': {
      const ids = getOwnValue(from, '$distinct_ids')
      const field = 'properties.$distinct_ids'
      if (!Array.isArray(ids) || ids.length !== 2) throw new RecordReject('distinct_id_missing', field)
      return { kind: 'merge', distinctId: requireId(ids[0], field), alias: requireId(ids[1], field) }
    }
    default:
      return { kind: 'event', distinctId: chooseDistinctId(from) }
  }
}

/**
 * The anonymous id takes precedence over a device id. A record without a distinct id and a user id belongs to its anonymous
 * id, but not if its distinct id is a placeholder. @throws RecordReject
 */
function chooseDistinctId(from: JsonObject): string {
  const [resolved, userId] = [getOwnValue(from, 'distinct_id'), getOwnValue(from, '$user_id')]
  const earlier = getOwnValue(from, '$distinct_id_before_identity')
  const id = toLegalId(resolved, illegalForMixpanel)
  // Some products have user ids in capitals, which look like device ids; then `$user_id` has the same value.
  const isDevice = isDeviceId(id) && id !== toLegalId(userId, illegalForMixpanel)
  return requireDistinctId(
    (isDevice ? readPersonId(earlier) : null) ??
      readPersonId(resolved) ??
      readPersonId(userId) ??
      (isEmptyValue(resolved) ? readPersonId(earlier) : null) ??
      readPersonId(getOwnValue(from, '$device_id')),
  )
}

/**
 * SDKs generate device ids of upper-case letters, digits and dashes. An id that consists only of digits belongs to a user.
 */
function isDeviceId(id: string | null): boolean {
  return id !== null && (id.startsWith(devicePrefix) || /^(?=.*[A-Z])[A-Z0-9-]+$/.test(id))
}

const devicePrefix = '$device:'

/** Removes the prefix that a device id has in `distinct_id` but not in `$device_id`, so that both ids are the same. */
function removeDevicePrefix(id: JsonValue | undefined): JsonValue | undefined {
  return typeof id === 'string' && id.startsWith(devicePrefix) ? id.slice(devicePrefix.length) : id
}

/** @returns null for a placeholder. */
export function readPersonId(value: JsonValue | undefined): string | null {
  return toLegalId(removeDevicePrefix(value), illegalForMixpanel)
}

/** @throws RecordReject */
function requireId(value: JsonValue | undefined, field: string): string {
  const id = readPersonId(value)
  if (id === null) throw new RecordReject(isEmptyValue(value) ? 'distinct_id_missing' : 'distinct_id_illegal', field)
  return checkIdLength(id)
}

export function readIdentityLinks(from: JsonObject, timeUs: number): IdentityLink[] {
  const userId = readPersonId(getOwnValue(from, '$user_id'))
  const deviceId = readPersonId(getOwnValue(from, '$device_id'))
  return createIdentityLinks(userId, deviceId, timeUs, { $mixpanel_user_id: userId, $mixpanel_device_id: deviceId })
}
