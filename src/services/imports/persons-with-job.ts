// The persons of a project as they would be if a pending job were published now: its staging overlay is joined with them as
// publishing joins it, but nothing is written, and links that the job makes are left out (docs/decisions/0079).

import { type ImportJob, toStagingProjectId } from '#core/imports/import-job.ts'
import { publishPersons } from '#core/processing/imports/publish-staging.ts'
import type { Project } from '#core/project.ts'
import type { CohortMemberStore, SearchedPersons } from '#ports/state/cohort-store.ts'
import type { PersonFilters, PersonStore, PersonView } from '#ports/state/person-store.ts'

interface PersonsDeps {
  readonly management: Pick<PersonStore, 'findPersonsOfIds'> & Pick<CohortMemberStore, 'listPersonsBelow'>
}

/** Works like `CohortMemberStore.listPersonsBelow`. Filters other than those by id test only what is stored of a person. */
export async function listPersonsWithJob(
  deps: PersonsDeps,
  project: Project,
  job: ImportJob,
  page: PersonFilters & { readonly belowId?: number; readonly limit: number },
  ofCohortIds: readonly number[],
): Promise<SearchedPersons> {
  const pages = [
    await deps.management.listPersonsBelow(project.id, page, ofCohortIds),
    await deps.management.listPersonsBelow(toStagingProjectId(job.id), page, []),
  ]
  // The ids of both pages come from one sequence. Below the higher of their two ends, one page is incomplete, so persons
  // from there on are left for the next page.
  const ends = pages.flatMap(({ continueAfterId }) => continueAfterId ?? [])
  const continueAfterId = ends.length === 0 ? null : Math.max(...ends)
  const persons = pages
    .flatMap(({ results }) => results)
    .filter(({ id }) => continueAfterId === null || id >= continueAfterId)
    .sort((a, b) => b.id - a.id)
  return {
    results: await joinStagedPersons(deps, project, job, persons),
    hasMore: continueAfterId !== null,
    continueAfterId,
  }
}

/**
 * @param persons of the project and of the staging overlay. Those of the overlay are left out where a person of the project
 *   has their distinct id. Only the listed distinct ids of a person are joined.
 */
export async function joinStagedPersons<T extends PersonView>(
  { management }: PersonsDeps,
  project: Project,
  { id: importJobId, options }: ImportJob,
  persons: readonly T[],
): Promise<T[]> {
  // Publishing joins them in this order.
  const distinctIds = [
    ...new Set(persons.flatMap(person => person.distinctIds.map(({ distinctId }) => distinctId))),
  ].sort()
  if (distinctIds.length === 0) return [...persons]
  const found = await management.findPersonsOfIds([project.id, toStagingProjectId(importJobId)], distinctIds)
  const { changes } = publishPersons(
    {
      ...{ importJobId, projectId: project.id, options },
      loaded: {
        ...{ ...found, projects: [project], personMappings: [], personlessDistinctIds: [], groupTypes: [], groups: [] },
        ...{ textBytes: 0, textBytesOf: new Map() },
      },
    },
    distinctIds,
  )
  const joined = new Map(changes.persons.map(({ row }) => [row.uuid, row]))
  const known = new Set(found.mappings.flatMap(row => (row.projectId === project.id ? [row.distinctId] : [])))
  return persons
    .filter(person => person.projectId === project.id || !person.distinctIds.some(row => known.has(row.distinctId)))
    .map(person => {
      const row = joined.get(person.uuid)
      if (row === undefined) return person
      const { properties, createdAtMs, lastSeenAtMs, isIdentified } = row
      return { ...person, propertiesJson: JSON.stringify(properties), createdAtMs, lastSeenAtMs, isIdentified }
    })
}
