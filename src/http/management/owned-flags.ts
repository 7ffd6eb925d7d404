// What features, surveys and experiments answer about the flags that they have, and about writes of them that were refused.

import type { Flag } from '#core/flags/flag.ts'
import type { FlagStore } from '#ports/management-store.ts'
import type { InvalidFlag } from '#services/manage-flags.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'

/**
 * Flags by their id, deleted ones too, in one call however many: a page of surveys names thousands, and each call of its own
 * would take the place of somebody else's.
 */
export async function flagsById(
  management: Pick<FlagStore, 'listFlagsById'>,
  projectId: number,
  ids: readonly (number | null)[],
): Promise<(id: number | null) => Flag | null> {
  const wanted = [...new Set(ids)].filter(id => id !== null)
  const flags = wanted.length === 0 ? [] : await management.listFlagsById(projectId, wanted)
  const flagOfId = new Map(flags.map(flag => [flag.id, flag]))
  return id => (id === null ? null : (flagOfId.get(id) ?? null))
}

/** @param attrOf what the body calls the field of a flag at this path (`key`, `filters.groups.0.…`). */
export function invalidFlagError(error: InvalidFlag, attrOf: (path: string) => string): WireError {
  const { code, message, path } = error.issues[0]!
  return wireError(400, code, message, attrOf(path))
}

export const flagKeepsChanging = wireError(
  409,
  'conflict',
  'This, or its flag, was changed by somebody else at the same moment. Try again.',
)
