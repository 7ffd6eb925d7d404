// Manages experiments: each describes one flag with variants, which was made for it or existed before. Experiment and
// flag are written in one transaction; results are not computed.
// Source: docs/wire/private-api.md §8; `has_experiment` of docs/wire/evaluation.md 2.3.

import type { Change } from '#core/author.ts'
import { redactEncryptedPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import { countVariants } from '#core/flags/definitions/flag-traits.ts'
import { listUsersOfExperiment } from '#core/flags/definitions/validate-references.ts'
import { type JsonObject, type JsonValue, mergeObjects } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { Experiment } from '#core/resources/experiment.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagStore, FlagWrite, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { ResourceStore } from '#ports/state/resource-store.ts'
import type { ReferenceReader } from './find-reference-issues.ts'
import {
  addReferenceCheck,
  type FlagOwnerDeps,
  findFlagById,
  prepareCheckedChange,
  prepareCheckedNewFlag,
  toFlagChange,
  type WriterAccess,
  writeDefinitionWithFlags,
} from './flag-with-owner.ts'
import type { InvalidFlag } from './manage-flags.ts'

export interface ManageExperimentsDeps extends FlagOwnerDeps {
  readonly management: Omit<ResourceStore, 'listResources'> &
    Pick<FlagStore, 'findFlag' | 'findFlagByKey'> &
    ReferenceReader
}

/** Members of `content` that are absent stay unchanged. */
export type ExperimentFields = Partial<Experiment> & {
  readonly flagConfig?: FlagConfig
  /** Switches the flag on or off; an experiment that runs is paused while it is off. */
  readonly flagActive?: boolean
}

/** The flag's settings in a request that creates or updates an experiment. */
export interface FlagConfig {
  /** Members of the flag's filters; absent members stay unchanged. */
  readonly filters?: JsonObject
  readonly ensureExperienceContinuity?: boolean
  /** A running experiment's flag changes only if the caller explicitly allows it. */
  readonly mayChangeRunning: boolean
}

export type ExperimentRefusal =
  | 'not_found'
  /** The flag with that key has fewer than two variants. */
  | 'flag_without_variants'
  /** The flag would be active before its experiment starts. */
  | 'flag_not_started'
  /** The experiment would start with a flag that is archived, so inactive. */
  | 'flag_archived'
  /** The flag existed before, and the body configures it. */
  | 'flag_taken_with_config'
  /** The flag of a running experiment would change, and the body does not allow that. */
  | 'flag_of_running'
  /** The flag was not made for the experiment, and the key may not write flags. */
  | 'flag_not_writable'
  /** Rules of these flags, formatted for messages, belong to the experiment. */
  | { readonly kind: 'in_rules'; readonly of: readonly string[] }
  | FlagWriteRefusal
  | InvalidFlag

/**
 * Uses the flag with the given key unchanged. If no flag has the key, creates one from `flagConfig`, on for everyone, with
 * the variants `control` and `test` at 50 % each unless `flagConfig` names others. The flag becomes active when the
 * experiment has a start, unless `flagActive` is false.
 */
export function createExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  input: ExperimentFields & { readonly name: string; readonly flagKey: string },
  { change, mayWriteFlags }: WriterAccess,
): Promise<Result<Experiment, ExperimentRefusal>> {
  const { flagKey, flagConfig, flagActive, ...fields } = input
  const switchesOn = typeof fields.startDateMs === 'number' && flagActive !== false
  return writeDefinitionWithFlags<Experiment, ExperimentRefusal>(deps, async () => {
    const experiment = { ...fields, projectId }
    const taken = await deps.management.findFlagByKey(projectId, flagKey)
    if (taken !== null && !mayWriteFlags) return err('flag_not_writable')
    if (taken !== null && Object.keys(findConfigChange(taken, flagConfig)).length > 0)
      return err('flag_taken_with_config')
    if (flagActive === true && !switchesOn && taken?.active !== true) return err('flag_not_started')
    const flag =
      taken === null
        ? await prepareNewFlagFor(deps, flagKey, { ...experiment, switchesOn }, flagConfig)
        : prepareExistingFlag(taken, switchesOn)
    if (!flag.ok) return flag
    const relying = await addReferenceCheck(deps.management, projectId, flagKey, flag.value)
    return relying.ok
      ? deps.management.createResource('experiment', experiment, { flagId: relying.value }, change)
      : relying
  })
}

/**
 * The first start of an experiment switches its flag on, and `flagConfig` changes it.
 * @param fieldsOf decides what to write from the stored experiment; called again when another write changed the experiment.
 * The flag that it gets may be deleted, and is null when it does not exist.
 */
