// What `pennon tail` prints of each message: a line, whatever clients sent.

import type { Data } from './live-view.ts'

/** @param isJson the whole of it, as JSON. */
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
 * What is set on the person stands behind the properties, where it was sent beside them. The time is that of arrival, so that
 * lines are in order; an import is marked, with the time that it is stored with.
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

/** Enough to know it again; `--json` prints all of it, and so does the list of rejects. */
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

/**
 * What clients sent may not move the cursor, turn the direction of a line, break it or hide in it: control and format characters,
 * separators and halves of characters are escaped as in JSON, which a line may be.
 */
function printable(line: string): string {
  return line.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, chars => {
    const units = Array.from({ length: chars.length }, (_, index) => chars.charCodeAt(index))
    return units.map(unit => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })
}
