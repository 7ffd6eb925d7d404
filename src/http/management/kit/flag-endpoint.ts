// What the endpoints of one flag share: each is called with the flag, and all of them answer a write the same way. The
// endpoints themselves are in `feature-flags.ts` and `flag-versions.ts`.

import type { TSchema } from 'typebox'
import { type Flag, projectFlagsBytesMax } from '#core/flags/definitions/flag.ts'
import type { Result } from '#core/result.ts'
import type { FlagRefusal, WrittenFlag } from '#services/manage/manage-flags.ts'
import type { FlagDependent } from '#services/manage/retire-flags.ts'
import type { BulkErrorJson } from '#wire/management/flags/bulk-flags.ts'
import { encodeFlagWithStatus, type FlagJson } from '#wire/management/flags/flags.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, answer, createNotFoundError, notFoundHere, refusal } from './answers.ts'
import { type Caller, hasScope } from './authenticate.ts'
import { refuseInvalidDefinition, refuseStaleVersion } from './definition-refusals.ts'
import type { ManagementDeps } from './deps.ts'
import { type ItemEndpoint, itemRoutes, type ManagementRoute } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

/** Routes called with the flag that `:flagId` names by id or key; 404 when the project has no such flag. */
export function flagRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: ItemEndpoint<Flag, Q, S>,
): ManagementRoute[] {
  const find = (projectId: number, id: string) => deps.management.findFlag(projectId, id)
  return itemRoutes(deps, { param: 'flagId', find, missing: noSuchFlag }, endpoint)
}

const noSuchFlag = createNotFoundError(
  'The project has no flag with this id or key. Deleted flags are found by id only.',
)

/** Flags of one project with their owners, calls and status; early access features only if the key may read them. */
export async function encodeFlags(
  { management, clock }: ManagementDeps,
  caller: Caller,
  flags: readonly Flag[],
): Promise<FlagJson[]> {
  if (flags.length === 0) return []
  const { projectId } = flags[0]!
  const ids = flags.map(flag => flag.id)
  const found = await management.listFlagOwners(projectId, ids)
  const showsFeatures = hasScope(caller, 'early_access_feature:read')
  const shown = showsFeatures ? found : found.map(owners => ({ ...owners, features: [] }))
  const ownersOf = new Map(shown.map(owners => [owners.flagId, owners]))
  const calls = await management.listLastCalls(projectId, ids)
  const callOf = new Map(calls.map(({ flagId, calledAtMs }) => [flagId, calledAtMs]))
  const nowMs = clock.nowMs()
  return flags.map(flag => encodeFlagWithStatus(flag, ownersOf.get(flag.id), callOf.get(flag.id) ?? null, nowMs))
}

/**
 * Answers with the refusal, or with the flag after a write and, when validation was skipped, the issues that it would
 * have refused.
 */
export async function answerFlagWrite(
  deps: ManagementDeps,
  caller: Caller,
  status: number,
  written: Result<WrittenFlag, FlagRefusal>,
  options: { withWarnings: boolean },
): Promise<Answer> {
  if (!written.ok) return createFlagRefusalAnswer(written.error)
  const [flag] = await encodeFlags(deps, caller, [written.value.flag])
  if (!options.withWarnings) return answer(status, flag)
  const warnings = written.value.warnings.map(({ path, code, message }) => ({ attr: path, code, detail: message }))
  return answer(status, { ...flag, warnings })
}

export const keyTaken = wireError(400, 'unique', 'A feature flag with this key already exists.', 'key')

export const flagsTooLarge = wireError(
  400,
  'flags_too_large',
  `The flags of a project may have at most ${projectFlagsBytesMax / 2 ** 20} MiB together. Make payloads smaller, or delete flags.`,
)

/** Source: ours; `attr` is the path of the first mistake and `detail` its message. */
export function createFlagRefusalAnswer(error: FlagRefusal): Answer {
  switch (error.kind) {
    case 'not_found':
      return refusal(notFoundHere)
    case 'key_taken':
      return refusal(keyTaken)
    case 'flags_too_large':
      return refusal(flagsTooLarge)
    case 'invalid':
      return refuseInvalidDefinition(error.issues)
    case 'stale_version':
      return refuseStaleVersion('flag', error)
    default:
      return error satisfies never
  }
}

/** The most users of a flag that the message names; `used_by` lists all. */
const namedMax = 5

/** Names only users of the flag that the key may read. */
export function encodeFlagInUseReason(
  by: readonly FlagDependent[],
  how: string,
  caller: Caller,
): Pick<BulkErrorJson, 'reason' | 'used_by'> {
  const users = by.map(user => ({ ...user, name: mayRead(user, caller) ? user.name : null }))
  const named = users.slice(0, namedMax).map(({ kind, id, name }) => {
    const what = kind.replaceAll('_', ' ').replace('feature flag', 'flag')
    return `${what} ${name === null ? '' : `"${name}" `}(${id})`
  })
  const more = users.length > namedMax ? [`${users.length - namedMax} more`] : []
  return {
    reason: `The flag is in use, so it was not ${how}d: ${[...named, ...more].join(', ')}.`,
    used_by: users.map(({ kind, id, name }) => ({ type: kind, id, name })),
  }
}

function mayRead({ kind }: FlagDependent, caller: Caller): boolean {
  return hasScope(caller, `${kind}:read`)
}
