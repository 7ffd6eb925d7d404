// The progress of processing, usage, and warnings about a project's events.

import Type, { type Static } from 'typebox'
import { instantSchema, jsonObjectSchema } from './shapes.ts'

const laneStatusSchema = Type.Object({
  appended: Type.Integer({ description: 'Records ever appended to the log.' }),
  processed: Type.Integer({ description: 'Records processed; equal to `appended` when caught up.' }),
  lag_seconds: Type.Number({ description: 'Age of the oldest record that is not processed; 0 when caught up.' }),
})
export type LaneStatusJson = Static<typeof laneStatusSchema>
const outcomeSchema = Type.Object({
  lane: Type.String({ description: 'The one that the record took, such as `main`, `overflow` or `replay`.' }),
  outcome: Type.Union([Type.Literal('stored'), Type.Literal('dropped'), Type.Literal('rejected')]),
  reason: Type.String({ description: 'Empty for stored.' }),
  count: Type.Integer(),
})
export type OutcomeJson = Static<typeof outcomeSchema>
const refusedSchema = Type.Object({
  reason: Type.String({ description: 'A code of docs/wire/errors.md, such as `events_over_quota`.' }),
  count: Type.Integer(),
  last_seen: instantSchema,
})
export type RefusedJson = Static<typeof refusedSchema>
export const ingestionStatusSchema = Type.Object({
  lanes: Type.Record(Type.String(), laneStatusSchema, {
    description: 'By stream of the log: `main` has live events, `historical` imports.',
  }),
  outcomes: Type.Array(outcomeSchema, {
    description: 'What became of the records of this project that were processed so far, repeats included.',
  }),
  refused: Type.Array(refusedSchema, {
    description: 'Events of this project that arrived in the last 30 days and left no record, by reason.',
  }),
})

export const lostRecordsSchema = Type.Object({
  lane: Type.String({ description: 'Of the log: `main` or `historical`.' }),
  from_offset: Type.Integer({ description: 'The first record of the span.' }),
  to_offset: Type.Integer({ description: 'Behind the last one.' }),
  record_count: Type.Integer({
    description: 'Of the span. Fewer than it has where older losses were summed up, since the list has a bound.',
  }),
  file: Type.Union([Type.String(), Type.Null()], { description: 'The damaged file that they lay in, if it is there.' }),
  noticed_at: instantSchema,
  body: Type.Union([Type.String(), Type.Null()], {
    description: 'Base64: the bytes of a record that is there and whose checksum fails, up to 16 KiB. Else null.',
  }),
})
export type LostRecordsJson = Static<typeof lostRecordsSchema>

export const usageDaySchema = Type.Object({
  date: Type.String({ format: 'date', description: 'UTC day on which the events were accepted.' }),
  events_charged: Type.Integer({ description: 'Live events that are stored, each once.' }),
  events_imported: Type.Integer({ description: 'Events of historical migrations: never charged.' }),
  flag_requests: Type.Integer(),
  exceptions: Type.Integer({ description: 'Of events_charged, `$exception`.' }),
  llm_events: Type.Integer({ description: 'Of events_charged, names that start with `$ai_`.' }),
  survey_responses: Type.Integer({
    description: 'Of events_charged, `survey sent`, `survey shown` and `survey dismissed` outside product tours.',
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
