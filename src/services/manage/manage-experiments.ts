// Manages experiments: each describes one flag with variants, which was made for it or existed before. Experiment and
// flag are written in one transaction; results are not computed.
// Source: docs/wire/private-api.md §8; `has_experiment` of docs/wire/evaluation.md 2.3.

import type { Experiment } from '#core/experiments/experiment.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { variantCount } from '#core/flags/definitions/flag-traits.ts'
import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, ownValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ExperimentStore } from '#ports/state/experiment-store.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/state/flag-write.ts'
import {
  type Change,
  changeOf,
  type FlagOwnerDeps,
  findUndeletedFlag,
  type Writer,
  writeWithFlags,
} from './flag-with-owner.ts'
import { type InvalidFlag, prepareNewFlag } from './manage-flags.ts'

export interface ManageExperimentsDeps extends FlagOwnerDeps {
  readonly management: Omit<ExperimentStore, 'listExperiments'> & Pick<FlagStore, 'findFlag' | 'findFlagByKey'>
}

export interface ExperimentFields {
  readonly name?: string
  /** Members of `Experiment.content`; absent members stay. */
  readonly content?: JsonObject
  readonly startDateMs?: number | null
  readonly endDateMs?: number | null
  readonly archived?: boolean
}

export type ExperimentRefusal =
  | 'not_found'
  /** The flag with that key has fewer than two variants. */
  | 'flag_without_variants'
  /** The experiment would start with a flag that is archived, so inactive. */
  | 'flag_archived'
  /** The flag was not made for the experiment, and the key may not write flags. */
  | 'flag_not_writable'
  | FlagWriteRefusal
  | InvalidFlag

/**
 * Uses the flag with this key. If there is none, makes one with the variants of `parameters.feature_flag_variants`, or
 * with `control` and `test` at 50 % each, on for everyone and active once the experiment has started.
 */
export function createExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  input: ExperimentFields & { readonly name: string; readonly flagKey: string },
  { by, mayWriteFlags }: Writer,
): Promise<Result<Experiment, ExperimentRefusal>> {
  const { flagKey, ...fields } = input
  return writeWithFlags<Experiment, ExperimentRefusal>(deps, by, async change => {
    const experiment = {
      ...{ content: {}, startDateMs: null, endDateMs: null, archived: false },
      ...fields,
      ...{ projectId, createdAtMs: change.nowMs, createdBy: by },
    }
    const taken = await deps.management.findFlagByKey(projectId, flagKey)
    if (taken !== null && !mayWriteFlags) return err('flag_not_writable')
    const flag = taken === null ? newFlagFor(flagKey, experiment, change) : takenFlag(taken, experiment, change)
    if (!flag.ok) return flag
    return deps.management.createExperiment(experiment, flag.value)
  })
}

/** The first start of an experiment switches its flag on. */
export function updateExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  id: number,
  fields: ExperimentFields,
  { by, mayWriteFlags }: Writer,
): Promise<Result<Experiment, ExperimentRefusal>> {
  const { content, ...others } = fields
  return writeWithFlags<Experiment, ExperimentRefusal>(deps, by, async change => {
    const current = await deps.management.findExperiment(projectId, id)
    if (current === null) return err('not_found')
    const starts = current.startDateMs === null && typeof fields.startDateMs === 'number'
    const flag = starts ? await findUndeletedFlag(deps.management, projectId, current.flagId) : null
    if (flag?.archived === true) return err('flag_archived')
    const flagWrite = flag === null || flag.active ? null : changeOf(flag, { active: true }, change)
    if (flagWrite !== null && !current.flagIsOwn && !mayWriteFlags) return err('flag_not_writable')
    const patch = {
      ...others,
      ...(content && { content: mergeObjects(current.content, content) }),
      updatedAtMs: change.nowMs,
    }
    return deps.management.updateExperiment(projectId, id, patch, flagWrite, current)
  })
}

/** The flag stays, but loses its experiment mark when no other experiment uses it. */
export function deleteExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  id: number,
  by: string,
): Promise<Result<null, ExperimentRefusal>> {
  return writeWithFlags<null, ExperimentRefusal>(deps, by, ({ nowMs }) =>
    deps.management.deleteExperiment(projectId, id, { nowMs, changedBy: by }),
  )
}

type NewExperimentFields = Required<Pick<ExperimentFields, 'name' | 'content' | 'startDateMs'>> & {
  readonly projectId: number
}

function newFlagFor(
  key: string,
  { projectId, name, content, startDateMs }: NewExperimentFields,
  { by, nowMs }: Change,
): Result<FlagWrite, InvalidFlag> {
  const parameters = ownValue(content, 'parameters')
  const asked = isJsonObject(parameters) ? ownValue(parameters, 'feature_flag_variants') : undefined
  const variants: JsonValue = Array.isArray(asked) && asked.length > 0 ? asked : evenVariants()
  const filters: JsonObject = { groups: [{ properties: [], rollout_percentage: 100 }], multivariate: { variants } }
  const fields = { key, name: `Feature flag for experiment ${name}`, filters, active: startDateMs !== null }
  const prepared = prepareNewFlag(projectId, fields, { skipValidation: false, by }, nowMs)
  if (!prepared.ok) return prepared
  return variantCount(filters) < 2
    ? err({ kind: 'invalid', issues: [tooFewVariants] })
    : ok({ kind: 'create', flag: prepared.value.flag, hasExperiment: true })
}

const tooFewVariants = {
  path: 'parameters.feature_flag_variants',
  code: 'invalid_input',
  message: 'An experiment needs at least two variants.',
} as const

function evenVariants(): JsonValue {
  return [
    { key: 'control', rollout_percentage: 50 },
    { key: 'test', rollout_percentage: 50 },
  ]
}

function takenFlag(
  flag: Flag,
  { startDateMs }: NewExperimentFields,
  change: Change,
): Result<FlagWrite, 'flag_without_variants' | 'flag_archived'> {
  if (variantCount(flag.filters) < 2) return err('flag_without_variants')
  if (flag.archived && startDateMs !== null) return err('flag_archived')
  const active = startDateMs !== null ? { active: true } : {}
  return ok(changeOf(flag, { ...active, hasExperiment: true }, change))
}
