// Formats each message of `pennon tail` as exactly one line, whatever clients sent.

import { printable } from '#core/printable.ts'
import type { Data } from './live-view.ts'

/** @param isJson whether to print the whole message as JSON. */
export function lineOf(kind: string, data: Data, isJson: boolean): string {
  return printable(isJson ? JSON.stringify({ type: kind, ...data }) : shortLineOf(kind, data))
}

function shortLineOf(kind: string, data: Data): string {
  switch (kind) {
    case 'event':
      return eventLine(data)
    case 'rejected':
      return rejectLine(data)
    default:
      return `# ${kind} ${JSON.stringify(data)}`
  }
}

/**
 * Person properties that were sent beside the event's properties are printed after them. The time is that of arrival,
 * so that lines are in order; an import is marked and also shows the time it is stored with.
 */
function eventLine({
  captured_at: capturedAt,
  historical_migration: isImport,
  timestamp,
  event,
  distinct_id: distinctId,
  properties,
  cut,
  ...others
}: Data): string {
  const set = ['$set', '$set_once'].filter(name => name in others)
  const parts = [JSON.stringify(properties), ...set.map(name => `${name} ${JSON.stringify(others[name])}`)]
  const mark = isImport === true ? [`historical ${timestamp}`] : []
  return [capturedAt, ...mark, event, distinctId, ...parts, ...(cut === true ? ['(cut)'] : [])].join('  ')
}

/** Enough to recognise the body; `--json` and the list of rejects show all of it. */
const bodyCharsMax = 200

function rejectLine({
  received_at: receivedAt,
  historical_migration: isImport,
  reason,
  field,
  distinct_id: distinctId,
  body,
}: Data): string {
  const text = String(body)
  const shown = text.length > bodyCharsMax ? `${text.slice(0, bodyCharsMax)}…` : text
  const at = field === '' || field === null || field === undefined ? '' : ` (${field})`
  const mark = isImport === true ? ['historical'] : []
  return [receivedAt, ...mark, `rejected: ${reason}${at}`, distinctId, shown].join('  ')
}
