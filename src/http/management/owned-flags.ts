// What features, surveys and experiments answer about the flags that they have, and about writes of them that were refused.

import type { Flag } from '#core/flags/flag.ts'
import type { FlagStore } from '#ports/management-store.ts'
import type { InvalidFlag } from '#services/manage-flags.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'

/** Deleted ones too; null for none. */
export async function flagById(
  management: Pick<FlagStore, 'findFlag'>,
  projectId: number,
  id: number | null,
): Promise<Flag | null> {
  if (id === null) return null
  const flag = await management.findFlag(projectId, String(id))
  return flag?.id === id ? flag : null
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
