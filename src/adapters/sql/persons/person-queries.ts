// Queries of the private API for persons, and for the distinct ids of one person.

import { type Kysely, sql } from 'kysely'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { PersonFilters, PersonStore } from '#ports/state/person-store.ts'
import { containsTextSql, mayContainPartsSql } from '../tables/conditions.ts'
import { countRows, splitIntoSlices } from '../tables/read-pages.ts'
import { toPerson } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'
import { findPersonView, readPersonsPage } from './person-views.ts'

/** Selects the persons after a given person, by ascending or descending id. */
export interface PersonPageStart {
  readonly direction: 'asc' | 'desc'
  /** The id of that person; absent for the first page. */
  readonly id?: number | undefined
}

/** The ids of the persons that match all given filters, in no particular order. */
export function selectMatchingPersons(
  db: Kysely<StateSchema>,
  projectId: number,
  { distinctId, uuid, search, propertyParts = [] }: PersonFilters,
  { direction, id }: PersonPageStart,
) {
  let persons = db.selectFrom('person').select('person.id as id').where('person.project_id', '=', projectId)
  if (id !== undefined) persons = persons.where('person.id', direction === 'asc' ? '>' : '<', id)
  if (uuid !== undefined) persons = persons.where('person.uuid', '=', uuid)
  if (distinctId !== undefined)
    persons = persons.where('person.id', 'in', eb =>
      eb
        .selectFrom('person_distinct_id')
        .select('person_id')
        .where('project_id', '=', projectId)
        .where('distinct_id', '=', distinctId),
    )
  for (const alternatives of propertyParts)
    persons = persons.where(mayContainPartsSql('person.properties', alternatives))
  if (search === undefined || search === '') return persons
  return persons.where(
    sql<boolean>`(${containsTextSql('person.properties', search)} OR EXISTS (
      SELECT 1 FROM person_distinct_id
      WHERE person_distinct_id.person_id = person.id AND ${containsTextSql('distinct_id', search)}))`,
  )
}

export function createPersonQueries(db: Kysely<StateSchema>): PersonStore {
  return {
    findPersonByUuid: (projectId, uuid) => findPersonView(db, projectId, uuid),

    async listPersons(projectId, { belowId, limit, offset, ...filters }) {
      const persons = selectMatchingPersons(db, projectId, filters, { direction: 'desc', id: belowId })
      const page = persons
        .orderBy('person.id', 'desc')
        .limit(limit + 1)
        .offset(offset)
      return readPersonsPage(db, page.as('page'), { limit, direction: 'desc' })
    },

    countPersons: projectId => countRows(db.selectFrom('person').where('project_id', '=', projectId)),

    async findPersonsOfIds(projectIds, distinctIds) {
      const persons = new Map<number, Person>()
      const mappings: DistinctIdMapping[] = []
      for (const ids of splitIntoSlices(distinctIds)) {
        const mapped = await db
          .selectFrom('person_distinct_id')
          .select(['person_id', 'distinct_id', 'version'])
          .where('project_id', 'in', projectIds)
          .where('distinct_id', 'in', ids)
          .execute()
        const wanted = [...new Set(mapped.map(row => Number(row.person_id)))].filter(id => !persons.has(id))
        if (wanted.length > 0)
          for (const row of await db.selectFrom('person').selectAll().where('id', 'in', wanted).execute())
            persons.set(Number(row.id), toPerson(row))
        for (const row of mapped) {
          const person = persons.get(Number(row.person_id))
          // The person was merged into another person, or erased, after its mapping was read.
          if (person === undefined) continue
          const { projectId, uuid: personUuid } = person
          mappings.push({ projectId, distinctId: row.distinct_id, personUuid, version: Number(row.version) })
        }
      }
      return { persons: [...persons.values()], mappings }
    },

    async listDistinctIds(projectId, uuid, { after, limit }) {
      const person = await db
        .selectFrom('person')
        .select('id')
        .where('project_id', '=', projectId)
        .where('uuid', '=', uuid)
        .executeTakeFirst()
      if (person === undefined) return null
      const ids = db.selectFrom('person_distinct_id').where('person_id', '=', person.id)
      const count = await countRows(ids)
      const beyond = after === undefined ? ids : ids.where('distinct_id', '>', after)
      const rows = await beyond
        .select(['distinct_id', 'version'])
        .orderBy('distinct_id')
        .limit(limit + 1)
        .execute()
      return {
        count,
        results: rows
          .slice(0, limit)
          .map(row => ({ projectId, distinctId: row.distinct_id, personUuid: uuid, version: Number(row.version) })),
        hasMore: rows.length > limit,
      }
    },
  }
}