export function updateExperiment<E = never>(
  deps: ManageExperimentsDeps,
  projectId: number,
  id: number,
  fieldsOf: (current: Experiment, flag: Flag | null) => Result<ExperimentFields, E>,
  { change, mayWriteFlags }: WriterAccess,
): Promise<Result<Experiment, ExperimentRefusal | E>> {
  return writeDefinitionWithFlags<Experiment, ExperimentRefusal | E>(deps, async () => {
    const current = await deps.management.findResource('experiment', projectId, id)
    if (current === null) return err('not_found')
    const linked = await findFlagById(deps.management, projectId, current.flagId)
    const fields = fieldsOf(current, linked)
    if (!fields.ok) return fields
    const { flagConfig, flagActive, ...patch } = fields.value
    const starts = current.startDateMs === null && typeof patch.startDateMs === 'number'
    const flag = linked?.deleted === true ? null : linked
    const active = flagActive ?? (starts ? true : undefined)
    if (active === true && flag?.archived === true) return err('flag_archived')
    const config = flag === null ? {} : findConfigChange(flag, flagConfig)
    const isRunning = current.startDateMs !== null && current.endDateMs === null
    if (isRunning && Object.keys(config).length > 0 && flagConfig?.mayChangeRunning !== true)
      return err('flag_of_running')
    const fieldsOfFlag = { ...config, ...(active !== undefined && active !== flag?.active && { active }) }
    const isUntouched = flag === null || Object.keys(fieldsOfFlag).length === 0
    if (!isUntouched && !current.flagIsOwn && !mayWriteFlags) return err('flag_not_writable')
    const flagWrite = isUntouched ? ok(null) : await prepareFlagWrite(deps, flag, fieldsOfFlag)
    if (!flagWrite.ok) return flagWrite
    return deps.management.updateResource(
      'experiment',
      projectId,
      id,
      patch,
      { flagId: flagWrite.value },
      change,
      current,
    )
  })
}

/**
 * Keeps the flag, which loses its experiment mark when no other experiment uses it. Refused while rules name the
 * experiment.
 */
export function deleteExperiment(
  deps: ManageExperimentsDeps,
  projectId: number,
  id: number,
  change: Change,
): Promise<Result<null, ExperimentRefusal>> {
  return writeDefinitionWithFlags<null, ExperimentRefusal>(deps, async () => {
    const links = await deps.management.findLinks(projectId)
    const of = listUsersOfExperiment(id, links)
    if (of.length > 0) return err({ kind: 'in_rules', of })
    return deps.management.deleteResource('experiment', projectId, id, {}, change, { linksRevision: links.revision })
  })
}

/**
 * Returns the fields of the flag that the configuration changes, with the redaction marker for encrypted payloads that
 * stay. Returns no fields when the configuration equals what answers already show.
 */
function findConfigChange(flag: Flag, config: FlagConfig | undefined): FlagFields {
  const shown = redactEncryptedPayloads(flag)
  const filters = mergeObjects(shown, config?.filters ?? {})
  const { ensureExperienceContinuity = flag.ensureExperienceContinuity } = config ?? {}
  return {
    ...(!isSameJson(filters, shown) && { filters }),
    ...(ensureExperienceContinuity !== flag.ensureExperienceContinuity && { ensureExperienceContinuity }),
  }
}

/** A flag that only becomes active is not validated: the rest of it was stored before. */
async function prepareFlagWrite(
  deps: ManageExperimentsDeps,
  flag: Flag,
  fields: FlagFields,
): Promise<Result<FlagWrite, InvalidFlag>> {
  if (fields.filters === undefined) return ok(toFlagChange(flag, fields))
  const checked = await prepareCheckedChange(deps, flag, fields)
  if (!checked.ok) return checked
  if (countVariants(fields.filters) < 2) return err({ kind: 'invalid', issues: [tooFewVariants] })
  return addReferenceCheck(deps.management, flag.projectId, flag.key, checked.value)
}

interface NewExperimentFields {
  readonly projectId: number
  readonly name: string
  readonly switchesOn: boolean
}

async function prepareNewFlagFor(
  deps: ManageExperimentsDeps,
  key: string,
  { projectId, name, switchesOn }: NewExperimentFields,
  config: FlagConfig | undefined,
): Promise<Result<FlagWrite, InvalidFlag>> {
  const usual: JsonObject = {
    groups: [{ properties: [], rollout_percentage: 100 }],
    multivariate: { variants: createEvenVariants() },
  }
  const filters = mergeObjects(usual, config?.filters ?? {})
  const { ensureExperienceContinuity } = config ?? {}
  const fields = {
    ...{ key, name: `Feature flag for experiment ${name}`, filters, active: switchesOn },
    ...(ensureExperienceContinuity === undefined ? {} : { ensureExperienceContinuity }),
  }
  const checked = await prepareCheckedNewFlag(deps, projectId, fields)
  if (!checked.ok) return checked
  return countVariants(filters) < 2
    ? err({ kind: 'invalid', issues: [tooFewVariants] })
    : ok({ kind: 'create', flag: checked.value, hasExperiment: true })
}

const tooFewVariants = {
  path: 'filters.multivariate.variants',
  code: 'invalid_input',
  message: 'An experiment needs at least two variants.',
} as const

function createEvenVariants(): JsonValue {
  return [
    { key: 'control', rollout_percentage: 50 },
    { key: 'test', rollout_percentage: 50 },
  ]
}

function prepareExistingFlag(
  flag: Flag,
  switchesOn: boolean,
): Result<FlagWrite, 'flag_without_variants' | 'flag_archived'> {
  if (countVariants(flag.filters) < 2) return err('flag_without_variants')
  if (flag.archived && switchesOn) return err('flag_archived')
  const active = switchesOn ? { active: true } : {}
  return ok(toFlagChange(flag, { ...active, hasExperiment: true }))
}
