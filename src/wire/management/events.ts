// Events as the private API shows them. An event's properties are spliced into the answer exactly as stored, which
// keeps the client's literals and key order and saves parsing megabytes of JSON per page.

import Type, { type Static } from 'typebox'
import { rejectBodyBytesMax } from '#core/capture/reject-body.ts'
import { type Lane, lanes } from '#core/events/captured-event.ts'
import type { RejectedEvent, StoredEvent } from '#core/events/stored-event.ts'
import { parseElementsChain } from '#core/processing/elements/elements-chain-parse.ts'
import { formatInstant, instantSchema, jsonObjectSchema, nullable, toObjectFromMap, uuidSchema } from './shapes.ts'

const elementSchema = Type.Object({
  order: Type.Integer(),
  tag_name: nullable(Type.String()),
  text: nullable(Type.String()),
  href: nullable(Type.String()),
  attr_id: nullable(Type.String()),
  attr_class: nullable(Type.Array(Type.String())),
  nth_child: nullable(Type.Integer()),
  nth_of_type: nullable(Type.Integer()),
  attributes: jsonObjectSchema(),
})

export const eventSchema = Type.Object({
  id: uuidSchema,
  uuid: uuidSchema,
  event: Type.String(),
  distinct_id: Type.String(),
  timestamp: instantSchema,
  elements: Type.Array(elementSchema),
  elements_chain: Type.String(),
  person_id: uuidSchema,
  person_mode: Type.Union([Type.Literal('full'), Type.Literal('propertyless'), Type.Literal('force_upgrade')]),
  person_created_at: nullable(instantSchema),
  lane: Type.String(),
  historical_migration: Type.Boolean(),
  import_job_id: Type.Integer({ description: '0: live event; from 2: import job.' }),
  captured_at: instantSchema,
  created_at: instantSchema,
  properties: jsonObjectSchema(),
  person_properties: jsonObjectSchema("The person's properties when the event was processed."),
  person: Type.Object({
    uuid: uuidSchema,
    created_at: nullable(instantSchema),
    distinct_ids: Type.Array(Type.String()),
    properties: jsonObjectSchema(),
  }),
})
type EventHead = Omit<Static<typeof eventSchema>, 'properties' | 'person_properties' | 'person'>

export const eventPageSchema = Type.Object({ next: nullable(Type.String()), results: Type.Array(eventSchema) })

export interface EventToEncode
  extends Omit<
    StoredEvent,
    | ('chargedAtMs' | 'groups' | 'flags' | 'sessionId' | 'windowId' | 'flagCalled' | 'flagResponse')
    | ('linkedId' | 'logStream' | 'logOffset' | 'sentLaterMs')
  > {
  readonly createdAtMs: number
}

/** JSON text of one event. */
export function encodeEvent(event: EventToEncode): string {
  const personCreatedAt = event.personCreatedAtMs === 0 ? null : formatInstant(event.personCreatedAtMs)
  const head: EventHead = {
    id: event.uuid,
    uuid: event.uuid,
    event: event.event,
    distinct_id: event.distinctId,
    timestamp: formatInstant(event.timestampMs),
    elements: event.elementsChain === '' ? [] : encodeElements(event.elementsChain),
    elements_chain: event.elementsChain,
    person_id: event.personId,
    person_mode: event.personMode,
    person_created_at: personCreatedAt,
    lane: event.lane,
    historical_migration: event.historicalMigration,
    import_job_id: event.importJobId,
    captured_at: formatInstant(event.capturedAtMs),
    created_at: formatInstant(event.createdAtMs),
  }
  const person = { uuid: event.personId, created_at: personCreatedAt, distinct_ids: [event.distinctId] }
  const personProperties = event.personPropertiesJson === '' ? '{}' : event.personPropertiesJson
  return (
    `${encodeUnclosedObject(head)},"properties":${event.propertiesJson === '' ? '{}' : event.propertiesJson}` +
    `,"person_properties":${personProperties},"person":${encodeUnclosedObject(person)},"properties":${personProperties}}}`
  )
}

function encodeUnclosedObject(object: object): string {
  return JSON.stringify(object).slice(0, -1)
}

function encodeElements(chain: string): Static<typeof elementSchema>[] {
  return parseElementsChain(chain).map((element, order) => ({
    order,
    tag_name: element.tagName,
    text: element.text,
    href: element.href,
    attr_id: element.attrId,
    attr_class: element.classes.length === 0 ? null : [...element.classes],
    nth_child: element.nthChild,
    nth_of_type: element.nthOfType,
    attributes: toObjectFromMap(element.attributes),
  }))
}

