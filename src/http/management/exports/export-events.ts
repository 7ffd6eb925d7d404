// Downloads of all events that match the filters of the list.

import Type from 'typebox'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import type { EventExports, ExportCursor } from '#ports/events/event-queries.ts'
import { type ExportedEventRow, eventColumns } from '#wire/exports/exported-columns.ts'
import { answerFromEventStore, createInvalidError, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { encodeEventCursor, eventFilters, parseEventCursor, readEventFilters } from '../kit/event-filters.ts'
import { encodeTimeBoundParams, type TimeBounds } from '../kit/instants.ts'
import { parseJsonOrUndefined } from '../kit/property-filters.ts'
import { optionalParam, type QueryParam } from '../kit/query-params.ts'
import { answerExport, exportParams, exportSuccess } from './answer-export.ts'

const scope = 'query:read'

export function exportEventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /events/export',
    id: 'events_export',
    summary: 'Download all matching events, in the order of the event list. `cursor` resumes an interrupted export.',
    scope,
    group: 'exports',
    query: { ...eventFilters, cursor: exportCursorParam(), ...exportParams },
    success: exportSuccess,
    handle: call =>
      answerFromEventStore(async () => {
        const { project, query, signal } = call
        const read = readEventFilters(query, { timezone: project.timezone, nowMs: deps.clock.nowMs() })
        if (!read.ok) return refusal(read.error)
        const filters = omitUndefined({ projectId: project.id, ...read.value.filters, after: query.cursor })
        return answerExport<ExportedEventRow>(deps, call, {
          headers: encodeBoundHeaders(read.value.bounds),
          ...{ name: 'events', scope, limit: query.limit, format: query.format },
          columns: eventColumns,
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
  const pinned = Object.entries(encodeTimeBoundParams(bounds))
  return Object.fromEntries(pinned.map(([name, value]) => [`pennon-export-${name}`, value]))
}

async function* encodeRows(
  batches: Awaited<ReturnType<EventExports['openEventExport']>>['batches'],
): AsyncGenerator<Iterable<ExportedEventRow>> {
  for await (const batch of batches)
    yield Iterator.from(batch).map(({ event, cursor }) => ({ event, cursor: encodeExportCursor(cursor) }))
}

const separator = '~'

export function exportCursorParam(): QueryParam<ExportCursor | undefined> {
  const schema = Type.String({ description: 'Cursor of the last row of the previous export.' })
  return optionalParam(schema, (text, name) => {
    const cursor = parseExportCursor(text)
    return cursor === null
      ? err(createInvalidError(name, 'Not a cursor: pass the value from the previous export unchanged.'))
      : ok(cursor)
  })
}

function parseExportCursor(text: string): ExportCursor | null {
  const at = text.indexOf(separator)
  if (at === -1) return parseEventCursor(text)
  const place = parseEventCursor(text.slice(0, at))
  const key = parseSortKey(text.slice(at + 1))
  return place === null || key === null ? null : { ...place, key }
}

function parseSortKey(text: string): NonNullable<ExportCursor['key']> | null {
  if (!/^[\w-]+$/.test(text)) return null
  const parts = parseJsonOrUndefined(Buffer.from(text, 'base64url').toString())
  if (!Array.isArray(parts) || parts.length !== 3) return null
  const [event, distinctId, inTime] = parts as unknown[]
  if (typeof event !== 'string' || typeof distinctId !== 'string') return null
  const base = typeof inTime === 'string' ? parseEventCursor(inTime) : null
  return base === null && inTime !== null ? null : { event, distinctId, base }
}

export function encodeExportCursor(cursor: ExportCursor): string {
  const { key } = cursor
  const place = encodeEventCursor(cursor)
  if (key === undefined) return place
  const json = JSON.stringify([key.event, key.distinctId, key.base === null ? null : encodeEventCursor(key.base)])
  return place + separator + Buffer.from(json).toString('base64url')
}
