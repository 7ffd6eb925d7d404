// Stored persons and groups for evaluations, on PostgreSQL or on a replica of it. The look-ups of one turn of the event
// loop become one statement for each kind. Once enough statements are under way, look-ups wait for the next one, so a
// busier front puts more of them into one statement.

import { propertiesOf } from '#adapters/sql/tables/rows.ts'
import type { VisitorName } from '#core/processing/visitors.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, HashKeyRow } from '#ports/state/hash-key-overrides.ts'
import type { SubjectStore } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { batchLookUps, type LookUps } from './look-ups.ts'
import { openPool, type Pool } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'

/**
 * Statements of each kind under way. Each costs this process about 70 µs, plus about 3 µs for each name: with few under
 * way, a busy front's look-ups share them, and with a round trip of 1 ms there is still room for 1,000 look-ups per ms.
 */
const underWayMax = 2
const sessionsMax = 4 * underWayMax
/** An evaluation gives up sooner; this limit frees the session. */
const statementMsMax = 1_000
const connectMsMax = 1_000

const findPersonsText = `
  SELECT k.place, p.uuid, p.properties, p.created_at
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, distinct_id, place)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  JOIN person AS p ON p.id = d.person_id`

const findStaticCohortsText = `
  SELECT k.place, c.cohort_id
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, distinct_id, place)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  JOIN cohort_person AS c ON c.person_id = d.person_id`

const findGroupsText = `
  SELECT k.place, g.group_properties
  FROM unnest($1::bigint[], $2::int[], $3::text[]) WITH ORDINALITY AS k (project_id, type_index, group_key, place)
  JOIN "group" AS g
    ON g.project_id = k.project_id AND g.group_type_index = k.type_index AND g.group_key = k.group_key`

/** A person without rows yields one row of NULLs; a distinct id without a person yields none. */
const findHashKeysText = `
  SELECT k.place, o.feature_flag_key, o.hash_key
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, distinct_id, place)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  LEFT JOIN flag_hash_key_override AS o ON o.person_id = d.person_id`

/** Ordinals ascend with offsets. */
const countIdentifiesText = `
  SELECT k.place, i.ordinal + 1
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, hash, place)
  CROSS JOIN LATERAL (
    SELECT ordinal FROM cookieless_identify AS c
    WHERE c.project_id = k.project_id AND c.hash = k.hash ORDER BY c.log_offset DESC LIMIT 1
  ) AS i`

interface GroupName {
  readonly projectId: number
  readonly typeIndex: number
  readonly key: string
}

function projectOf({ projectId }: { readonly projectId: number }): string {
  return String(projectId)
}

/** A row's texts: look-ups that share the row may want different properties of it. */
interface PersonText {
  readonly uuid: string
  readonly propertiesJson: string
  readonly createdAtMs: number
}

interface PersonName {
  readonly projectId: number
  readonly distinctId: string
}

/** The state has to be migrated. Opens nothing before the first look-up. */
export function openPostgresSubjectStore(options: {
  url: string
  logger: Logger
}): SubjectStore & HashKeyOverrideReader & CookielessVisitors & { close(): Promise<void> } {
  const pool = openPool({
    ...options,
    name: 'subjects',
    sizeMax: sessionsMax,
    statementMsMax,
    connectMsMax,
    isIndexed: true,
  })
  const persons: LookUps<PersonName, PersonText> = batchLookUps(underWayMax, projectOf, names =>
    findPersons(pool, names),
  )
  const staticCohorts: LookUps<PersonName, ReadonlySet<number>> = batchLookUps(underWayMax, projectOf, names =>
    findStaticCohorts(pool, names),
  )
  const groups: LookUps<GroupName, string> = batchLookUps(underWayMax, projectOf, names => findGroups(pool, names))
  const hashKeys: LookUps<PersonName, readonly HashKeyRow[]> = batchLookUps(underWayMax, projectOf, names =>
    findHashKeys(pool, names),
  )
  const identifies: LookUps<VisitorName, number> = batchLookUps(underWayMax, projectOf, names =>
    countIdentifies(pool, names),
  )
  return {
    // Text in PostgreSQL holds no NUL, so such an id finds nothing; in a statement it would fail all its look-ups.
    findPerson: async (projectId, distinctId, wanted) => {
      if (distinctId.includes('\0')) return null
      const found = await persons.find(`${projectId} ${distinctId}`, { projectId, distinctId })
      if (found === null) return null
      const { uuid, propertiesJson, createdAtMs } = found
      return { uuid, properties: propertiesOf(propertiesJson, wanted), createdAtMs }
    },
    findStaticCohorts: async (projectId, distinctId) =>
      (distinctId.includes('\0')
        ? null
        : await staticCohorts.find(`${projectId} ${distinctId}`, { projectId, distinctId })) ?? noCohorts,
    findGroup: async (projectId, typeIndex, key, wanted) => {
      if (key.includes('\0')) return null
      const found = await groups.find(`${projectId} ${typeIndex} ${key}`, { projectId, typeIndex, key })
      return found === null ? null : { properties: propertiesOf(found, wanted) }
    },
    findHashKeys: (projectId, distinctId) =>
      distinctId.includes('\0') ? null : hashKeys.find(`${projectId} ${distinctId}`, { projectId, distinctId }),
    countIdentifies: async (projectId, hash) =>
      (await identifies.find(`${projectId} ${hash}`, { projectId, hash })) ?? 0,
    close: () => pool.end(),
  }
}

