// Reads events from another PostHog or Pennon by SQL, through `POST /api/projects/:id/query/`, which both support. Rows are
// ordered by (timestamp, uuid); each page starts after the last row of the previous one. Source: docs/wire/import.md §1.8.

import { isJsonObject, type JsonValue, ownValue, parseJson } from '#core/json.ts'
import { BrokenAnswer, FetchStop, FetchWait, WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import type { FetchPart, FetchSource, PartOutcome, PartTools } from '#importer/fetch/fetch-source.ts'
import { type DayWindow, divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import { createStatusFault, readBody, sendRequest } from '#importer/fetch/http-request.ts'
import { readTime } from '#importer/records/source-time.ts'
import { writeLines } from './lines-file.ts'

export const posthogHosts = { us: 'https://us.posthog.com', eu: 'https://eu.posthog.com' } as const
/** Senders queue events while they are offline; most arrive within the hour. */
export const posthogReadyMs = 3_600_000

export interface PosthogEvents {
  readonly host: URL
  readonly projectId: string
  /** Days in UTC. */
  readonly range: DayWindow
  readonly personalKey: string
}

const columns = ['uuid', 'event', 'distinct_id', 'properties', 'timestamp', 'created_at', 'person_id', 'elements_chain']
const pageRows = { first: 10_000, min: 10 }
const pageBytesMax = 256 * 2 ** 20

export function createPosthogSource(options: PosthogEvents): FetchSource {
  return {
    limits: { perSecond: 2, perHour: null, atOnce: 1 },
    advice: 'Use a batch export to a bucket, and fetch from there with --source s3.',
    callsPerPart: 2,
    notes: [
      'A day of more than 10,000 events takes a call more for every 10,000. For tens of millions a batch export to a bucket is faster.',
    ],
    listParts: () =>
      divideIntoWindows(options.range, 1).map(({ from }) => ({
        id: `posthog-${encodeURIComponent(options.projectId)}-${from}.jsonl.gz`,
        asks: { day: from },
        bytes: null,
      })),
    splitPart: () => null,
    fetchPart: (part, tools) => fetchDay(part, options, tools),
  }
}

/** Identifies the last row received. */
interface Cursor {
  /** Microseconds since 1970. */
  readonly timeUs: number
  readonly uuid: string
}

async function fetchDay({ asks }: FetchPart, options: PosthogEvents, tools: PartTools): Promise<PartOutcome> {
  const startUs = Date.parse(`${asks.day}T00:00:00Z`) * 1_000
  const readPages = async function* () {
    let cursor: Cursor | null = null
    for (let rowsMax = pageRows.first; ; ) {
      const rows = await readPage(startUs, cursor, rowsMax, options, tools)
      if (rows === 'too_large') {
        rowsMax = Math.max(pageRows.min, Math.floor(rowsMax / 4))
        continue
      }
      // The instance's own limits can shorten any page, so only an empty page is the end.
      if (rows.length === 0) return
      const next = readCursor(rows.at(-1)!)
      if (cursor !== null && next.timeUs === cursor.timeUs && next.uuid === cursor.uuid)
        throw new BrokenAnswer('the instance returns the same rows again')
      cursor = next
      yield rows.map(row => JSON.stringify(row))
    }
  }
  const lineCount = await writeLines(readPages(), tools)
  return lineCount === 0 ? { kind: 'empty' } : { kind: 'file', lineCount }
}

type Row = Record<string, JsonValue>

async function readPage(
  startUs: number,
  cursor: Cursor | null,
  rowsMax: number,
  { host, projectId, personalKey }: PosthogEvents,
  tools: PartTools,
): Promise<Row[] | 'too_large'> {
  await tools.takeCall()
  const answer = await sendRequest({
    method: 'POST',
    url: new URL(`api/projects/${encodeURIComponent(projectId)}/query/`, host.href.endsWith('/') ? host : `${host}/`),
    headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: { kind: 'HogQLQuery', query: buildSql(startUs, cursor, rowsMax) } }),
    signal: tools.signal,
    warn: tools.warn,
  })
  if (answer.status !== 200) {
    const { status } = answer
    const fault = await createStatusFault(answer, { source: 'PostHog', secrets: [personalKey], nowMs: tools.nowMs() })
    const isTooLarge =
      status === 400 ? /too_large|memory|too large/i.test(fault.message) : [413, 500, 504].includes(status)
    if (isTooLarge && rowsMax > pageRows.min) return 'too_large'
    if (status === 400) throw new WindowTooLarge(fault.message, true)
    throw fault
  }
  return readRows((await readBody(answer.body, pageBytesMax)).toString(), personalKey)
}

/**
 * Times have an explicit zone, since HogQL reads text without one in the zone of the project. The condition on
 * `timestamp` selects only rows between the cursor and the end of the day, so that a page costs no more than its rows.
 */
function buildSql(startUs: number, cursor: Cursor | null, rowsMax: number): string {
  const endUs = startUs + 86_400_000_000
  const from = formatInstant(cursor?.timeUs ?? startUs)
  const condition =
    cursor === null
      ? `timestamp >= ${from}`
      : `timestamp >= ${from} AND (timestamp > ${from} OR uuid > toUUID('${cursor.uuid}'))`
  return `SELECT ${columns.join(', ')} FROM events WHERE ${condition} AND timestamp < ${formatInstant(endUs)} ORDER BY timestamp, uuid LIMIT ${rowsMax}`
}

function formatInstant(us: number): string {
  const text = new Date(Math.floor(us / 1_000)).toISOString().slice(0, -1).replace('T', ' ')
  return `toDateTime64('${text}${String(us % 1_000).padStart(3, '0')}', 6, 'UTC')`
}

function readRows(text: string, personalKey: string): Row[] {
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch {
    throw new BrokenAnswer('the answer is not whole')
  }
  if (!isJsonObject(value)) throw new BrokenAnswer('the answer is no object')
  const error = ownValue(value, 'error')
  if (typeof error === 'string')
    throw new FetchStop(`The instance says: ${error.replaceAll(personalKey, '…').slice(0, 300)}`)
  const results = ownValue(value, 'results')
  if (Array.isArray(results))
    return results.map(row => {
      if (!Array.isArray(row) || row.length !== columns.length) throw new BrokenAnswer('a row has other columns')
      return Object.fromEntries(columns.map((column, index) => [column, row[index]!]))
    })
  // A busy instance returns the status of a deferred query.
  if (ownValue(value, 'query_status') !== undefined) throw new FetchWait('the instance has deferred the query')
  throw new BrokenAnswer('the answer has no rows')
}

/** @throws BrokenAnswer for a row from which the next page cannot start. */
function readCursor({ timestamp, uuid }: Row): Cursor {
  const timeUs = typeof timestamp === 'string' ? readTime(timestamp, { zone: 'UTC' }, 'timestamp') : null
  if (timeUs === null || typeof uuid !== 'string' || !/^[0-9a-f-]{36}$/i.test(uuid))
    throw new BrokenAnswer('the last row has no valid time or uuid, so the next page cannot be requested')
  return { timeUs, uuid }
}
