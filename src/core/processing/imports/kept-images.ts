// Images for jobs that had none of a subject, because all that they wrote was beneath an import that is undone: by these,
// undoing such a job takes its values away again.

import type { ImageOf, SubjectImage } from '#core/imports/import-changes.ts'
import { type Outranked, sidesOf, versionOfMade } from './outranked.ts'
import type { Found } from './undo-batch.ts'

/**
 * Keeps an image for each of the published jobs that had none. It has nothing but the keys that the undone import wrote, and
 * a version that no subject has.
 * @param undone the image of the import that is undone.
 * @param outranked what imports wrote beneath it.
 * @param nowFor what the subject is now, as an image of the job names it.
 */
export function keepImages<Kind extends 'person' | 'group'>(
  found: Found,
  undone: ImageOf<Kind>,
  outranked: readonly Outranked[],
  nowFor: (importJobId: number) => NonNullable<ImageOf<Kind>['after']>,
): void {
  const { before, after, kind } = undone
  if (after === null) return
  for (const { importJobId } of outranked) {
    if (!found.laterJobIds.includes(importJobId)) continue
    const now = nowFor(importJobId)
    // A person may have been merged into another one since.
    const subject = 'uuid' in now ? now.uuid : undone.subject
    if ([undone.subject, subject].some(name => found.imageOfJob(importJobId, kind, name) !== undefined)) continue
    const sides = sidesOf(importJobId, { before, after }, outranked, found.laterJobIds)
    if (sides === null) continue
    const [was, became] = [sides.before, sides.after].map(({ properties, marks }) => ({
      ...{ ...now, properties, marks, version: versionOfMade },
    }))
    found.rewrite({ ...undone, importJobId, subject, before: was!, after: became! } as SubjectImage)
  }
}
