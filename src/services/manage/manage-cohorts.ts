// Writes cohorts for the private API: validates them, checks what they refer to and what refers to them, and resolves once
// this front serves them. Members of static cohorts are stored in batches, so that no transaction takes long.

import type { Change } from '#core/author.ts'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { listReferencesOfCohort } from '#core/flags/definitions/definition-links.ts'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { validateCohortFilters } from '#core/flags/definitions/validate-cohort.ts'
import { listUsersOfCohort } from '#core/flags/definitions/validate-references.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  type CohortMemberStore,
  type CohortPatch,
  type CohortStore,
  memberIdCountMax,
} from '#ports/state/cohort-store.ts'
import type { LinkedWrite } from '#ports/state/flag-store.ts'
import type { Written } from '#ports/state/written.ts'
import type { ReferenceReader } from './find-reference-issues.ts'
import { type CheckedWrite, writeCheckedDefinition, writeWithCheckedLinks } from './write-with-links.ts'

export interface ManageCohortsDeps {
  readonly management: Omit<CohortStore, 'listCohorts'> &
    Pick<CohortMemberStore, 'addCohortMembers' | 'removeCohortMembers' | 'countCohortMembers'> &
    ReferenceReader
  readonly definitionsReady: (revision: number) => Promise<void>
}

/** The fields that a write may set; absent fields stay unchanged. */
export type CohortFields = Partial<Pick<Cohort, 'name' | 'description' | 'isStatic' | 'filters' | 'deleted'>>

export interface CohortWriteOptions {
  /** Stores the cohort even if validation fails, and returns the issues as `warnings`. */
  readonly skipValidation: boolean
  readonly change: Change
}

export interface MemberReport {
  /** How many persons became members or are no longer members. */
  readonly changedCount: number
  readonly unchangedCount: number
  /** Ids for which no person was found, in the order given. */
  readonly unknownIds: readonly string[]
}

export interface WrittenCohort {
  readonly cohort: Cohort
  /** What validation would have refused; empty unless it was skipped. */
  readonly warnings: readonly FlagIssue[]
  /** The result for the given ids; null when none were given. */
  readonly members: MemberReport | null
}

