// Formats each message of `pennon tail` as exactly one line, no matter what clients sent. A line is a row of a table that
// never ends, so the columns have fixed widths. On a terminal, what does not fit is truncated; without one, so that lines stay
// readable, long values are. `--json` has everything.

import type { JsonValue } from '#core/json.ts'
import { toPrintable } from '#core/printable.ts'
import { plainTerminal, type Terminal } from '../client/terminal.ts'
import { measureTextWidth, truncateToWidth } from '../client/text-width.ts'
import type { LiveMessageData } from './live-view.ts'

/** @returns the whole message as JSON. */
export function formatJsonLine(kind: string, data: LiveMessageData): string {
  return toPrintable(JSON.stringify({ type: kind, ...data }))
}

export function formatLine(kind: string, data: LiveMessageData, terminal: Terminal = plainTerminal): string {
  switch (kind) {
    case 'ready':
      return terminal.paint('bold', formatRow(['TIME', 'EVENT', 'DISTINCT ID', 'PROPERTIES'], terminal))
    case 'event':
      return formatRow(toEventCells(data, terminal), terminal)
    case 'rejected':
      return terminal.paint('yellow', formatRow(toRejectCells(data), terminal))
    default:
      return formatRow([`# ${kind} ${JSON.stringify(data)}`], terminal)
  }
}

/** Columns of time (with milliseconds), event and distinct id; the last cell takes the rest of the line. */
const widths = [24, 24, 24]
const gap = '  '

function formatRow(cells: readonly string[], { width }: Terminal): string {
  const padded = cells.map((cell, index) => {
    const text = toPrintable(cell)
    const columns = widths[index]
    if (index === cells.length - 1 || columns === undefined) return text
    const shown = width === null ? text : truncateToWidth(text, columns)
    return shown + ' '.repeat(Math.max(0, columns - measureTextWidth(shown)))
  })
  const line = padded.join(gap)
  return width === null ? line : truncateToWidth(line, width)
}

/**
 * Person properties sent with the event come after the event's properties. The time is the time of arrival, so that lines
 * are in order; an imported event is marked, and also shows the time with which it is stored.
 */
function toEventCells(
  {
    captured_at: capturedAt,
    historical_migration: isImport,
    timestamp,
    event,
    distinct_id: distinctId,
    properties,
    cut,
    ...others
  }: LiveMessageData,
  { width }: Terminal,
): string[] {
  const format = (value: JsonValue | undefined) => {
    const text = JSON.stringify(value)
    return width === null ? truncateText(text) : text
  }
  const set = ['$set', '$set_once'].filter(name => name in others)
  const parts = [
    ...(isImport === true ? [`historical ${timestamp}`] : []),
    format(properties),
    ...set.map(name => `${name} ${format(others[name])}`),
    ...(cut === true ? ['(cut)'] : []),
  ]
  return [String(capturedAt), String(event), String(distinctId), parts.join(gap)]
}

/** How much of a long text is shown: enough to recognise it, such as a rejected body or the stack of an exception. */
const textCharsMax = 200

function truncateText(text: string): string {
  return text.length > textCharsMax ? `${text.slice(0, textCharsMax)}…` : text
}

function toRejectCells({
  received_at: receivedAt,
  historical_migration: isImport,
  reason,
  field,
  distinct_id: distinctId,
  body,
}: LiveMessageData): string[] {
  const at = field === '' || field === null || field === undefined ? '' : ` (${field})`
  const mark = isImport === true ? ['historical'] : []
  return [
    String(receivedAt),
    'rejected',
    String(distinctId),
    [...mark, `${reason}${at}`, truncateText(String(body))].join(gap),
  ]
}
