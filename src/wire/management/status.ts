// Where processing stands, what was used, and what the project should know about its events.

import Type, { type Static } from 'typebox'
import { instantSchema, jsonObjectSchema } from './shapes.ts'

const laneStatusSchema = Type.Object({
  appended: Type.Integer({ description: 'Records ever appended to the log.' }),
  processed: Type.Integer({ description: 'Records processed; equal to `appended` when caught up.' }),
  lag_seconds: Type.Number({ description: 'Age of the oldest record that is not processed; 0 when caught up.' }),
})
export type LaneStatusJson = Static<typeof laneStatusSchema>
export const ingestionStatusSchema = Type.Object({
  lanes: Type.Object({ main: laneStatusSchema, historical: laneStatusSchema }),
})
export type IngestionStatusJson = Static<typeof ingestionStatusSchema>

export const usageDaySchema = Type.Object({
  date: Type.String({ format: 'date', description: 'UTC day on which the events were accepted.' }),
  events_charged: Type.Integer(),
  events_imported: Type.Integer(),
  flag_requests: Type.Integer(),
})
export type UsageDayJson = Static<typeof usageDaySchema>
export const usageSchema = Type.Object({ results: Type.Array(usageDaySchema) })

export const warningSchema = Type.Object({
  type: Type.String(),
  count: Type.Integer(),
  last_seen: instantSchema,
  warnings: Type.Array(Type.Object({ timestamp: instantSchema, details: jsonObjectSchema() })),
})
export type WarningJson = Static<typeof warningSchema>
export const warningsSchema = Type.Object({ results: Type.Array(warningSchema) })
