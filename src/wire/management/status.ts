// The progress of processing, usage, and warnings about a project's events.

import Type, { type Static } from 'typebox'
import { instantSchema, jsonObjectSchema } from './shapes.ts'

const streamStatusSchema = Type.Object({
  appended: Type.Integer({ description: 'Records ever appended to the log.' }),
  processed: Type.Integer({ description: 'Records processed; equal to `appended` when caught up.' }),
  lag_seconds: Type.Number({ description: 'Age of the oldest unprocessed record; 0 when caught up.' }),
})
export type StreamStatusJson = Static<typeof streamStatusSchema>
const outcomeSchema = Type.Object({
  lane: Type.String({ description: 'Lane of the record, such as `main`, `overflow` or `replay`.' }),
  outcome: Type.Union([Type.Literal('stored'), Type.Literal('dropped'), Type.Literal('rejected')]),
  reason: Type.String({ description: 'Empty if stored.' }),
  count: Type.Integer(),
})
export type OutcomeJson = Static<typeof outcomeSchema>
const refusedSchema = Type.Object({
  reason: Type.String({ description: 'Code listed in docs/wire/errors.md, such as `events_over_quota`.' }),
  count: Type.Integer(),
  last_seen: instantSchema,
})
export type RefusedJson = Static<typeof refusedSchema>
export const ingestionStatusSchema = Type.Object({
  lanes: Type.Record(Type.String(), streamStatusSchema, {
    description: 'By log stream: `main` has live events, `historical` imports.',
  }),
  outcomes: Type.Array(outcomeSchema, {
    description: "Outcomes of the project's processed records, including duplicates.",
  }),
  refused: Type.Array(refusedSchema, {
    description: "The project's events refused without a record in the last 30 days, by reason.",
  }),
})

export const lostRecordsSchema = Type.Object({
  lane: Type.String({ description: 'Log stream: `main` or `historical`.' }),
  from_offset: Type.Integer({ description: 'First lost record.' }),
  to_offset: Type.Integer({ description: 'Offset after the last lost record.' }),
  record_count: Type.Integer({
    description: 'Number of lost records. Less than the span if older losses were combined to bound the list.',
  }),
  file: Type.Union([Type.String(), Type.Null()], {
    description: 'The damaged file that held them, if it still exists.',
  }),
  noticed_at: instantSchema,
  body: Type.Union([Type.String(), Type.Null()], {
    description: 'Base64 of up to 16 KiB of a record with a failed checksum; otherwise null.',
  }),
})
export type LostRecordsJson = Static<typeof lostRecordsSchema>

export const usageDaySchema = Type.Object({
  date: Type.String({ format: 'date', description: 'UTC day on which the events were accepted.' }),
  events_charged: Type.Integer({ description: 'Stored live events, without duplicates.' }),
  events_imported: Type.Integer({ description: 'Events of historical migrations; never charged.' }),
  flag_requests: Type.Integer(),
  exceptions: Type.Integer({ description: '`$exception` events among events_charged.' }),
  llm_events: Type.Integer({ description: 'Events named `$ai_…` among events_charged.' }),
  survey_responses: Type.Integer({
    description:
      '`survey sent`, `survey shown` and `survey dismissed` events among events_charged, outside product tours.',
  }),
  recordings: Type.Integer({ description: 'Recorded sessions.' }),
})
export const usageSchema = Type.Object({ results: Type.Array(usageDaySchema) })

export const warningSchema = Type.Object({
  type: Type.String(),
  count: Type.Integer(),
  last_seen: instantSchema,
  warnings: Type.Array(Type.Object({ timestamp: instantSchema, details: jsonObjectSchema() })),
})
export type WarningJson = Static<typeof warningSchema>
export const warningsSchema = Type.Object({ results: Type.Array(warningSchema) })
