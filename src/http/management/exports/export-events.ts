// Downloads of all events that match the filters of the list.

import Type from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { EventExports } from '#ports/events/event-exports.ts'
import { type EventRow, eventColumns } from '#wire/exports/event-columns.ts'
import { answerFromEventStore, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { eventFilters, readEventFilters } from '../kit/event-filters.ts'
import { encodeBoundParams, type TimeBounds } from '../kit/instants.ts'
import { answerExport, exportParams } from './answer-export.ts'
import { createExportEncoder } from './create-export-encoder.ts'
import { encodeExportCursor, exportCursorParam } from './export-cursor.ts'

const scope = 'query:read'

export function exportEventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /events/export',
    id: 'events_export',
    summary: 'Download all matching events, in the order of the event list. `cursor` resumes an interrupted export.',
    scope,
    group: 'exports',
    query: { ...eventFilters, cursor: exportCursorParam(), ...exportParams },
    success: {
      status: 200,
      contentType: 'application/x-ndjson',
      schema: Type.String({ description: 'JSON lines, CSV (text/csv) or Parquet, by `format`.' }),
    },
    handle: call =>
      answerFromEventStore(async () => {
        const { project, query, signal } = call
        const read = readEventFilters(query, { timezone: project.timezone, nowMs: deps.clock.nowMs() })
        if (!read.ok) return refusal(read.error)
        const filters = omitUndefined({ projectId: project.id, ...read.value.filters, after: query.cursor })
        return answerExport<EventRow>(deps, call, {
          headers: encodeBoundHeaders(read.value.bounds),
          ...{ name: 'events', scope, limit: query.limit, format: query.format },
          encoder: createExportEncoder(query.format, eventColumns, deps.openParquetFile),
          cursorOf: ({ cursor }) => cursor,
          open: async () => {
            const { batches, eventCountMax } = await deps.events.openEventExport(filters, signal)
            return { batches: encodeRows(batches), rowCountMax: eventCountMax }
          },
        })
      }),
  })
}

/** Writes the bounds as instants: when the export is resumed, `-7d` would mean another instant. */
function encodeBoundHeaders(bounds: TimeBounds): Record<string, string> {
  const pinned = Object.entries(encodeBoundParams(bounds))
  return Object.fromEntries(pinned.map(([name, value]) => [`pennon-export-${name}`, value]))
}

async function* encodeRows(
  batches: Awaited<ReturnType<EventExports['openEventExport']>>['batches'],
): AsyncGenerator<Iterable<EventRow>> {
  for await (const batch of batches)
    yield Iterator.from(batch).map(({ event, cursor }) => ({ event, cursor: encodeExportCursor(cursor) }))
}
