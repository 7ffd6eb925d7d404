// Segment: lines of its archives in object storage, and of RudderStack's archives, whose messages have the same format.
// Source: docs/wire/import.md §1.3.

import { isUuid } from '#core/events/uuid.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import {
  checkIdLength,
  isIllegalId,
  requireDistinctId,
  toEventIdText,
  toIdText,
  toLegalId,
} from '#importer/records/distinct-ids.ts'
import { createIdentityLinks, isIdentityLink } from '#importer/records/generated-events.ts'
import {
  type Conversion,
  createSkippedOutcome,
  type ImportedEvent,
  RecordReject,
} from '#importer/records/imported-event.ts'
import {
  isEmptyValue,
  putProperties,
  putProperty,
  readEventName,
  readObjectField,
  readTextField,
} from '#importer/records/record-fields.ts'
import { checkTimeInWindow, findFirstTime, type TimeWindow } from '#importer/records/source-time.ts'
import { listUnreadContextFields, putContextProperties, putPageProperties } from './segment-context.ts'

const name = 'segment'

interface Settings {
  readonly window: TimeWindow
  /** IANA zone of times that do not name a zone. */
  readonly zone: string | null
  /** The type of groups that do not name a type. */
  readonly groupType: string
}

export const segment = defineSource(
  name,
  'lines of the archives of Segment and, also by its own name, of RudderStack',
  (config, window) => {
    const settings = { window, zone: config.zone(), groupType: config.text('segment_group_type') ?? 'company' }
    return {
      convert: ({ value }) => convertMessage(value, settings),
      timeOf: ({ value }) => readMessageTime(value, settings.zone, window).timeUs,
    }
  },
)

interface Message {
  readonly record: JsonObject
  readonly userId: string | null
  readonly anonymousId: string | null
  readonly properties: JsonObject
  readonly groupType: string
}

type OwnEvent = Pick<ImportedEvent, 'event' | 'properties'>

function convertMessage(record: JsonObject, { window, zone, groupType }: Settings): Conversion {
  if (getOwnValue(readObjectField(record, 'integrations'), 'PostHog') === false)
    return createSkippedOutcome('destination_disabled')
  const { toEvent } = readType(record)
  const userId = toLegalId(getOwnValue(record, 'userId'))
  const anonymousId = toLegalId(getOwnValue(record, 'anonymousId'))
  const own = toEvent({ record, userId, anonymousId, properties: mapProperties(record, groupType), groupType })
  const distinctId = requireDistinctId(userId ?? anonymousId)
  const { timeUs, field: timeField } = readMessageTime(record, zone, window)
  // Skip an alias that would join a person with itself.
  if (own.event === '$create_alias' && own.properties.alias === distinctId) return createSkippedOutcome('filtered')
  const isOwnEvent = own.event === '$identify'
  const links = createIdentityLinks(userId, anonymousId, timeUs).map(link => ({ ...link, isOwnEvent }))
  const type = readTextField(record, 'type')
  const sourceName = type === 'track' || type === null ? {} : { sourceName: type }
  const events = [{ uuid: deriveUuid(record), ...own, ...sourceName, distinctId, timeUs }]
  return { events, links, dropped: listDroppedFields(record, timeField) }
}

interface MessageType {
  readonly toEvent: (message: Message) => OwnEvent
  /** Fields that only events of this type are made from. */
  readonly fields: readonly string[]
}

const messageTypes: ReadonlyMap<JsonValue | undefined, MessageType> = new Map<string, MessageType>([
  ['track', { toEvent: createTrackEvent, fields: ['event'] }],
  ['page', { toEvent: createViewEvent, fields: ['name'] }],
  ['screen', { toEvent: createViewEvent, fields: ['name'] }],
  ['identify', { toEvent: createIdentifyEvent, fields: ['traits'] }],
  ['group', { toEvent: createGroupEvent, fields: ['traits', 'groupId'] }],
  ['alias', { toEvent: createAliasEvent, fields: ['previousId'] }],
])

/** @throws RecordReject for a message type that is absent or becomes no event. */
function readType(record: JsonObject): MessageType {
  const type = getOwnValue(record, 'type')
  if (isEmptyValue(type)) throw new RecordReject('event_missing', 'type')
  const known = messageTypes.get(type)
  if (known !== undefined) return known
  const detail = `there is no event for messages of the type ${JSON.stringify(type)}`
  throw new RecordReject('unsupported_event', 'type', detail)
}

function createTrackEvent({ record, properties }: Message): OwnEvent {
  return { event: readEventName(getOwnValue(record, 'event'), 'event'), properties }
}

function createViewEvent({ record, properties }: Message): OwnEvent {
  const isScreen = getOwnValue(record, 'type') === 'screen'
  putProperty(properties, isScreen ? '$screen_name' : 'name', getOwnValue(record, 'name'))
  return { event: isScreen ? '$screen' : '$pageview', properties }
}

/** Without an anonymous id, the message becomes a `$set`, since there is nothing to link. */
function createIdentifyEvent({ record, userId, anonymousId, properties }: Message): OwnEvent {
  const set: JsonObject = {}
  putProperties(set, readTraits(record))
  if (Object.keys(set).length > 0) properties.$set = set
  const links = userId !== null && anonymousId !== null && isIdentityLink({ userId, deviceId: anonymousId })
  if (!links) return { event: '$set', properties }
  return { event: '$identify', properties: { ...properties, $anon_distinct_id: anonymousId } }
}

/** Reads the traits of the message, or else of its context, the only traits that RudderStack's SDKs send. */
function readTraits(record: JsonObject): JsonObject {
  return readObjectField(hasTopLevelTraits(record) ? record : readObjectField(record, 'context'), 'traits')
}

