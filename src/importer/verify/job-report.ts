// Reads the service's report on the stored events of an import job: `GET /api/projects/:id/import_jobs/:id/report/`.
//
//   {"job": {…}, "rows": n,
//    "counts": [{"day": "2024-05-01", "event": "$pageview", "uuids": n}],     unique stored events by UTC day and name
//    "counts_next": "…/counts/?cursor=…",                             the next page of counts; null or missing if none
//    "id_buckets": [256 numbers],                                     the same by CRC-32 of the distinct id, modulo 256
//    "notes": [{"reason": "…", "count": n, "samples": [{…}]}]}        about links, persons and refused events
//
// Source: docs/wire/import.md §2.10.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { bucketCount } from '#importer/stages/expected/expected-events.ts'
import { JobStopped } from '../job/job-paused.ts'
import { readObjectList, type ServiceApi } from '../send/service-api.ts'

export type JobReport = Awaited<ReturnType<typeof readJobReport>>
export type StoredCount = JobReport['counts'][number]

export async function readJobReport(api: ServiceApi, id: string) {
  const body = await api.call('GET', `/import_jobs/${id}/report/`)
  const buckets = body.id_buckets
  if (!Array.isArray(buckets) || buckets.length !== bucketCount || readJsonNumber(body.rows ?? null) === undefined)
    throw new JobStopped(`${api.address} does not report what it stored of import job ${id} like Pennon`)
  return {
    createdAtMs: isJsonObject(body.job) ? Date.parse(String(getOwnValue(body.job, 'created_at'))) : Number.NaN,
    rows: readJsonNumber(body.rows!)!,
    /** The first page of counts; `readStoredCounts` reads the other pages. */
    counts: readCounts(body, 'counts'),
    countsCursor: extractCursor(body.counts_next),
    idBuckets: buckets.map(each => readJsonNumber(each) ?? 0),
    notes: readObjectList(body, 'notes').map(note => ({
      reason: String(note.reason),
      count: readJsonNumber(note.count ?? null) ?? 0,
      samples: readObjectList(note, 'samples'),
    })),
  }
}

/** All counts of the job, page by page. */
export async function* readStoredCounts(api: ServiceApi, id: string, report: JobReport): AsyncGenerator<StoredCount> {
  yield* report.counts
  for (let cursor = report.countsCursor; cursor !== null; ) {
    const page = await api.call('GET', `/import_jobs/${id}/counts/`, { query: { cursor } })
    yield* readCounts(page, 'results')
    const next = extractCursor(page.next)
    if (next === cursor) throw new JobStopped(`${api.address} repeats a page of the counts of import job ${id}`)
    cursor = next
  }
}

function readCounts(body: JsonObject, key: string) {
  return readObjectList(body, key).map(({ day, event, uuids }) => ({
    day: String(day),
    event: String(event),
    uuids: readJsonNumber(uuids ?? null) ?? 0,
  }))
}

/** Extracts only the cursor, since the host in the address may not be reachable from here. */
function extractCursor(address: JsonValue | undefined): string | null {
  return typeof address === 'string' ? (URL.parse(address)?.searchParams.get('cursor') ?? null) : null
}
