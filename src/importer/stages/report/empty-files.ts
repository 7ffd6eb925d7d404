// Finds files that have bytes but no records, often because they have another format than their names suggest.

import { formatCount } from '#core/format-count.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import type { Warning } from './rehearsal-report.ts'

const shownMax = 5

/** @returns a single warning for all such files. Blank lines count as records, so files of blank lines are not included. */
export function warnOfFilesWithoutRecords({ raw, objects }: Manifest): readonly Warning[] {
  // For a file in an archive, the name of the archive comes first.
  const given = new Set(objects.flatMap(({ object }) => [object, ...listEnclosingFiles(object)]))
  const names = raw.filter(({ object, bytes }) => bytes > 0 && !given.has(object)).map(({ object }) => object)
  if (names.length === 0) return []
  const more = names.length > shownMax ? `, and ${formatCount(names.length - shownMax, 'more file')}` : ''
  const text = `${names.slice(0, shownMax).join(', ')}${more} ${names.length === 1 ? 'holds' : 'hold'} no records.`
  return [{ code: 'no_record_in_file', text }]
}

function listEnclosingFiles(object: string): readonly string[] {
  return object.split('!').map((_, index, parts) => parts.slice(0, index + 1).join('!'))
}
