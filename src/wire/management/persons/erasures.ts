// Erasing persons, in PostHog's words. Source: docs/wire/private-api.md 6.1.

import Type, { type Static } from 'typebox'
import { type ErasedPerson, erasedPersonsMax } from '#core/persons/erasure.ts'
import { authorSchema, encodeAuthor } from '../author.ts'
import { formatInstant, idSchema, instantSchema, nullable, uuidSchema } from '../shapes.ts'

const distinctIdLengthMax = 1_000

export const bulkErasureSchema = Type.Object({
  ids: Type.Optional(Type.Array(uuidSchema, { minItems: 1, maxItems: erasedPersonsMax, description: 'Person uuids.' })),
  distinct_ids: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: distinctIdLengthMax }), {
      minItems: 1,
      maxItems: erasedPersonsMax,
      description: 'Distinct ids, instead of `ids`. Each selects its person with all distinct ids.',
    }),
  ),
  delete_events: Type.Optional(Type.Boolean({ description: "Also erase the persons' events and rejected events." })),
  delete_recordings: Type.Optional(Type.Boolean({ description: 'Default: the value of `delete_events`.' })),
  keep_person: Type.Optional(Type.Boolean({ description: 'Erase only events and recordings.' })),
})

export const bulkErasedSchema = Type.Object({
  persons_found: Type.Integer(),
  persons_deleted: Type.Integer({ description: '0 with `keep_person`.' }),
  events_queued_for_deletion: Type.Boolean(),
  recordings_queued_for_deletion: Type.Boolean(),
  deletion_errors: Type.Array(Type.Object({}), { description: 'Always empty.' }),
})

export const deletionStatuses = ['pending', 'completed', 'all'] as const

export const deletionStatusSchema = Type.Object({
  person_uuid: uuidSchema,
  created_at: instantSchema,
  created_by: authorSchema,
  status: Type.Union([Type.Literal('pending'), Type.Literal('completed')]),
  delete_verified_at: nullable(instantSchema),
  erasure: Type.Object({
    id: idSchema,
    persons: Type.Integer({ description: 'Number of persons erased by the same request, or the same part of it.' }),
    keep_person: Type.Boolean(),
    delete_events: Type.Boolean(),
    delete_recordings: Type.Boolean(),
    removed: nullable(
      Type.Object({
        events: Type.Integer(),
        pending_events: Type.Integer({ description: 'Events of unpublished import jobs.' }),
        recordings: Type.Integer(),
        rejected_events: Type.Integer(),
      }),
    ),
  }),
})

export function encodeDeletionStatus(person: ErasedPerson): Static<typeof deletionStatusSchema> {
  const { removed, doneAtMs } = person
  return {
    person_uuid: person.uuid,
    created_at: formatInstant(person.requestedAtMs),
    created_by: encodeAuthor(person.requestedBy),
    status: doneAtMs === null ? 'pending' : 'completed',
    delete_verified_at: doneAtMs === null ? null : formatInstant(doneAtMs),
    erasure: {
      id: person.erasureId,
      persons: person.personCount,
      keep_person: person.keepsPerson,
      delete_events: person.deletesEvents,
      delete_recordings: person.deletesRecordings,
      removed: removed && {
        events: removed.events,
        pending_events: removed.pendingEvents,
        recordings: removed.recordings,
        rejected_events: removed.rejectedEvents,
      },
    },
  }
}