export const rejectedEventSchema = Type.Object({
  id: Type.String(),
  reason: Type.String(),
  field: Type.String(),
  lane: Type.String(),
  import_job_id: Type.Integer(),
  uuid: Type.String(),
  event: Type.String(),
  distinct_id: Type.String(),
  received_at: instantSchema,
  body: Type.String({ description: 'Original data, truncated to 64 KiB.' }),
  body_kind: nullable(
    Type.String({
      description:
        '`request`, `item` (one item of a request) or `event` (an accepted event). null: cannot be replayed.',
    }),
  ),
  body_cut: Type.Boolean(),
  replayed_at: nullable(instantSchema),
})
export type RejectedEventJson = Static<typeof rejectedEventSchema>

export interface RejectedEventToEncode extends RejectedEvent {
  readonly replayedAtMs: number | null
}

export function encodeRejectedEvent(rejected: RejectedEventToEncode): RejectedEventJson {
  return {
    id: rejected.rejectId,
    reason: rejected.reason,
    field: rejected.field,
    lane: rejected.lane,
    import_job_id: rejected.importJobId,
    uuid: rejected.uuid,
    event: rejected.event,
    distinct_id: rejected.distinctId,
    received_at: formatInstant(rejected.receivedAtMs),
    body: rejected.body,
    body_kind: rejected.source?.kind ?? null,
    body_cut: rejected.source?.isTruncated ?? isProbablyTruncated(rejected.body),
    replayed_at: rejected.replayedAtMs === null ? null : formatInstant(rejected.replayedAtMs),
  }
}

/** Whether a body that has no source was probably truncated: truncated bodies have nearly the maximum size. */
function isProbablyTruncated(body: string): boolean {
  const characterBytesMax = 4
  return Buffer.byteLength(body) > rejectBodyBytesMax - characterBytesMax
}

const createTextFilter = (description: string) => Type.Optional(Type.String({ description, maxLength: 1_000 }))

export const rejectFilterSchema = Type.Object(
  {
    reason: createTextFilter('Reason code.'),
    field: createTextFilter('The invalid field, with or without the index of its item (batch.3.uuid).'),
    event: createTextFilter('Event name.'),
    distinct_id: createTextFilter('As far as it could be read.'),
    uuid: createTextFilter('As far as it could be read.'),
    lane: Type.Optional(Type.Unsafe<Lane>({ type: 'string', enum: [...lanes] })),
    search: createTextFilter('Substring of the body, case-insensitive.'),
    after: createTextFilter(
      'Only rejects received after this time: a time, a date in the project’s time zone, or a span such as -7d.',
    ),
    before: createTextFilter('Only rejects received before this time.'),
    replayed: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

export const rejectReplaySchema = Type.Object({
  ids: Type.Optional(Type.Array(Type.String({ maxLength: 100 }), { minItems: 1, maxItems: 1_000 })),
  filter: Type.Optional(rejectFilterSchema),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'Default: 1,000.' })),
  cursor: Type.Optional(Type.String({ description: '`next` of the previous call, with the same filter.' })),
  dry_run: Type.Optional(Type.Boolean({ description: 'Report what would happen, without storing anything.' })),
  partial: Type.Optional(
    Type.Boolean({
      description:
        'Store the valid events of a request with invalid ones. Default: one invalid event rejects the whole request.',
    }),
  ),
})

export const rejectReplayReportSchema = Type.Object({
  dry_run: Type.Boolean(),
  counts: Type.Object({
    stored: Type.Integer(),
    refused: Type.Integer(),
    cannot: Type.Integer(),
    events: Type.Integer({ description: 'Events in the replayed rejects that were stored.' }),
  }),
  results: Type.Array(
    Type.Object({
      id: Type.String(),
      result: Type.Union([Type.Literal('stored'), Type.Literal('refused'), Type.Literal('cannot')]),
      reason: nullable(Type.String()),
      field: nullable(Type.String()),
      events: Type.Integer({ description: 'Events of this reject that were stored.' }),
      events_refused: Type.Integer({ description: 'Events of this reject that were refused; 0 if none was stored.' }),
    }),
  ),
  remaining: Type.Integer({ description: 'Matching rejects after `next`.' }),
  next: nullable(Type.String()),
})
export type RejectReplayReportJson = Static<typeof rejectReplayReportSchema>
