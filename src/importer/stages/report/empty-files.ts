// Files that were named and gave nothing, though they have bytes: often of another format than they look like.

import { formatCount } from '#core/format-count.ts'
import type { Manifest } from '#importer/job/manifest.ts'
import type { Warning } from './rehearsal-report.ts'

const shownMax = 5

/** @returns one warning however many there are. Lines that hold nothing count as records, so such a file is none. */
export function filesWithoutRecords({ raw, objects }: Manifest): readonly Warning[] {
  // Names inside of archives follow after the name of the file.
  const given = new Set(objects.flatMap(({ object }) => [object, ...beforeMarks(object)]))
  const names = raw.filter(({ object, bytes }) => bytes > 0 && !given.has(object)).map(({ object }) => object)
  if (names.length === 0) return []
  const more = names.length > shownMax ? `, and ${formatCount(names.length - shownMax, 'more file')}` : ''
  const text = `${names.slice(0, shownMax).join(', ')}${more} ${names.length === 1 ? 'holds' : 'hold'} no record.`
  return [{ code: 'no_record_in_file', text }]
}

function beforeMarks(object: string): readonly string[] {
  return object.split('!').map((_, index, parts) => parts.slice(0, index + 1).join('!'))
}
