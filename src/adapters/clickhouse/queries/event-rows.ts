// The columns of an event that is read in full.

import type { Lane } from '#core/events/captured-event.ts'
import type { PersonMode } from '#core/events/stored-event.ts'
import type { EventView } from '#ports/events/event-queries.ts'

/** The values of a row, in the order of `viewColumns`. */
export type SelectedEventRow = [
  projectId: number,
  uuid: string,
  event: string,
  distinctId: string,
  timestampMs: number | string,
  capturedAtMs: number | string,
  createdAtMs: number | string,
  lane: Lane,
  historicalMigration: boolean,
  importJobId: number,
  propertiesJson: string,
  elementsChain: string,
  personId: string,
  personCreatedAtMs: number | string,
  personPropertiesJson: string,
  personMode: PersonMode,
]

export const viewColumns = `project_id, toString(uuid), event, distinct_id, toUnixTimestamp64Milli(timestamp),
  toUnixTimestamp64Milli(captured_at), toUnixTimestamp64Milli(created_at), lane, historical_migration, import_job_id,
  properties, elements_chain, toString(person), toUnixTimestamp64Milli(person_created_at), person_properties, person_mode`

export const storedColumns = `project_id, uuid, event, distinct_id, timestamp, captured_at, created_at, lane, historical_migration,
  import_job_id, properties, elements_chain, person_created_at, person_properties, person_mode`

/**
 * Converts the row of an event. 64-bit numbers may be text, if the server is set to write them so; further columns may
 * follow.
 */
export function toEventView(row: readonly [...SelectedEventRow, ...unknown[]]): EventView {
  return {
    projectId: row[0],
    uuid: row[1],
    event: row[2],
    distinctId: row[3],
    timestampMs: Number(row[4]),
    capturedAtMs: Number(row[5]),
    createdAtMs: Number(row[6]),
    lane: row[7],
    historicalMigration: row[8],
    importJobId: row[9],
    propertiesJson: row[10],
    elementsChain: row[11],
    personId: row[12],
    personCreatedAtMs: Number(row[13]),
    personPropertiesJson: row[14],
    personMode: row[15],
  }
}