export type CohortRefusal =
  | { readonly kind: 'invalid'; readonly issues: readonly FlagIssue[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'not_static' }
  | { readonly kind: 'stale_version'; readonly sentVersion: number; readonly current: Cohort }

/** Creates the cohort even when some members cannot be found; the answer lists those. */
export async function createCohort(
  deps: ManageCohortsDeps,
  projectId: number,
  fields: Omit<CohortFields, 'deleted'>,
  options: CohortWriteOptions & { readonly members: readonly MemberIds[] },
): Promise<Result<WrittenCohort, CohortRefusal>> {
  const { name = '', description = '', isStatic = false, filters = {} } = fields
  if (!isStatic && options.members.length > 0) return err({ kind: 'not_static' })
  const input = { projectId, name, description, isStatic, filters }
  const written = await writeCheckedDefinition<Written<Cohort>, CohortRefusal>(deps.management, {
    projectId,
    self: { kind: 'cohort', id: null, name },
    ...checkFilters(isStatic ? null : filters),
    skipValidation: options.skipValidation,
    write: linked => deps.management.createCohort(input, options.change, linked),
  })
  return written.ok ? finishWrite(deps, written.value, options) : written
}

/** Writes the given fields and adds 1 to the version; given members are added to the existing ones. */
export async function updateCohort(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  fields: CohortFields,
  options: CohortWriteOptions & { readonly members: readonly MemberIds[]; readonly expectedVersion?: number },
): Promise<Result<WrittenCohort, CohortRefusal>> {
  if (fields.isStatic !== undefined && fields.isStatic !== cohort.isStatic) return err(staysAsItIs)
  if (!cohort.isStatic && options.members.length > 0) return err({ kind: 'not_static' })
  const { isStatic: _, ...rest } = fields
  const save = (linked: LinkedWrite) =>
    savePatch(deps, cohort, rest, options.change, { ...linked, ...toVersionCondition(options) })
  const comesBack = cohort.deleted && fields.deleted === false
  const isChecked = !cohort.isStatic && (fields.filters !== undefined || comesBack)
  const written =
    fields.deleted === true
      ? await deleteUnused(deps, cohort, options, save)
      : await writeCheckedDefinition<Written<Cohort>, CohortRefusal>(deps.management, {
          projectId: cohort.projectId,
          self: { kind: 'cohort', id: cohort.id, name: fields.name ?? cohort.name },
          ...checkFilters(isChecked ? (fields.filters ?? cohort.filters) : null),
          skipValidation: options.skipValidation,
          write: save,
        })
  return written.ok ? finishWrite(deps, written.value, options) : written
}

/** Deletes a cohort, but keeps its members, in case the deletion is undone. Refused if flags or other cohorts use it. */
export function deleteCohort(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  options: CohortWriteOptions,
): Promise<Result<WrittenCohort, CohortRefusal>> {
  return updateCohort(deps, cohort, { deleted: true }, { ...options, members: [] })
}

/** Adds or removes members of a static cohort. Evaluations see the change at once, since they read the rows. */
export async function changeMembers(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  action: 'add' | 'remove',
  members: readonly MemberIds[],
  change: Change,
): Promise<Result<WrittenCohort, CohortRefusal>> {
  const report = await writeMembers(deps, cohort, action, members, change)
  if (!report.ok) return report
  const current = await deps.management.findCohort(cohort.projectId, cohort.id)
  return current === null ? err({ kind: 'not_found' }) : ok({ cohort: current, warnings: [], members: report.value })
}

const staysAsItIs: CohortRefusal = {
  kind: 'invalid',
  issues: [
    {
      path: 'is_static',
      code: 'invalid_input',
      message: 'is_static cannot be changed, since the members would be lost. Create another cohort.',
    },
  ],
}

type Save = (linked: LinkedWrite) => Promise<Result<Written<Cohort>, CohortRefusal | 'definitions_changed'>>

/** @param filters the filters to check; null when the write changes nothing that is evaluated. */
function checkFilters(filters: JsonObject | null) {
  if (filters === null) return { issues: [], references: [] }
  return { issues: validateCohortFilters(filters), references: listReferencesOfCohort(filters) }
}

/** Source: PostHog refuses to delete a cohort that active flags use; here inactive flags and cohorts count, too. */
function deleteUnused(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  options: CohortWriteOptions,
  save: Save,
): Promise<Result<CheckedWrite<Written<Cohort>>, CohortRefusal>> {
  return writeWithCheckedLinks(deps.management, cohort.projectId, async findLinks => {
    const links = await findLinks()
    const users = listUsersOfCohort(cohort.id, links)
    const issues = users.length === 0 ? [] : [createInUseIssue(users)]
    if (issues.length > 0 && !options.skipValidation) return err({ kind: 'invalid', issues } as const)
    const written = await save(options.skipValidation ? {} : { linksRevision: links.revision })
    return written.ok ? ok({ written: written.value, warnings: issues }) : written
  })
}

const namedUsersMax = 20

function createInUseIssue(users: readonly string[]): FlagIssue {
  const named = users.slice(0, namedUsersMax).join(', ')
  const others = users.length > namedUsersMax ? ` and ${users.length - namedUsersMax} more` : ''
  const message = `This cohort is used by ${named}${others}. Remove it from their filters before deleting it.`
  return { path: 'deleted', code: 'invalid_input', message }
}

async function savePatch(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  patch: CohortPatch,
  change: Change,
  options: LinkedWrite & { readonly expectedVersion?: number },
): Promise<Result<Written<Cohort>, CohortRefusal | 'definitions_changed'>> {
  const written = await deps.management.updateCohort(cohort.projectId, cohort.id, patch, change, options)
  if (written.ok) return written
  if (written.error === 'definitions_changed') return err('definitions_changed')
  if (written.error === 'not_found') return err({ kind: 'not_found' })
  const { staleVersion: current } = written.error
  return err({ kind: 'stale_version', sentVersion: options.expectedVersion ?? cohort.version, current })
}

function toVersionCondition({ expectedVersion }: { readonly expectedVersion?: number }) {
  return expectedVersion === undefined ? {} : { expectedVersion }
}

/**
 * Writes the members before it waits for the definition to be served, so that a request after the answer finds both.
 */
async function finishWrite(
  deps: ManageCohortsDeps,
  { written, warnings }: CheckedWrite<Written<Cohort>>,
  { members, change }: { readonly members: readonly MemberIds[]; readonly change: Change },
): Promise<Result<WrittenCohort, CohortRefusal>> {
  let cohort = written.value
  let report: MemberReport | null = null
  if (members.length > 0) {
    const added = await writeMembers(deps, cohort, 'add', members, change)
    if (!added.ok) return added
    report = added.value
    cohort = (await deps.management.findCohort(cohort.projectId, cohort.id)) ?? cohort
  }
  await deps.definitionsReady(written.revision)
  return ok({ cohort, warnings, members: report })
}

async function writeMembers(
  deps: ManageCohortsDeps,
  cohort: Cohort,
  action: 'add' | 'remove',
  members: readonly MemberIds[],
  change: Change,
): Promise<Result<MemberReport, CohortRefusal>> {
  const { management } = deps
  const { projectId, id: cohortId } = cohort
  const unknownIds: string[] = []
  let changedCount = 0
  let unchangedCount = 0
  for (const { kind, ids } of members) {
    const unique = [...new Set(ids)]
    for (let at = 0; at < unique.length; at += memberIdCountMax) {
      const batch = { kind, ids: unique.slice(at, at + memberIdCountMax) }
      const written =
        action === 'add'
          ? await management.addCohortMembers(projectId, cohortId, batch, change)
          : await management.removeCohortMembers(projectId, cohortId, batch, change)
      if (!written.ok) return err({ kind: 'not_static' })
      changedCount += written.value.changedCount
      unchangedCount += written.value.unchangedCount
      for (const unknown of written.value.unknownIds) unknownIds.push(unknown)
    }
  }
  await management.saveCohortCount(cohort, await management.countCohortMembers(cohortId), change.atMs)
  return ok({ changedCount, unchangedCount, unknownIds })
}
