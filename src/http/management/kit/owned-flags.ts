// What features, surveys and experiments answer about the flags that they have, and about writes of them that were refused;
// and what the key of a request may do with flags that were not made for them.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagStore, PersonalKey } from '#ports/management-store.ts'
import type { Writer } from '#services/manage/flag-with-owner.ts'
import type { InvalidFlag } from '#services/manage/manage-flags.ts'
import { encodeLinkedFlag, type LinkedFlagJson } from '#wire/management/linked-flag.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { holdsScope, missingScope } from './authenticate.ts'

/**
 * Flags by their id, deleted ones too, in one call for all of them: a page of surveys names thousands, and as many calls
 * would crowd out those of others. Only a key that may read flags is shown their conditions.
 */
export async function linkedFlagsById(
  management: Pick<FlagStore, 'listFlagsById'>,
  caller: PersonalKey,
  projectId: number,
  ids: readonly (number | null)[],
): Promise<(id: number | null) => LinkedFlagJson | null> {
  const wanted = [...new Set(ids)].filter(id => id !== null)
  const flags = wanted.length === 0 ? [] : await management.listFlagsById(projectId, wanted)
  const flagOfId = new Map<number, Flag>(flags.map(flag => [flag.id, flag]))
  const showsFilters = holdsScope(caller, 'feature_flag:read')
  return id => encodeLinkedFlag(id === null ? null : (flagOfId.get(id) ?? null), showsFilters)
}

export function writerOf(caller: PersonalKey): Writer {
  return {
    by: caller.label,
    mayReadFlags: holdsScope(caller, 'feature_flag:read'),
    mayWriteFlags: holdsScope(caller, 'feature_flag:write'),
  }
}

export const flagNotWritable = missingScope(
  'feature_flag:write',
  'It is asked for where a flag changes that others made.',
)
export const flagNotReadable = missingScope('feature_flag:read', 'It is asked for where a survey is linked to a flag.')

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
