// Finds the distinct ids that are linked by events other than those of an undone import.

import type { OtherUse } from '#core/imports/other-use.ts'
import { isIllegalDistinctId } from '#core/processing/person-merge.ts'

/** Whether the event may link its ids. */
export function isLink({ distinctId, otherId }: OtherUse): boolean {
  return otherId !== null && otherId !== distinctId && ![distinctId, otherId].some(isIllegalDistinctId)
}

/** The distinct ids that live events linked with each other after an import was published. */
export function idsOfLiveLinks(uses: readonly OtherUse[]): ReadonlySet<string> {
  return new Set(
    uses.flatMap(({ importJobId, isLater, distinctId, otherId }) =>
      importJobId === 0 && isLater && otherId !== null ? [distinctId, otherId] : [],
    ),
  )
}
