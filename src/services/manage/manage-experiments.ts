// Experiments: a flag with variants, made or taken, and what is said about it. Experiment and flag are written in one
// transaction; results are not computed. Source: docs/wire/private-api.md §8; `has_experiment` of docs/wire/evaluation.md 2.3.

import type { Experiment } from '#core/experiments/experiment.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, ownValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { ExperimentStore } from '#ports/experiment-store.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/flag-write.ts'
import type { FlagStore } from '#ports/management-store.ts'
import { type Change, changeOf, findLivingFlag, retryingFlagWrite, type Writer } from './flag-with-owner.ts'
import { type InvalidFlag, prepareNewFlag } from './manage-flags.ts'

export interface ManageExperimentsDeps {
  readonly management: ExperimentStore & FlagStore
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly clock: Clock
}

export interface ExperimentFields {
  readonly name?: string
  /** Members of `Experiment.content`; those that are not named stay. */
  readonly content?: JsonObject
  readonly startDateMs?: number | null
  readonly endDateMs?: number | null
  readonly archived?: boolean
}

export type ExperimentRefusal =
  | 'not_found'
  /** The flag of that key has fewer than two variants. */
  | 'flag_without_variants'
  /** The flag is not its own, and the key may not write flags. */
  | 'flag_not_writable'
  | FlagWriteRefusal
  | InvalidFlag

/**
 * Takes the flag of this key; where there is none, makes one with the variants of `parameters.feature_flag_variants`, or
 * with `control` and `test` at 50 % each, on for everyone and active once the experiment has started.
 */
export function createExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  input: ExperimentFields & { readonly name: string; readonly flagKey: string },
  { by, mayWriteFlags }: Writer,
): Promise<Result<Experiment, ExperimentRefusal>> {
  const { flagKey, ...fields } = input
  return retryingFlagWrite<Experiment, ExperimentRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    const experiment = {
      ...{ content: {}, startDateMs: null, endDateMs: null, archived: false },
      ...fields,
      ...{ projectId, createdAtMs: change.nowMs, createdBy: by },
    }
    const taken = await deps.management.findFlagByKey(projectId, flagKey)
    if (taken !== null && !mayWriteFlags) return err('flag_not_writable')
    const flag = taken === null ? newFlagFor(flagKey, experiment, change) : takenFlag(taken, experiment, change)
    if (!flag.ok) return flag
    const written = await deps.management.createExperiment(experiment, flag.value)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
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
  return retryingFlagWrite<Experiment, ExperimentRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    const current = await deps.management.findExperiment(projectId, id)
    if (current === null) return err('not_found')
    const starts = current.startDateMs === null && typeof fields.startDateMs === 'number'
    const flag = starts ? await findLivingFlag(deps.management, projectId, current.flagId) : null
    const flagWrite = flag === null || flag.active ? null : changeOf(flag, { active: true }, change)
    if (flagWrite !== null && !current.flagIsOwn && !mayWriteFlags) return err('flag_not_writable')
    const patch = {
      ...others,
      ...(content && { content: mergeObjects(current.content, content) }),
      updatedAtMs: change.nowMs,
    }
    const written = await deps.management.updateExperiment(projectId, id, patch, flagWrite, current)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
  })
}

/** The flag stays, without the mark when no other experiment has it. */
export function deleteExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  id: number,
  by: string,
): Promise<Result<null, ExperimentRefusal>> {
  return retryingFlagWrite<null, ExperimentRefusal>(async () => {
    const change = { nowMs: deps.clock.nowMs(), changedBy: by }
    const written = await deps.management.deleteExperiment(projectId, id, change)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(null)
  })
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
): Result<FlagWrite, 'flag_without_variants'> {
  if (variantCount(flag.filters) < 2) return err('flag_without_variants')
  const active = startDateMs !== null ? { active: true } : {}
  return ok(changeOf(flag, { ...active, hasExperiment: true }, change))
}

function variantCount(filters: JsonObject): number {
  const multivariate = ownValue(filters, 'multivariate')
  const variants = isJsonObject(multivariate) ? ownValue(multivariate, 'variants') : undefined
  return Array.isArray(variants) ? variants.length : 0
}
