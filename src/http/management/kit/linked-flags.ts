// How features, surveys and experiments show their flags and refuse writes of them, and what a request's key may do
// with flags that were not created for them.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagStore, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { WriterAccess } from '#services/manage/flag-with-owner.ts'
import type { InvalidFlag } from '#services/manage/manage-flags.ts'
import { encodeLinkedFlag, type LinkedFlagJson } from '#wire/management/linked-flag.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Caller, createMissingScopeError, hasScope } from './authenticate.ts'
import type { Call } from './endpoint.ts'
import { flagsTooLarge } from './flag-endpoint.ts'
import type { QuerySpec } from './query-params.ts'

/**
 * Finds flags by id, including deleted ones. One call reads all of them: a page of surveys names thousands, and separate
 * calls would crowd out other requests. Their conditions are shown only to a key that may read flags.
 */
export async function loadLinkedFlags(
  management: Pick<FlagStore, 'listFlagsById'>,
  caller: Caller,
  projectId: number,
  ids: readonly (number | null)[],
): Promise<(id: number | null) => LinkedFlagJson | null> {
  const wanted = [...new Set(ids)].filter(id => id !== null)
  const flags = wanted.length === 0 ? [] : await management.listFlagsById(projectId, wanted)
  const flagOfId = new Map<number, Flag>(flags.map(flag => [flag.id, flag]))
  const showsFilters = hasScope(caller, 'feature_flag:read')
  return id => encodeLinkedFlag(id === null ? null : (flagOfId.get(id) ?? null), showsFilters)
}

export function toWriter({ caller, change }: Pick<Call<QuerySpec, unknown>, 'caller' | 'change'>): WriterAccess {
  return {
    change,
    mayReadFlags: hasScope(caller, 'feature_flag:read'),
    mayWriteFlags: hasScope(caller, 'feature_flag:write'),
  }
}

export const flagNotWritable = createMissingScopeError(
  'feature_flag:write',
  'It is required to change a flag that was created elsewhere.',
)
export const flagNotReadable = createMissingScopeError(
  'feature_flag:read',
  'It is required to link a survey to a flag.',
)

/**
 * @param errors the errors for refusals that only this kind of owner has. @param attrOf returns the body's name for the
 * flag field at a path (`key`, `filters.groups.0.…`).
 */
export function toFlagOwnerError<E extends string>(
  refused: E | FlagWriteRefusal | InvalidFlag,
  errors: Readonly<Record<Exclude<E, FlagWriteRefusal>, WireError>>,
  attrOf: (path: string) => string,
): WireError {
  if (typeof refused === 'object') {
    const { code, message, path } = refused.issues[0]!
    return wireError(400, code, message, attrOf(path))
  }
  if (refused === 'flags_too_large') return flagsTooLarge
  return (errors as Readonly<Record<string, WireError>>)[refused] ?? flagKeepsChanging
}

const flagKeepsChanging = wireError(
  409,
  'conflict',
  'This object, or its flag, was changed by another request. Try again.',
)
