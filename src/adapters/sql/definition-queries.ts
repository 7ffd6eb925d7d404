// Definitions of every project that changed after a revision, read in one transaction so that they fit together.

import type { Kysely, Selectable } from 'kysely'
import type { ProjectDefinitions } from '#core/flags/project-definitions.ts'
import type { DefinitionChanges } from '#ports/definition-store.ts'
import { cohortOf, earlyAccessFeatureOf, surveyOf } from './definition-rows.ts'
import { readRevision } from './revision-queries.ts'
import { flagOf, groupTypeOf, projectOf } from './rows.ts'
import type { ProjectTable, StateSchema } from './schema.ts'

/** Projects read per query: keeps `IN` lists bounded. */
const projectsPerQuery = 200

export async function loadDefinitionChanges(db: Kysely<StateSchema>, revision: number): Promise<DefinitionChanges> {
  return db.transaction().execute(async trx => {
    const current = await readRevision(trx)
    const changed = await trx
      .selectFrom('project')
      .selectAll()
      .where('revision', '>', revision)
      .orderBy('revision')
      .execute()
    const living = changed.filter(row => row.deleted === 0)
    const projects: ProjectDefinitions[] = []
    for (let start = 0; start < living.length; start += projectsPerQuery)
      projects.push(...(await loadDefinitions(trx, living.slice(start, start + projectsPerQuery))))
    return {
      revision: current,
      projects,
      deletedProjectIds: changed.filter(row => row.deleted === 1).map(row => Number(row.id)),
    }
  })
}

async function loadDefinitions(
  trx: Kysely<StateSchema>,
  projects: readonly Selectable<ProjectTable>[],
): Promise<ProjectDefinitions[]> {
  const ids = projects.map(row => row.id)
  const flags = await trx
    .selectFrom('feature_flag')
    .selectAll()
    .where('project_id', 'in', ids)
    .where('deleted', '=', 0)
    .orderBy('id')
    .execute()
  const cohorts = await trx
    .selectFrom('cohort')
    .selectAll()
    .where('project_id', 'in', ids)
    .where('deleted', '=', 0)
    .orderBy('id')
    .execute()
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
  const flagsOf = byProject(flags)
  const cohortsOf = byProject(cohorts)
  const groupTypesOf = byProject(groupTypes)
  const featuresOf = byProject(features)
  const surveysOf = byProject(surveys)
  const secretKeysOf = byProject(secretKeys)
  return projects.map(row => ({
    project: projectOf(row),
    revision: Number(row.revision),
    flags: (flagsOf.get(row.id) ?? []).map(flagOf),
    cohorts: (cohortsOf.get(row.id) ?? []).map(cohortOf),
    groupTypes: (groupTypesOf.get(row.id) ?? []).map(groupTypeOf),
    earlyAccessFeatures: (featuresOf.get(row.id) ?? []).map(earlyAccessFeatureOf),
    surveys: (surveysOf.get(row.id) ?? []).map(surveyOf),
    secretKeyHashes: (secretKeysOf.get(row.id) ?? []).map(key => key.secret_hash),
  }))
}

function byProject<T extends { readonly project_id: number }>(rows: readonly T[]): Map<number, T[]> {
  return Map.groupBy(rows, row => row.project_id)
}
