// Copies a flag into another project, as a new version of the target's flag with the same key, if there is one. What the
// flag refers to is found in the target by name: group types and flags must exist, and missing cohorts are copied. Nothing
// is written before all references are found. Source: PostHog's copy_flags; what it leaves open is ours,
// docs/wire/private-api.md §4.

import type { Change } from '#core/author.ts'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import {
  type DefinitionReference,
  listReferencesOfCohort,
  listReferencesOfFlag,
} from '#core/flags/definitions/definition-links.ts'
import { type Flag, pickWritableFields } from '#core/flags/definitions/flag.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { replaceReferences } from '#core/flags/definitions/replace-references.ts'
import { copyExperimentsFrom, prepareRulesForCopy } from '#core/flags/definitions/rule-ids.ts'
import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { CohortStore } from '#ports/state/cohort-store.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { GroupStore } from '#ports/state/group-store.ts'
import { createCohort, type ManageCohortsDeps } from './manage-cohorts.ts'
import { createFlag, type FlagRefusal, type ManageFlagsDeps, updateFlag } from './manage-flags.ts'

export interface CopyFlagDeps extends ManageFlagsDeps {
  readonly management: ManageFlagsDeps['management'] &
    ManageCohortsDeps['management'] &
    Pick<FlagStore, 'findFlag' | 'findFlagByKey'> &
    Pick<CohortStore, 'listCohorts'> &
    Pick<GroupStore, 'listGroupTypes'>
}

export interface CopyOptions {
  readonly change: Change
  readonly mayWriteCohorts: boolean
  /** The copy is inactive, even if the source is active. */
  readonly isDisabled: boolean
}

export interface CopiedFlag {
  readonly flag: Flag
  /** Notes for the caller, such as that a cohort was copied without its members, or a rule without its experiment. */
  readonly notes: readonly string[]
}

export type CopyRefusal = { readonly kind: 'refused'; readonly reasons: readonly string[] } | FlagRefusal

/** How many missing cohorts are copied with one flag. */
const cohortCountMax = 100
/** How many cohorts are checked when searching one by name: the search also finds longer names that contain it. */
const namesakeCountMax = 1_000
const namesakesPerPage = 100

export async function copyFlag(
  deps: CopyFlagDeps,
  flag: Flag,
  targetProjectId: number,
  options: CopyOptions,
): Promise<Result<CopiedFlag, CopyRefusal>> {
  if (flag.hasEncryptedPayloads)
    return refuseCopy(['Its payloads are encrypted for its project. Create the flag in the target project instead.'])
  const plan = await planCopy(deps, flag, targetProjectId, options)
  if (plan.reasons.length > 0) return refuseCopy(plan.reasons)
  const notes: string[] = []
  for (const cohort of plan.cohortsToCreate) {
    const created = await createCohort(
      deps,
      targetProjectId,
      {
        name: cohort.name,
        description: cohort.description,
        isStatic: cohort.isStatic,
        filters: cohort.isStatic ? cohort.filters : mapToTarget(cohort.filters, plan),
      },
      { skipValidation: false, members: [], change: options.change },
    )
    if (!created.ok)
      return refuseCopy([`The cohort "${cohort.name}" cannot be copied: ${describeCohortProblem(created.error)}`])
    plan.cohortIds.set(cohort.id, created.value.cohort.id)
    const members = cohort.isStatic ? ' without its members, because persons belong to one project' : ''
    notes.push(`The cohort "${cohort.name}" was copied${members}.`)
  }
  const isOfRules = readConfigVersion(flag.filters) === 2
  if (listReferencesOfFlag(flag.filters).some(({ kind }) => kind === 'experiment'))
    notes.push(
      'Experiments were not copied: the copy splits the same way, and its rules keep the experiments they have in the target project.',
    )
  const filters = isOfRules ? flag.filters : mapToTarget(flag.filters, plan)
  const written = await writeCopy(deps, flag, filters, targetProjectId, options)
  return written.ok ? ok({ flag: written.value.flag, notes }) : written
}

function refuseCopy(reasons: readonly string[]): Result<never, CopyRefusal> {
  return err({ kind: 'refused', reasons })
}

function describeCohortProblem(error: { kind: string; issues?: readonly { message: string }[] }): string {
  return error.issues?.[0]?.message ?? error.kind
}

async function writeCopy(
  deps: CopyFlagDeps,
  flag: Flag,
  filters: JsonObject,
  projectId: number,
  { change, isDisabled }: CopyOptions,
) {
  // A flag that was deleted in the target since it was read stays deleted.
  const { deleted: _leftAsItIs, ...written } = pickWritableFields(flag)
  const there = await deps.management.findFlagByKey(projectId, flag.key)
  const isOfRules = readConfigVersion(filters) === 2
  const filtersThere = there?.filters ?? null
  const fields = {
    ...written,
    filters: isOfRules
      ? prepareRulesForCopy(copyExperimentsFrom(filters, filtersThere), filtersThere, deps.newUuid)
      : filters,
    ...(isDisabled && { active: false }),
  }
  const how = { skipValidation: false, keepsIdentity: true, change }
  // Seeds and experiments stay as they were in the target's flag when it was read.
  return there === null
    ? createFlag(deps, projectId, fields, how)
    : updateFlag(deps, there, fields, { ...how, ...(isOfRules && { expectedVersion: there.version }) })
}

interface Plan {
  readonly reasons: string[]
  /** Source id → target id. Cohorts that are copied are added as they are created. */
  readonly cohortIds: Map<number, number>
  readonly flagIds: Map<number, number>
  readonly groupTypes: Map<number, number>
  /** Each cohort comes after the cohorts it refers to. */
  readonly cohortsToCreate: Cohort[]
}

