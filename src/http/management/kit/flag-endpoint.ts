// Endpoints of one flag: they are called with it, and what a write of it answers. The endpoints themselves are in
// `feature-flags.ts` and `flag-versions.ts`.

import type { Static, TSchema } from 'typebox'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { Result } from '#core/result.ts'
import type { PersonalKey } from '#ports/management-store.ts'
import type { FlagRefusal, WrittenFlag } from '#services/manage/manage-flags.ts'
import { encodeFlag, type FlagJson } from '#wire/management/management.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, answer, missing, notFoundHere, refusal } from './answers.ts'
import { holdsScope } from './authenticate.ts'
import { refuseInvalid, refuseStale } from './definition-refusals.ts'
import type { ManagementDeps } from './deps.ts'
import { type ManagementRoute, type ProjectCall, type ProjectEndpoint, projectRoutes } from './endpoint.ts'
import type { QuerySpec } from './query-params.ts'

export interface FlagCall<Q extends QuerySpec, B> extends ProjectCall<Q, B> {
  readonly flag: Flag
}

export interface FlagEndpoint<Q extends QuerySpec, S extends TSchema>
  extends Omit<ProjectEndpoint<Q, S>, 'prefixes' | 'handle'> {
  /** Below the flag: `/versions`, '' for the flag itself. */
  readonly path: string
  readonly handle: (call: FlagCall<Q, Static<S>>) => Promise<Answer>
}

/** Called with the flag of the project that `:flagId` names, an id or a key; 404 when there is none. */
export function flagRoutes<Q extends QuerySpec, S extends TSchema>(
  deps: ManagementDeps,
  endpoint: FlagEndpoint<Q, S>,
): ManagementRoute[] {
  return projectRoutes<Q, S>(deps, {
    ...endpoint,
    path: `/feature_flags/:flagId${endpoint.path}`,
    handle: async call => {
      const flag = await deps.management.findFlag(call.project.id, call.params.flagId!)
      return flag === null ? refusal(noSuchFlag) : endpoint.handle({ ...call, flag })
    },
  })
}

const noSuchFlag = missing('There is no flag with this id or key here. A deleted flag is found by its id.')

/** Flags of one project, with what they belong to: features as far as the key may read them. */
export async function encodeFlags(
  { management }: Pick<ManagementDeps, 'management'>,
  caller: PersonalKey,
  flags: readonly Flag[],
): Promise<FlagJson[]> {
  const ids = flags.map(flag => flag.id)
  const found = flags.length === 0 ? [] : await management.listFlagOwners(flags[0]!.projectId, ids)
  const showsFeatures = holdsScope(caller, 'early_access_feature:read')
  const shown = showsFeatures ? found : found.map(owners => ({ ...owners, features: [] }))
  const ownersOf = new Map(shown.map(owners => [owners.flagId, owners]))
  return flags.map(flag => encodeFlag(flag, ownersOf.get(flag.id)))
}

/** The flag as it is after a write, with what validation would have refused when it was skipped; or the refusal. */
export async function answerFlagWrite(
  deps: Pick<ManagementDeps, 'management'>,
  caller: PersonalKey,
  status: number,
  written: Result<WrittenFlag, FlagRefusal>,
  options: { withWarnings: boolean },
): Promise<Answer> {
  if (!written.ok) return refuseFlag(written.error)
  const [flag] = await encodeFlags(deps, caller, [written.value.flag])
  if (!options.withWarnings) return answer(status, flag)
  const warnings = written.value.warnings.map(({ path, code, message }) => ({ attr: path, code, detail: message }))
  return answer(status, { ...flag, warnings })
}

/** Source: ours; `attr` is the path of the first mistake, and its sentence is `detail`. */
export function refuseFlag(error: FlagRefusal): Answer {
  switch (error.kind) {
    case 'not_found':
      return refusal(notFoundHere)
    case 'key_taken':
      return refusal(wireError(400, 'unique', 'There is already a feature flag with this key.', 'key'))
    case 'invalid':
      return refuseInvalid(error.issues)
    case 'stale_version':
      return refuseStale('flag', error)
    default:
      return error satisfies never
  }
}
