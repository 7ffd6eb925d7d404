// Generates the events that no source record contains as such: links of a user and a device, and properties of groups.
// Source: docs/wire/import.md §0, I1 to I4, §1.1 (groups), §2.3.

import { getOwnValue, isJsonObject, type JsonObject, mergeObjects, setOwnValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { isIllegalDistinctId } from '#core/processing/person-merge.ts'
import { deriveImportUuid, hashCanonicalContent } from './deterministic-uuid.ts'
import { isIdTooLong, isIllegalId } from './distinct-ids.ts'
import type { ImportLedger } from './import-ledger.ts'
import type {
  ConvertedRecord,
  GroupSnapshot,
  IdentityLink,
  ImportedEvent,
  PersonSnapshot,
  RecordNote,
} from './imported-event.ts'

/**
 * Returns all events of one record as `events`, in the order of sending: the record's own events, and the groups and links
 * to add, given what the ledger knows from earlier records. Each link that is refused, since the device has another user,
 * adds a note.
 */
export function createRecordEvents(source: string, record: ConvertedRecord, ledger: ImportLedger) {
  const groups: ImportedEvent[] = []
  const links: ImportedEvent[] = []
  const notes: RecordNote[] = [...(record.notes ?? [])]
  let isOwnLinkRefused = false
  for (const group of record.groups ?? []) {
    const event = createGroupEvent(source, group, ledger.group(group.type, group.key, group.properties))
    if (event !== null) groups.push(event)
  }
  for (const link of record.links ?? []) {
    if (!isIdentityLink(link)) continue
    const outcome = ledger.link(link.deviceId, link.userId)
    if (outcome === 'linked' && link.isOwnEvent !== true) links.push(createLinkEvent(source, link))
    if (outcome === 'shared') notes.push('shared_device')
    isOwnLinkRefused ||= outcome === 'shared' && link.isOwnEvent === true
  }
  const own = replaceRefusedLink(addChangedProperties(record, ledger), isOwnLinkRefused)
  return { groups, links, own, events: [...groups, ...links, ...own], notes }
}

/** A refused identification still carries properties of its person, so it becomes a `$set`. */
function replaceRefusedLink(events: readonly ImportedEvent[], isOwnLinkRefused: boolean): readonly ImportedEvent[] {
  const [first, ...others] = events
  if (first === undefined || !isOwnLinkRefused) return events
  const { $anon_distinct_id: _, ...properties } = first.properties
  return [{ ...first, event: '$set', properties }, ...others]
}

/** Whether the pair can be linked: two different ids that are not placeholders and can be sent. */
export function isIdentityLink({ userId, deviceId }: Pick<IdentityLink, 'userId' | 'deviceId'>): boolean {
  return userId !== deviceId && [userId, deviceId].every(isLinkable)
}

/** `isIllegalDistinctId` is the service's own rule, which also covers ids in quotes or with a NUL. */
function isLinkable(id: string): boolean {
  return !isIllegalId(id) && !isIdTooLong(id) && !isIllegalDistinctId(id)
}

/** The link of a record's user and device, if it has both. */
export function createIdentityLinks(
  userId: string | null,
  deviceId: string | null,
  timeUs: number,
  properties: JsonObject = {},
): IdentityLink[] {
  return userId === null || deviceId === null ? [] : [{ userId, deviceId, timeUs, properties }]
}

export function createLinkEvent(source: string, link: IdentityLink): ImportedEvent {
  return { uuid: deriveImportUuid('identify', source, link.userId, link.deviceId), ...createLinkEventWithoutUuid(link) }
}

export function createLinkEventWithoutUuid(link: IdentityLink): Omit<ImportedEvent, 'uuid'> {
  const { userId, deviceId, timeUs, properties } = link
  return {
    event: '$identify',
    distinctId: userId,
    timeUs,
    properties: mergeObjects({ $anon_distinct_id: deviceId }, properties),
  }
}

/**
 * @param before the group's last known properties; null for a new group.
 * @returns null when nothing has changed.
 */
export function createGroupEvent(
  source: string,
  group: GroupSnapshot,
  before: JsonObject | null,
): ImportedEvent | null {
  if (before !== null && (group.properties === null || isSameJson(before, group.properties))) return null
  const properties = group.properties ?? {}
  const removedKeys = before === null ? [] : Object.keys(before).filter(key => !Object.hasOwn(properties, key))
  return {
    uuid: deriveImportUuid('groupidentify', source, group.type, group.key, hashCanonicalContent(properties)),
    event: '$groupidentify',
    distinctId: group.distinctId,
    timeUs: group.timeUs,
    properties: { ...createGroupEventProperties(group), ...(removedKeys.length > 0 && { $group_unset: removedKeys }) },
  }
}

/** The properties of the first event of a group. */
export function createGroupEventProperties({ type, key, properties }: GroupSnapshot): JsonObject {
  return { $group_type: type, $group_key: key, $group_set: properties ?? {} }
}

/** Adds the person's changed properties to the `$set` of the record's first event. */
function addChangedProperties(record: ConvertedRecord, ledger: ImportLedger): readonly ImportedEvent[] {
  const [first, ...others] = record.events
  if (record.person === undefined || first === undefined) return record.events
  const news = findChangedProperties(record.person, ledger.person(record.person.distinctId, record.person.properties))
  return [addPersonSetProperties(first, news), ...others]
}

/** The properties that differ from the known properties. */
function findChangedProperties({ properties }: PersonSnapshot, before: JsonObject | null): JsonObject {
  if (before === null) return properties
  const news: JsonObject = {}
  for (const [key, value] of Object.entries(properties)) {
    const known = getOwnValue(before, key)
    if (known === undefined || !isSameJson(known, value)) setOwnValue(news, key, value)
  }
  return news
}

/** Returns the event with the added properties in its `$set`; the same event when there are none to add. */
export function addPersonSetProperties(event: ImportedEvent, added: JsonObject): ImportedEvent {
  if (Object.keys(added).length === 0) return event
  const set = getOwnValue(event.properties, '$set') ?? null
  const all = isJsonObject(set) ? mergeObjects(set, added) : added
  return { ...event, properties: mergeObjects(event.properties, { $set: all }) }
}

/** For the name of each event that merges persons: the property that contains the other person's id. */
const joinedBy: Readonly<Record<string, string>> = {
  $identify: '$anon_distinct_id',
  $create_alias: 'alias',
  $merge_dangerously: 'alias',
}

/** @returns the other id whose person the event merges with its own person; null for events that merge no persons. */
export function findMergedDistinctId({ event, distinctId, properties }: ImportedEvent): string | null {
  const key = Object.hasOwn(joinedBy, event) ? joinedBy[event]! : null
  const id = key === null ? undefined : getOwnValue(properties, key)
  return typeof id === 'string' && isIdentityLink({ userId: distinctId, deviceId: id }) ? id : null
}
