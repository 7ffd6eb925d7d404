// Reads pages of persons for the private API. A person can be large (properties of 640 KiB, thousands of distinct ids, rows
// of experience continuity), so a page is limited by size before any long text is read.

import { type AliasedExpression, type Kysely, type Selectable, sql } from 'kysely'
import { shownDistinctIdCountMax, shownFlagOverrideCountMax } from '#core/persons/person.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import type { PersonsPage } from '#ports/state/cohort-store.ts'
import type { PersonView } from '#ports/state/person-store.ts'
import { countFittingRows } from '../tables/read-pages.ts'
import type { PersonTable, StateSchema } from '../tables/schema.ts'

/** Reading an id costs as much as this many bytes of properties, whether it is shown or not. */
const bytesPerId = 16
/** The bytes of JSON around the two texts of a row of experience continuity (flag key and hash key). */
const bytesPerOverride = 64

/**
 * The most ids of a person that are counted: one more than a person may have. Only persons older than that limit have more.
 */
const countedIdsMax = personDistinctIdCountMax + 1

const idsOfPerson = sql`(SELECT distinct_id FROM person_distinct_id
  WHERE person_id = person.id LIMIT ${sql.lit(countedIdsMax)}) AS some_ids`

const idCountOf = sql<number>`(SELECT count(*) FROM ${idsOfPerson})`

/** Approximate bytes of a person in an answer, read from indexes and row headers, without the texts themselves. */
const sizeOf = sql<number>`octet_length(person.properties)
  + (SELECT coalesce(sum(octet_length(distinct_id) + ${sql.lit(bytesPerId)}), 0) FROM ${idsOfPerson})
  + (SELECT coalesce(sum(octet_length(feature_flag_key) + octet_length(hash_key) + ${sql.lit(bytesPerOverride)}), 0)
    FROM (SELECT feature_flag_key, hash_key FROM flag_hash_key_override
      WHERE person_id = person.id LIMIT ${sql.lit(shownFlagOverrideCountMax)}) AS some_overrides)`

/**
 * Reads those persons of a page that fit into `bytesMax`, at least one if there is any. @param ids a query of the ids of
 * the page's persons, and of one more person, in the order of `direction`.
 */
export async function readPersonsPage(
  db: Kysely<StateSchema>,
  ids: AliasedExpression<{ id: number }, 'page'>,
  { limit, direction, bytesMax }: { limit: number; direction: 'asc' | 'desc'; bytesMax?: number },
): Promise<PersonsPage> {
  const sizes = await db
    .selectFrom(ids)
    .innerJoin('person', 'person.id', 'page.id')
    .select(['person.id as id', sizeOf.as('bytes'), idCountOf.as('idCount')])
    .orderBy('page.id', direction)
    .execute()
  const fitting = sizes.slice(0, countFittingRows(sizes.slice(0, limit), bytesMax))
  if (fitting.length === 0) return { results: [], hasMore: false }
  const rows = await db
    .selectFrom('person')
    .select(shownColumns)
    .where(
      'id',
      'in',
      fitting.map(row => row.id),
    )
    .orderBy('id', direction)
    .execute()
  const idCounts = new Map(fitting.map(row => [Number(row.id), Number(row.idCount)]))
  return { results: await readPersonViews(db, rows, idCounts), hasMore: sizes.length > fitting.length }
}

/** Leaves out columns that are not shown: marks may be as long as the properties. */
const shownColumns = [
  ...(['id', 'project_id', 'uuid', 'properties', 'created_at'] as const),
  ...(['is_identified', 'version', 'last_seen_at'] as const),
]
type PersonRow = Pick<Selectable<PersonTable>, (typeof shownColumns)[number]>

export async function findPersonView(
  db: Kysely<StateSchema>,
  projectId: number,
  uuid: string,
): Promise<PersonView | null> {
  const row = await db
    .selectFrom('person')
    .select(shownColumns)
    .select(idCountOf.as('idCount'))
    .where('project_id', '=', projectId)
    .where('uuid', '=', uuid)
    .executeTakeFirst()
  if (row === undefined) return null
  const idCounts = new Map([[Number(row.id), Number(row.idCount)]])
  return (await readPersonViews(db, [row], idCounts))[0]!
}

