// Reads events from another PostHog or Pennon by SQL, through `POST /api/projects/:id/query/`, which both support. Rows are
// ordered by (timestamp, uuid); each page starts after the last row of the previous one. Source: docs/wire/import.md §1.8.

import { getOwnValue, isJsonObject, type JsonValue } from '#core/json.ts'
import { BrokenAnswer, FetchStop, FetchWait, WindowTooLarge } from '#importer/fetch/fetch-faults.ts'
import { redactSecrets } from '#importer/fetch/fetch-secrets.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { hours } from '#importer/fetch/fetch-windows.ts'
import { readTime } from '#importer/records/source-time.ts'
import {
  type ApiRequest,
  type ExportApi,
  PageTooLarge,
  parseJsonAnswer,
  readPages,
  readPageText,
  requestApi,
  writePageLines,
} from './api-request.ts'

const columns = ['uuid', 'event', 'distinct_id', 'properties', 'timestamp', 'created_at', 'person_id', 'elements_chain']
const pageRows = { first: 10_000, min: 10, divisor: 4 }

/** The days are in UTC. */
export const posthog: ExportApi = {
  hosts: { us: 'https://us.posthog.com', eu: 'https://eu.posthog.com' },
  // Waits for late events: senders queue events while they are offline, and most arrive within the hour.
  ready: { afterMs: hours.ms, zone: 'utc' },
  limits: { perSecond: 2, perHour: null, atOnce: 1 },
  advice: 'Use a batch export to a bucket, and fetch from there with --source s3.',
  callsPerPart: 2,
  notes: [
    'A day of more than 10,000 events takes a call more for every 10,000. For tens of millions a batch export to a bucket is faster.',
  ],
  open({ project_id }, host, secret) {
    const personalKey = secret('POSTHOG_PERSONAL_KEY', 'a personal API key with the scope query:read')
    const project = encodeURIComponent(project_id!)
    const api = {
      ...{ source: 'PostHog', secrets: [personalKey], method: 'POST' as const },
      url: new URL(`api/projects/${project}/query/`, host),
      headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
    }
    return {
      name: `posthog-${project}`,
      async fetchWindow({ from: day }, tools) {
        const startUs = Date.parse(day) * 1_000
        let cursor: Cursor | null = null
        const pages = readPages(pageRows, async rowsMax => {
          const query = { kind: 'HogQLQuery', query: buildSql(startUs, cursor, rowsMax) }
          const rows = await requestRows({ ...api, body: JSON.stringify({ query }) }, tools)
          if (rows.length === 0) return []
          const next = readCursor(rows.at(-1)!)
          if (next.timeUs === cursor?.timeUs && next.uuid === cursor.uuid)
            throw new BrokenAnswer('the instance returns the same rows again')
          cursor = next
          return rows.map(row => JSON.stringify(row))
        })
        return (await writePageLines(pages, tools)) > 0
      },
    }
  },
}

/** Identifies the last row received. */
interface Cursor {
  /** Microseconds since 1970. */
  readonly timeUs: number
  readonly uuid: string
}

type Row = Record<string, JsonValue>

async function requestRows(request: ApiRequest, tools: PartTools): Promise<Row[]> {
  const answer = await requestApi(request, tools)
  if (answer.fault === null) return readRows(await readPageText(answer), request.secrets)
  const { status, fault } = answer
  const isTooLarge =
    status === 400 ? /too_large|memory|too large/i.test(fault.message) : [413, 500, 504].includes(status)
  const refusal = status === 400 ? new WindowTooLarge(fault.message, true) : fault
  throw isTooLarge ? new PageTooLarge('', { cause: refusal }) : refusal
}

/**
 * Times have an explicit time zone, since HogQL reads a time without a zone in the project's time zone. The condition on
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

function readRows(text: string, secrets: readonly string[]): Row[] {
  const value = parseJsonAnswer(text)
  if (!isJsonObject(value)) throw new BrokenAnswer('the answer is no object')
  const error = getOwnValue(value, 'error')
  if (typeof error === 'string') throw new FetchStop(`The instance says: ${redactSecrets(error, secrets)}`)
  const results = getOwnValue(value, 'results')
  if (Array.isArray(results))
    return results.map(row => {
      if (!Array.isArray(row) || row.length !== columns.length) throw new BrokenAnswer('a row has other columns')
      return Object.fromEntries(columns.map((column, index) => [column, row[index]!]))
    })
  // Instead of rows, a busy instance returns the status of a query that it has deferred.
  if (getOwnValue(value, 'query_status') !== undefined) throw new FetchWait('the instance has deferred the query')
  throw new BrokenAnswer('the answer has no rows')
}

/** @throws BrokenAnswer for a row from which the next page cannot start. */
function readCursor({ timestamp, uuid }: Row): Cursor {
  const timeUs = typeof timestamp === 'string' ? readTime(timestamp, { zone: 'UTC' }, 'timestamp') : null
  if (timeUs === null || typeof uuid !== 'string' || !/^[0-9a-f-]{36}$/i.test(uuid))
    throw new BrokenAnswer('the last row has no valid time or uuid, so the next page cannot be requested')
  return { timeUs, uuid }
}
