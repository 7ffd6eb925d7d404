// The cursor of an export of events: the cursor of a list. For days that are read in key order, the event's key
// follows, as base64url of JSON.

import Type from 'typebox'
import { err, ok } from '#core/result.ts'
import type { ExportCursor } from '#ports/events/event-exports.ts'
import { invalid } from '../kit/answers.ts'
import { encodeEventCursor, parseEventCursor } from '../kit/event-filters.ts'
import { readJson } from '../kit/property-filters.ts'
import { optionalParam, type QueryParam } from '../kit/query-params.ts'

const separator = '~'

export function exportCursorParam(): QueryParam<ExportCursor | undefined> {
  const schema = Type.String({ description: 'Cursor of the last row of the previous export.' })
  return optionalParam(schema, (text, name) => {
    const cursor = parseExportCursor(text)
    return cursor === null
      ? err(invalid(name, 'Not a cursor: pass the value from the previous export unchanged.'))
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
  const parts = readJson(Buffer.from(text, 'base64url').toString())
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
