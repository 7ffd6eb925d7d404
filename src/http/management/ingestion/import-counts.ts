// Counts of an import job in pages: ten thousand event names over ten years are too many for one answer.

import Type from 'typebox'
import type { DescribedImportJob } from '#core/imports/import-job.ts'
import type { DayAndEvent, ImportedCount } from '#core/imports/imported-counts.ts'
import { err, ok } from '#core/result.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import { invalid } from '../kit/answers.ts'
import { optionalParam, type QueryParam } from '../kit/query-params.ts'

/** Each page reads all stored rows from its first day on, so pages are larger than in other lists. */
const countsPerPageMax = 10_000
/** Names are chosen by clients, up to 200 characters each. */
const pageBytesMax = 1024 * 1024

/** @returns the counts after the cursor, and the cursor of the next page; null on the last page. */
export async function findCountsPage(
  events: Pick<ImportedRows, 'listImportedCounts'>,
  { job, cursor }: { readonly job: DescribedImportJob; readonly cursor: DayAndEvent | null },
  signal: AbortSignal,
): Promise<{ readonly counts: readonly ImportedCount[]; readonly cursor: string | null }> {
  const asked = { projectId: job.projectId, importJobId: job.id, after: cursor, limit: countsPerPageMax + 1 }
  const found = await events.listImportedCounts(asked, signal)
  const counts = found.slice(0, countFitting(found))
  const last = counts.at(-1)
  return { counts, cursor: last === undefined || counts.length === found.length ? null : `${last.day}_${last.event}` }
}

function countFitting(counts: readonly ImportedCount[]): number {
  let bytes = 0
  const over = counts.findIndex((count, index) => {
    bytes += Buffer.byteLength(JSON.stringify(count))
    return index >= countsPerPageMax || (bytes > pageBytesMax && index > 0)
  })
  return over === -1 ? counts.length : over
}

export function countsCursorParam(): QueryParam<DayAndEvent | undefined> {
  return optionalParam(
    Type.String({ description: 'Position after the previous page; part of `next`.' }),
    (text, name) => {
      const match = /^(\d{4}-\d\d-\d\d)_(.+)$/s.exec(text)
      if (match === null || Number.isNaN(Date.parse(match[1]!)))
        return err(invalid(name, 'Not a cursor: use the URL in `next` unchanged.'))
      return ok({ day: match[1]!, event: match[2]! })
    },
  )
}