/** Reads what the views need in addition to the rows; returns them in the order of the rows. */
async function readPersonViews(
  db: Kysely<StateSchema>,
  rows: readonly PersonRow[],
  idCounts: ReadonlyMap<number, number>,
): Promise<PersonView[]> {
  const idsOf = await readShownIds(db, idCounts)
  const overridesOf = await readShownOverrides(
    db,
    rows.map(row => row.id),
  )
  return rows.map(row => {
    const id = Number(row.id)
    const projectId = Number(row.project_id)
    return {
      id,
      projectId,
      uuid: row.uuid,
      propertiesJson: row.properties,
      createdAtMs: Number(row.created_at),
      isIdentified: row.is_identified === 1,
      version: Number(row.version),
      lastSeenAtMs: Number(row.last_seen_at),
      distinctIds: (idsOf.get(id) ?? []).map(({ distinct_id: distinctId, version }) => ({
        ...{ projectId, distinctId, personUuid: row.uuid, version: Number(version) },
      })),
      distinctIdCount: idCounts.get(id) ?? 0,
      flagOverrides: (overridesOf.get(id) ?? []).map(override => ({
        flagKey: override.feature_flag_key,
        hashKey: override.hash_key,
      })),
    }
  })
}

/**
 * Sorts ids that look like a UUID, which libraries generate, after all others, which clients have chosen; each kind is in
 * byte order.
 */
const isMadeUp = sql`CASE WHEN distinct_id LIKE '%-%-%-%-%' THEN 1 ELSE 0 END`

type IdRow = Omit<StateSchema['person_distinct_id'], 'project_id'>

async function readShownIds(
  db: Kysely<StateSchema>,
  idCounts: ReadonlyMap<number, number>,
): Promise<ReadonlyMap<number, readonly IdRow[]>> {
  const rows: IdRow[] = []
  const countable = [...idCounts].filter(([, count]) => count < countedIdsMax).map(([id]) => id)
  if (countable.length > 0) {
    const ofAll = sql<IdRow>`SELECT person_id, distinct_id, version FROM (
      SELECT person_id, distinct_id, version,
        row_number() OVER (PARTITION BY person_id ORDER BY ${isMadeUp}, distinct_id) AS place
      FROM person_distinct_id WHERE person_id IN (${sql.join(countable)})
    ) AS ranked WHERE place <= ${sql.lit(shownDistinctIdCountMax)} ORDER BY person_id, place`
    for (const row of (await ofAll.execute(db)).rows) rows.push(row)
  }
  // For a person that has too many ids to count, only the first `countedIdsMax` ids are read.
  for (const [id, count] of idCounts) {
    if (count < countedIdsMax) continue
    const ofOne = sql<IdRow>`SELECT person_id, distinct_id, version FROM (
      SELECT person_id, distinct_id, version FROM person_distinct_id WHERE person_id = ${id}
      ORDER BY distinct_id LIMIT ${sql.lit(countedIdsMax)}
    ) AS first_ids ORDER BY ${isMadeUp}, distinct_id LIMIT ${sql.lit(shownDistinctIdCountMax)}`
    for (const row of (await ofOne.execute(db)).rows) rows.push(row)
  }
  return Map.groupBy(rows, row => Number(row.person_id))
}

type OverrideRow = Omit<StateSchema['flag_hash_key_override'], 'project_id'>

async function readShownOverrides(
  db: Kysely<StateSchema>,
  personIds: readonly number[],
): Promise<ReadonlyMap<number, readonly OverrideRow[]>> {
  const { rows } = await sql<OverrideRow>`SELECT person_id, feature_flag_key, hash_key FROM (
    SELECT person_id, feature_flag_key, hash_key,
      row_number() OVER (PARTITION BY person_id ORDER BY feature_flag_key) AS place
    FROM flag_hash_key_override WHERE person_id IN (${sql.join(personIds)})
  ) AS ranked WHERE place <= ${sql.lit(shownFlagOverrideCountMax)} ORDER BY person_id, place`.execute(db)
  return Map.groupBy(rows, row => Number(row.person_id))
}