async function findPersons(pool: Pool, names: readonly PersonName[]): Promise<(PersonText | null)[]> {
  const values = [names.map(({ projectId }) => projectId), names.map(({ distinctId }) => distinctId)]
  const rows = await find<[number, string, string, number]>(pool, 'find-persons', findPersonsText, values)
  const found: (PersonText | null)[] = names.map(() => null)
  for (const [place, uuid, propertiesJson, createdAtMs] of rows)
    found[place - 1] = { uuid, propertiesJson, createdAtMs }
  return found
}

const noCohorts: ReadonlySet<number> = new Set()

async function findStaticCohorts(pool: Pool, names: readonly PersonName[]): Promise<(ReadonlySet<number> | null)[]> {
  const values = [names.map(({ projectId }) => projectId), names.map(({ distinctId }) => distinctId)]
  const rows = await find<[number, number]>(pool, 'find-static-cohorts', findStaticCohortsText, values)
  const found: (Set<number> | null)[] = names.map(() => null)
  for (const [place, cohortId] of rows) {
    found[place - 1] ??= new Set()
    found[place - 1]!.add(cohortId)
  }
  return found
}

async function findGroups(pool: Pool, names: readonly GroupName[]): Promise<(string | null)[]> {
  const values = [
    names.map(({ projectId }) => projectId),
    names.map(({ typeIndex }) => typeIndex),
    names.map(({ key }) => key),
  ]
  const rows = await find<[number, string]>(pool, 'find-groups', findGroupsText, values)
  const found: (string | null)[] = names.map(() => null)
  for (const [place, propertiesJson] of rows) found[place - 1] = propertiesJson
  return found
}

async function findHashKeys(pool: Pool, names: readonly PersonName[]): Promise<(HashKeyRow[] | null)[]> {
  const values = [names.map(({ projectId }) => projectId), names.map(({ distinctId }) => distinctId)]
  const rows = await find<[number, ...(HashKeyRow | [null, null])]>(pool, 'find-hash-keys', findHashKeysText, values)
  const found: (HashKeyRow[] | null)[] = names.map(() => null)
  for (const [place, flagKey, hashKey] of rows) {
    found[place - 1] ??= []
    if (flagKey !== null) found[place - 1]!.push([flagKey, hashKey])
  }
  return found
}

async function countIdentifies(pool: Pool, names: readonly VisitorName[]): Promise<(number | null)[]> {
  const values = [names.map(({ projectId }) => projectId), names.map(({ hash }) => hash)]
  const rows = await find<[number, number]>(pool, 'count-identifies', countIdentifiesText, values)
  const found: (number | null)[] = names.map(() => null)
  for (const [place, count] of rows) found[place - 1] = count
  return found
}

async function find<Row extends unknown[]>(pool: Pool, name: string, text: string, values: unknown[]): Promise<Row[]> {
  try {
    return (await pool.query<Row>({ name, text, values, rowMode: 'array' })).rows
  } catch (cause) {
    throw toPostgresPortError(cause)
  }
}
