// Finds out how many rows are missing because persons were erased while the import waited to be published.

import { isJsonObject, numberOf, ownValue } from '#core/json.ts'
import { rowsErased } from '#importer/stages/report/note-messages.ts'
import { allowRefusal, readObjectList, type ServiceApi } from '../send/job-api.ts'
import type { JobReport } from './job-report.ts'

const pageSize = 1_000

/**
 * The service counts such rows per erasure, over all pending jobs, so at most the missing rows are attributed to this job.
 * @returns the note about rows removed with persons since the job was created; empty if no row is missing, or if the key may
 *   not see persons.
 */
export async function readErasedNotes(
  missing: number,
  { createdAtMs }: Pick<JobReport, 'createdAtMs'>,
  api: Pick<ServiceApi, 'call'>,
): Promise<JobReport['notes']> {
  if (missing <= 0) return []
  const removed = new Map<string, number>()
  for (let offset = 0; ; offset += pageSize) {
    const query = { limit: String(pageSize), offset: String(offset) }
    const body = await allowRefusal(api.call('GET', '/persons/deletion_status/', { query }), [403])
    if (typeof body === 'number') return []
    // Newest first.
    const since = readObjectList(body, 'results').filter(
      ({ created_at }) => Date.parse(String(created_at)) >= createdAtMs,
    )
    for (const { erasure } of since) {
      if (!isJsonObject(erasure)) continue
      const counts = ownValue(erasure, 'removed') ?? null
      const events = isJsonObject(counts) ? numberOf(ownValue(counts, 'pending_events') ?? null) : undefined
      removed.set(String(ownValue(erasure, 'id')), events ?? 0)
    }
    if (since.length < pageSize) break
  }
  const count = Math.min(
    missing,
    removed.values().reduce((sum, events) => sum + events, 0),
  )
  return count === 0 ? [] : [{ reason: rowsErased, count, samples: [] }]
}