function hasTopLevelTraits(record: JsonObject): boolean {
  return Object.keys(readObjectField(record, 'traits')).length > 0
}

function createGroupEvent({ record, properties, groupType }: Message): OwnEvent {
  const { groupType: own, ...traits } = readObjectField(record, 'traits')
  const set: JsonObject = {}
  const isTyped = typeof own === 'string' && !isEmptyValue(own)
  putProperties(set, isTyped ? traits : readObjectField(record, 'traits'))
  return {
    event: '$groupidentify',
    properties: {
      ...properties,
      $group_type: isTyped ? own : groupType,
      $group_key: requireText(record, 'groupId'),
      $group_set: set,
    },
  }
}

function createAliasEvent({ record, properties }: Message): OwnEvent {
  const previousId = requireText(record, 'previousId')
  if (isIllegalId(previousId)) throw new RecordReject('distinct_id_illegal', 'previousId')
  return { event: '$create_alias', properties: { ...properties, alias: checkIdLength(previousId) } }
}

/** @throws RecordReject */
function requireText(record: JsonObject, field: string): string {
  const value = getOwnValue(record, field)
  if (isEmptyValue(value)) throw new RecordReject('distinct_id_missing', field)
  const text = toIdText(value)
  if (text === null) throw new RecordReject('distinct_id_illegal', field)
  return text
}

const timeFields = ['timestamp', 'originalTimestamp', 'receivedAt']

/**
 * Reads `timestamp`, which Segment has corrected for the device's clock. Without it, reads `originalTimestamp`, corrected
 * here if `sentAt` and `receivedAt` allow it; and without that, the time of receipt.
 * @throws RecordReject
 */
function readMessageTime(record: JsonObject, zone: string | null, window: TimeWindow) {
  const { timeUs, field } = findFirstTime(record, timeFields, { zone })
  const correctedUs = field === 'originalTimestamp' ? timeUs - estimateClockErrorUs(record, zone) : timeUs
  checkTimeInWindow(correctedUs, window, field)
  return { timeUs: correctedUs, field }
}

/** How far the device's clock is ahead, in microseconds; 0 when unknown. */
function estimateClockErrorUs(record: JsonObject, zone: string | null): number {
  try {
    return findFirstTime(record, ['sentAt'], { zone }).timeUs - findFirstTime(record, ['receivedAt'], { zone }).timeUs
  } catch (error) {
    if (error instanceof RecordReject) return 0
    throw error
  }
}

function deriveUuid(record: JsonObject): string {
  const messageId = toEventIdText(getOwnValue(record, 'messageId'))
  if (messageId === null) return deriveContentUuid(name, record)
  return isUuid(messageId) ? messageId.toLowerCase() : deriveImportUuid(name, 'message', messageId)
}

/** Fields that events of every type are made from. */
const messageFields: ReadonlySet<string> = new Set([
  ...['type', 'messageId', 'userId', 'anonymousId', 'properties', 'context', 'integrations'],
  ...['timestamp', 'originalTimestamp', 'sentAt', 'receivedAt'],
])
/** Fields that some senders fill in for every type, although they have no meaning for most types. */
const names = ['event', 'name']
/** The secret key that a message was sent with, which no event carries. */
const secretField = 'writeKey'
const notKept = [...names, secretField]

/** @throws RecordReject */
function mapProperties(record: JsonObject, groupType: string): JsonObject {
  const from = getOwnValue(record, 'properties')
  if (!isEmptyValue(from) && !isJsonObject(from)) throw new RecordReject('properties_not_object', 'properties')
  const properties: JsonObject = {}
  for (const [field, value] of Object.entries(record))
    if (!isUsedField(record, field) && !notKept.includes(field) && !isEmptyObject(value))
      putProperty(properties, field, value)
  const context = readObjectField(record, 'context')
  putContextProperties(properties, context)
  putProperties(properties, readObjectField(record, 'properties'))
  if (messageTypes.get(getOwnValue(record, 'type'))?.toEvent === createViewEvent)
    putPageProperties(properties, properties)
  putProperty(properties, '$segment_message_id', toIdText(getOwnValue(record, 'messageId')))
  const groupId = readGroupId(context)
  if (groupId !== null) properties.$groups = { [groupType]: groupId }
  return properties
}

function isUsedField(record: JsonObject, field: string): boolean {
  return messageFields.has(field) || messageTypes.get(getOwnValue(record, 'type'))?.fields.includes(field) === true
}

/** SDKs send empty objects, which do not count as dropped fields. */
function isEmptyObject(value: JsonValue): boolean {
  return isJsonObject(value) && Object.keys(value).length === 0
}

/** Texts that are illegal as ids of persons, such as 0 or guest, are valid keys of groups. */
function readGroupId(context: JsonObject): string | null {
  const value = getOwnValue(context, 'groupId')
  return isEmptyValue(value) ? null : toIdText(value)
}

/** @param timeField the field of the event's time. */
function listDroppedFields(record: JsonObject, timeField: string): string[] {
  const context = readObjectField(record, 'context')
  const readsTraits = getOwnValue(record, 'type') === 'identify' && !hasTopLevelTraits(record)
  const read = [...(readsTraits ? ['traits'] : []), ...(readGroupId(context) === null ? [] : ['groupId'])]
  return [
    ...notKept.filter(field => !isUsedField(record, field) && !isEmptyValue(getOwnValue(record, field))),
    ...listUnreadContextFields(context, read).map(field => `context.${field}`),
    ...[...timeFields, 'sentAt'].filter(field => field !== timeField && !isEmptyValue(getOwnValue(record, field))),
  ]
}