function mapToTarget(filters: JsonObject, plan: Plan): JsonObject {
  return replaceReferences(filters, {
    cohort: id => plan.cohortIds.get(id) ?? id,
    flag: id => plan.flagIds.get(id) ?? id,
    groupType: index => plan.groupTypes.get(index) ?? index,
  })
}

/** Finds everything that the copy refers to; writes nothing. */
async function planCopy(deps: CopyFlagDeps, flag: Flag, targetProjectId: number, options: CopyOptions): Promise<Plan> {
  const plan: Plan = {
    reasons: [],
    cohortIds: new Map(),
    flagIds: new Map(),
    groupTypes: new Map(),
    cohortsToCreate: [],
  }
  const references = listReferencesOfFlag(flag.filters)
  const cohorts = await listCohortsToCreate(deps, flag.projectId, references, targetProjectId, plan)
  const flagIds = new Set(
    [...references, ...cohorts.flatMap(cohort => listReferencesOfCohort(cohort.filters))]
      .filter(({ kind }) => kind === 'flag')
      .map(({ id }) => id),
  )
  for (const id of flagIds) await planFlag(deps, flag.projectId, targetProjectId, id, plan)
  await planGroupTypes(deps, flag, cohorts, targetProjectId, plan)
  plan.cohortsToCreate.push(...cohorts)
  if (cohorts.length > 0 && !options.mayWriteCohorts) {
    const names = cohorts.map(cohort => `"${cohort.name}"`).join(', ')
    plan.reasons.push(`The key lacks the scope 'cohort:write', which is required to copy these cohorts: ${names}.`)
  }
  return plan
}

/**
 * Lists the cohorts that are missing in the target, each after the cohorts it refers to. A target cohort of the same
 * name is used instead.
 */
async function listCohortsToCreate(
  deps: CopyFlagDeps,
  projectId: number,
  references: readonly DefinitionReference[],
  targetProjectId: number,
  plan: Plan,
): Promise<Cohort[]> {
  const lacking: Cohort[] = []
  const states = new Map<number, 'open' | 'done'>()
  const visit = async (id: number): Promise<void> => {
    if (states.has(id)) {
      if (states.get(id) === 'open') plan.reasons.push(`The cohort ${id} refers to itself.`)
      return
    }
    states.set(id, 'open')
    const cohort = await deps.management.findCohort(projectId, id)
    if (cohort === null || cohort.deleted) plan.reasons.push(`The cohort ${id} does not exist.`)
    else if (states.size > cohortCountMax) plan.reasons.push(`It refers to more than ${cohortCountMax} cohorts.`)
    else {
      const there = await findCohortByName(deps, targetProjectId, cohort.name)
      if (there !== null) plan.cohortIds.set(id, there.id)
      else {
        if (!cohort.isStatic)
          for (const other of collectCohortIds(listReferencesOfCohort(cohort.filters))) await visit(other)
        lacking.push(cohort)
      }
    }
    states.set(id, 'done')
  }
  for (const id of collectCohortIds(references)) {
    if (plan.reasons.length > 0) break
    await visit(id)
  }
  return lacking
}

function collectCohortIds(references: readonly DefinitionReference[]): number[] {
  return [...new Set(references.filter(({ kind }) => kind === 'cohort').map(({ id }) => id))]
}

async function findCohortByName(deps: CopyFlagDeps, projectId: number, name: string): Promise<Cohort | null> {
  const search = name === '' ? {} : { search: name }
  for (let offset = 0; offset < namesakeCountMax; ) {
    const { results } = await deps.management.listCohorts(projectId, { limit: namesakesPerPage, offset, ...search })
    const found = results.find(cohort => cohort.name === name)
    if (found !== undefined) return found
    if (results.length === 0) return null
    offset += results.length
  }
  return null
}

async function planFlag(
  deps: CopyFlagDeps,
  projectId: number,
  targetProjectId: number,
  id: number,
  plan: Plan,
): Promise<void> {
  const source = await deps.management.findFlag(projectId, String(id))
  if (source === null || source.deleted) {
    plan.reasons.push(`It depends on the flag ${id}, which does not exist.`)
    return
  }
  const there = await deps.management.findFlagByKey(targetProjectId, source.key)
  if (there === null)
    plan.reasons.push(`It depends on the flag "${source.key}", which the target project lacks. Copy that flag first.`)
  else plan.flagIds.set(id, there.id)
}

async function planGroupTypes(
  deps: CopyFlagDeps,
  flag: Flag,
  cohorts: readonly Cohort[],
  targetProjectId: number,
  plan: Plan,
): Promise<void> {
  const indexes = new Set<number>()
  const collectIndex = (index: number) => {
    indexes.add(index)
    return index
  }
  const collect = { cohort: (id: number) => id, flag: (id: number) => id, groupType: collectIndex }
  for (const { filters } of [flag, ...cohorts]) replaceReferences(filters, collect)
  if (indexes.size === 0) return
  const here = await deps.management.listGroupTypes(flag.projectId)
  const there = await deps.management.listGroupTypes(targetProjectId)
  for (const index of indexes) {
    const name = here.find(type => type.index === index)?.name
    const counterpart = there.find(type => type.name === name && type.isBeingDeleted !== true)
    if (name === undefined) plan.reasons.push(`It uses the group type ${index}, which does not exist.`)
    else if (counterpart === undefined)
      plan.reasons.push(`It uses the group type "${name}", which the target project lacks.`)
    else plan.groupTypes.set(index, counterpart.index)
  }
}
