// Persons as the private API shows them: with their distinct ids and their stored flag assignments.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { DistinctIdMapping } from '#core/persons/person.ts'
import type { PersonQueryStore } from '#ports/management-store.ts'
import type { PersonView } from '#ports/person-view.ts'
import { containsText } from './like.ts'
import { personOf } from './rows.ts'
import type { PersonTable, StateSchema } from './schema.ts'

export function personQueries(db: Kysely<StateSchema>): PersonQueryStore {
  return {
    async findPersonByUuid(projectId, uuid) {
      const rows = await db
        .selectFrom('person')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('uuid', '=', uuid)
        .execute()
      return (await personViews(db, rows))[0] ?? null
    },

    async listPersons(projectId, { distinctId, uuid, search, limit, offset }) {
      let persons = db.selectFrom('person').selectAll('person').where('person.project_id', '=', projectId)
      if (uuid !== undefined) persons = persons.where('person.uuid', '=', uuid)
      if (distinctId !== undefined)
        persons = persons.where('person.id', 'in', eb =>
          eb
            .selectFrom('person_distinct_id')
            .select('person_id')
            .where('project_id', '=', projectId)
            .where('distinct_id', '=', distinctId),
        )
      if (search !== undefined && search !== '') {
        persons = persons.where(
          sql<boolean>`(${containsText('person.properties', search)} OR EXISTS (
            SELECT 1 FROM person_distinct_id
            WHERE person_distinct_id.person_id = person.id AND ${containsText('distinct_id', search)}))`,
        )
      }
      const rows = await persons
        .orderBy('person.id', 'desc')
        .limit(limit + 1)
        .offset(offset)
        .execute()
      return { results: await personViews(db, rows.slice(0, limit)), hasMore: rows.length > limit }
    },
  }
}

/** With their distinct ids and stored flag assignments, in the order of the rows. */
export async function personViews(
  db: Kysely<StateSchema>,
  rows: readonly Selectable<PersonTable>[],
): Promise<PersonView[]> {
  if (rows.length === 0) return []
  const ids = rows.map(row => row.id)
  const mappings = await db
    .selectFrom('person_distinct_id')
    .selectAll()
    .where('person_id', 'in', ids)
    .orderBy('distinct_id')
    .execute()
  const overrides = await db
    .selectFrom('flag_hash_key_override')
    .selectAll()
    .where('person_id', 'in', ids)
    .orderBy('feature_flag_key')
    .execute()
  const mappingsOf = Map.groupBy(mappings, mapping => mapping.person_id)
  const overridesOf = Map.groupBy(overrides, override => override.person_id)
  return rows.map(row => {
    const { marks: _, ...person } = personOf(row)
    return {
      ...person,
      id: Number(row.id),
      distinctIds: (mappingsOf.get(row.id) ?? []).map(
        (mapping): DistinctIdMapping => ({
          projectId: person.projectId,
          distinctId: mapping.distinct_id,
          personUuid: person.uuid,
          version: Number(mapping.version),
        }),
      ),
      flagOverrides: (overridesOf.get(row.id) ?? []).map(override => ({
        flagKey: override.feature_flag_key,
        hashKey: override.hash_key,
      })),
    }
  })
}
