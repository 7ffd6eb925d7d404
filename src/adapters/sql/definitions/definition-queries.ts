// Definitions of every project that changed after a revision, read in one transaction so that they fit together.

import type { Kysely, Selectable } from 'kysely'
import { cohortResource } from '#core/flags/definitions/cohort.ts'
import { flagResource } from '#core/flags/definitions/flag.ts'
import { projectResource } from '#core/project.ts'
import { earlyAccessFeatureResource } from '#core/resources/early-access-feature.ts'
import { surveyResource } from '#core/resources/survey.ts'
import type { DefinitionChanges, GetHeldDefinitions } from '#ports/state/definition-store.ts'
import { toResourceItem } from '../tables/resource-rows.ts'
import { readRevision } from '../tables/revision-queries.ts'
import { toGroupType } from '../tables/rows.ts'
import type { ProjectTable, StateSchema } from '../tables/schema.ts'
import {
  addUnchangedDefinitions,
  type DefinitionDelta,
  type DefinitionVersions,
  listDefinitionVersions,
  type ProjectDelta,
} from './unchanged-definitions.ts'

/** How many projects, and flags or cohorts, one query reads, which limits `IN` lists. */
const projectsPerQuery = 200
const idsPerQuery = 500

/** Implements `DefinitionStore.loadChanges`. */
export async function loadDefinitionChanges(
  db: Kysely<StateSchema>,
  revision: number,
  held: GetHeldDefinitions = () => null,
): Promise<DefinitionChanges> {
  const changes = await readDefinitionChanges(db, revision, projectId => {
    const definitions = held(projectId)
    return definitions === null ? null : listDefinitionVersions(definitions)
  })
  return addUnchangedDefinitions(changes, held)
}

/** @param heldOf the versions of a project's definitions that the caller holds; null when it holds none. */
export async function readDefinitionChanges(
  db: Kysely<StateSchema>,
  revision: number,
  heldOf: (projectId: number) => DefinitionVersions | null,
): Promise<DefinitionDelta> {
  return db.transaction().execute(async trx => {
    const current = await readRevision(trx)
    const changed = await trx
      .selectFrom('project')
      .selectAll()
      .where('revision', '>', revision)
      .orderBy('revision')
      .execute()
    const living = changed.filter(row => row.deleted === 0)
    const projects: ProjectDelta[] = []
    for (let start = 0; start < living.length; start += projectsPerQuery)
      projects.push(...(await readProjects(trx, living.slice(start, start + projectsPerQuery), heldOf)))
    return {
      revision: current,
      projects,
      deletedProjectIds: changed.filter(row => row.deleted === 1).map(row => Number(row.id)),
    }
  })
}

export async function listChangedProjectIds(db: Kysely<StateSchema>, revision: number): Promise<number[]> {
  const changed = await db
    .selectFrom('project')
    .select('id')
    .where('revision', '>', revision)
    .where('deleted', '=', 0)
    .execute()
  return changed.map(({ id }) => Number(id))
}

async function readProjects(
  trx: Kysely<StateSchema>,
  projects: readonly Selectable<ProjectTable>[],
  heldOf: (projectId: number) => DefinitionVersions | null,
): Promise<ProjectDelta[]> {
  const ids = projects.map(row => row.id)
  const held = new Map(ids.map(id => [id, heldOf(Number(id))]))
  const flags = await readVersioned(trx, 'feature_flag', ids, id => held.get(id)?.flags ?? null)
  const cohorts = await readVersioned(trx, 'cohort', ids, id => held.get(id)?.cohorts ?? null)
  const groupTypes = await trx
    .selectFrom('group_type_mapping')
    .selectAll()
    .where('project_id', 'in', ids)
    .where('removed', '=', 0)
    .orderBy('group_type_index')
    .execute()
  const features = await trx
    .selectFrom('early_access_feature')
    .selectAll()
    .where('project_id', 'in', ids)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const surveys = await trx
    .selectFrom('survey')
    .selectAll()
    .where('project_id', 'in', ids)
    .where('archived', '=', 0)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  const secretKeys = await trx.selectFrom('secret_api_key').selectAll().where('project_id', 'in', ids).execute()
  const flagsOf = groupByProject(flags.rows)
  const cohortsOf = groupByProject(cohorts.rows)
  const groupTypesOf = groupByProject(groupTypes)
  const featuresOf = groupByProject(features)
  const surveysOf = groupByProject(surveys)
  const secretKeysOf = groupByProject(secretKeys)
  return projects.map(row => ({
    read: {
      project: toResourceItem(projectResource, row),
      revision: Number(row.revision),
      flags: (flagsOf.get(row.id) ?? []).map(row => toResourceItem(flagResource, row)),
      cohorts: (cohortsOf.get(row.id) ?? []).map(row => toResourceItem(cohortResource, row)),
      groupTypes: (groupTypesOf.get(row.id) ?? []).map(toGroupType),
      earlyAccessFeatures: (featuresOf.get(row.id) ?? []).map(row => toResourceItem(earlyAccessFeatureResource, row)),
      surveys: (surveysOf.get(row.id) ?? []).map(row => toResourceItem(surveyResource, row)),
      secretKeyHashes: (secretKeysOf.get(row.id) ?? []).map(key => key.secret_hash),
    },
    gone: { flags: flags.gone.get(row.id) ?? [], cohorts: cohorts.gone.get(row.id) ?? [] },
  }))
}

/**
 * The projects' rows that the caller does not hold in their current version, by ascending id, and the held ids that no
 * longer exist. For all other rows it reads only id and version.
 */
async function readVersioned<T extends 'feature_flag' | 'cohort'>(
  trx: Kysely<StateSchema>,
  table: T,
  projectIds: readonly number[],
  heldOf: (projectId: number) => DefinitionVersions['flags'] | null,
): Promise<{ readonly rows: Selectable<StateSchema[T]>[]; readonly gone: ReadonlyMap<number, number[]> }> {
  // The query is typed for flags, since the table of cohorts also has the columns used here.
  const living = trx
    .selectFrom(table as 'feature_flag')
    .where('deleted', '=', 0)
    .orderBy('id')
  const rows: Selectable<StateSchema['feature_flag']>[] = []
  const read = async (query: typeof living) => {
    for (const row of await query.selectAll().execute()) rows.push(row)
  }
  const isHeld = Object.groupBy(projectIds, id => (heldOf(id) === null ? 'no' : 'yes'))
  if (isHeld.no !== undefined) await read(living.where('project_id', 'in', isHeld.no))
  const gone = new Map<number, number[]>()
  if (isHeld.yes !== undefined) {
    const present = await living.select(['id', 'project_id', 'version']).where('project_id', 'in', isHeld.yes).execute()
    const presentOf = groupByProject(present)
    const changedIds: number[] = []
    for (const projectId of isHeld.yes) {
      const left = new Map(heldOf(projectId))
      for (const { id, version } of presentOf.get(projectId) ?? []) {
        if (left.get(Number(id)) !== Number(version)) changedIds.push(id)
        left.delete(Number(id))
      }
      if (left.size > 0) gone.set(projectId, [...left.keys()])
    }
    for (let start = 0; start < changedIds.length; start += idsPerQuery)
      await read(living.where('id', 'in', changedIds.slice(start, start + idsPerQuery)))
  }
  return { rows: rows as unknown as Selectable<StateSchema[T]>[], gone }
}

function groupByProject<T extends { readonly project_id: number }>(rows: readonly T[]): Map<number, T[]> {
  return Map.groupBy(rows, row => row.project_id)
}
