// Stored persons and groups for evaluations, on PostgreSQL or on a replica of it. The look-ups of one turn of the event
// loop become one statement for each kind. While enough statements are running, look-ups wait for the next statement, so a
// busier front puts more look-ups into each statement.

import { parseStoredProperties } from '#adapters/sql/tables/rows.ts'
import type { VisitorName } from '#core/processing/visitors.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { HashKeyOverrideReader, HashKeyRow, SubjectStore } from '#ports/state/subject-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { createLookUpBatcher, type LookUpBatcher } from './look-up-batcher.ts'
import { openPool } from './open-postgres.ts'

/**
 * The most statements of each kind that run at once. Each takes this process about 70 µs, plus about 3 µs for each name.
 * With few statements at once, a busy front's look-ups share them; at a round trip of 1 ms, 1,000 look-ups per ms are still
 * possible.
 */
const underWayMax = 2
const sessionsMax = 4 * underWayMax
/** The time limit of a statement. An evaluation gives up sooner; this limit only frees the session. */
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

/** A person without hash keys yields one row of NULLs; a distinct id without a person yields no row. */
const findHashKeysText = `
  SELECT k.place, o.feature_flag_key, o.hash_key
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, distinct_id, place)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  LEFT JOIN flag_hash_key_override AS o ON o.person_id = d.person_id`

/** Counts a visitor's `$identify` events: their ordinals ascend with offsets, so the last ordinal gives the count. */
const countIdentifiesText = `
  SELECT k.place, i.ordinal + 1
  FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS k (project_id, hash, place)
  CROSS JOIN LATERAL (
    SELECT ordinal FROM cookieless_identify AS c
    WHERE c.project_id = k.project_id AND c.hash = k.hash ORDER BY c.log_offset DESC LIMIT 1
  ) AS i`

/** All property texts of a row, since the look-ups that share the row may need different properties of it. */
interface PersonText {
  readonly uuid: string
  readonly propertiesJson: string
  readonly createdAtMs: number
}

interface PersonName {
  readonly projectId: number
  readonly distinctId: string
}

interface GroupName {
  readonly projectId: number
  readonly typeIndex: number
  readonly key: string
}

const noCohorts: ReadonlySet<number> = new Set()

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
  /**
   * @param columnsOf returns a name's values for the columns after the project id. @param add adds a row to what was found
   * for its name before.
   */
  const lookUps = <Name extends { readonly projectId: number }, Found, Row extends unknown[]>(
    [name, text]: readonly [string, string],
    columnsOf: (name: Name) => readonly unknown[],
    add: (row: Row, found: Found | null) => Found,
  ): LookUpBatcher<Name, Found> =>
    createLookUpBatcher(
      underWayMax,
      ({ projectId }) => String(projectId),
      async names => {
        const columns = names.map(each => [each.projectId, ...columnsOf(each)])
        const values = columns[0]!.map((_, index) => columns.map(column => column[index]))
        const { rows } = await pool.query<[number, ...Row]>({ name, text, values, rowMode: 'array' })
        const found: (Found | null)[] = names.map(() => null)
        for (const [place, ...row] of rows) found[place - 1] = add(row as unknown as Row, found[place - 1]!)
        return found
      },
    )
  const toIdList = ({ distinctId }: PersonName) => [distinctId]
  const persons = lookUps<PersonName, PersonText, [string, string, number]>(
    ['find-persons', findPersonsText],
    toIdList,
    ([uuid, propertiesJson, createdAtMs]) => ({ uuid, propertiesJson, createdAtMs }),
  )
  const staticCohorts = lookUps<PersonName, Set<number>, [number]>(
    ['find-static-cohorts', findStaticCohortsText],
    toIdList,
    ([cohortId], found) => (found ?? new Set()).add(cohortId),
  )
  const groups = lookUps<GroupName, string, [string]>(
    ['find-groups', findGroupsText],
    ({ typeIndex, key }) => [typeIndex, key],
    ([propertiesJson]) => propertiesJson,
  )
  const hashKeys = lookUps<PersonName, HashKeyRow[], [...HashKeyRow] | [null, null]>(
    ['find-hash-keys', findHashKeysText],
    toIdList,
    ([flagKey, hashKey], found) => [...(found ?? []), ...(flagKey === null ? [] : [[flagKey, hashKey] as const])],
  )
  const identifies = lookUps<VisitorName, number, [number]>(
    ['count-identifies', countIdentifiesText],
    ({ hash }) => [hash],
    ([count]) => count,
  )
  return {
    // PostgreSQL stores no NUL, so an id with NUL cannot be found; in a statement, it would make all look-ups of the batch
    // fail.
    findPerson: async (projectId, distinctId, wanted) => {
      if (distinctId.includes('\0')) return null
      const found = await persons.find(`${projectId} ${distinctId}`, { projectId, distinctId })
      if (found === null) return null
      const { uuid, propertiesJson, createdAtMs } = found
      return { uuid, properties: parseStoredProperties(propertiesJson, wanted), createdAtMs }
    },
    findStaticCohorts: async (projectId, distinctId) =>
      (distinctId.includes('\0')
        ? null
        : await staticCohorts.find(`${projectId} ${distinctId}`, { projectId, distinctId })) ?? noCohorts,
    findGroup: async (projectId, typeIndex, key, wanted) => {
      if (key.includes('\0')) return null
      const found = await groups.find(`${projectId} ${typeIndex} ${key}`, { projectId, typeIndex, key })
      return found === null ? null : { properties: parseStoredProperties(found, wanted) }
    },
    findHashKeys: (projectId, distinctId) =>
      distinctId.includes('\0') ? null : hashKeys.find(`${projectId} ${distinctId}`, { projectId, distinctId }),
    countIdentifies: async (projectId, hash) =>
      (await identifies.find(`${projectId} ${hash}`, { projectId, hash })) ?? 0,
    close: () => pool.end(),
  }
}
