// The values of a commit's rows, in the order of the columns that `inserts.ts` names.

import { warningSamplesPerDay } from '#core/events/warning-types.ts'
import { encodeMarks } from '#core/persons/property-marks-text.ts'
import { utcDay } from '#core/usage.ts'
import type { ChunkChanges, IngestionWarning } from '#ports/state/chunk-store.ts'
import { flagBit, jsonText } from '../tables/rows.ts'

/** Those after the person's name. */
export function personColumns(row: ChunkChanges['persons'][number]['row']): (string | number)[] {
  const { createdAtMs, version, lastSeenAtMs } = row
  return [
    jsonText(row.properties),
    encodeMarks(row.marks),
    createdAtMs,
    flagBit(row.isIdentified),
    version,
    lastSeenAtMs,
  ]
}

/** Those after the group's name. */
export function groupColumns(row: ChunkChanges['groups'][number]['row']): (string | number)[] {
  return [jsonText(row.properties), encodeMarks(row.marks), row.createdAtMs, row.version]
}

interface WarningsOfDay {
  readonly columns: readonly [projectId: number, type: string, day: string, count: number, lastSeenMs: number]
  readonly warnings: readonly IngestionWarning[]
}

/** In the same order for every worker. */
export function groupWarningsByDay(warnings: readonly IngestionWarning[]): WarningsOfDay[] {
  const byDay = Map.groupBy(
    warnings,
    ({ projectId, type, timestampMs }) => `${projectId} ${utcDay(timestampMs)} ${type}`,
  )
  return [...byDay]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, ofDay]) => {
      const { projectId, type, timestampMs } = ofDay[0]!
      const lastSeenMs = ofDay.reduce((latest, warning) => Math.max(latest, warning.timestampMs), 0)
      return { columns: [projectId, type, utcDay(timestampMs), ofDay.length, lastSeenMs], warnings: ofDay }
    })
}

/** The first warnings of a day are kept. @param countSoFar of the day, these included. */
export function sampleColumns({ columns, warnings }: WarningsOfDay, countSoFar: number): (string | number)[][] {
  const [projectId, type, day] = columns
  const left = Math.max(0, warningSamplesPerDay(type) - (countSoFar - warnings.length))
  return warnings
    .slice(0, left)
    .map(({ timestampMs, details }) => [projectId, type, day, timestampMs, jsonText(details)])
}
