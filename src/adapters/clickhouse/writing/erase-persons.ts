// Removes the rows of erased persons by mutations, which rewrite the affected parts without delaying inserts. Rows to
// remove are counted before and after, so that nothing depends on the server's list of mutations.

import { noRemovedRows, type PersonErasure } from '#core/persons/erasure.ts'
import type { RowRange } from '#core/processing/row-ranges.ts'
import type { CountedRows, PersonEraser } from '#ports/events/event-store-upkeep.ts'
import { PortError } from '#ports/port-error.ts'
import {
  type ClickHouseClient,
  type ClickHouseClients,
  longReadSettings,
  readRows,
} from '../connection/clickhouse-clients.ts'
import { isAccessDenied } from '../connection/clickhouse-errors.ts'
import { versionsPerErasure } from '../parameters/override-version.ts'
import { invalidateAllCachedUsage } from './flag-call-days.ts'
import { knownTable } from './import-partitions.ts'
import { listRowRanges } from './row-ranges.ts'

interface ErasableTable {
  readonly table: string
  readonly isErased: (erasure: PersonErasure) => boolean
  /** The column that shows when a row was created: rows whose value is below `boundOf` were created before the erasure. */
  readonly made: 'erasures_before' | 'version'
  readonly boundOf: (erasure: PersonErasure) => number
  /** The column that names the row's subject, which is the distinct id or the person that was erased. */
  readonly subject: 'distinct_id' | 'uuid'
}

const byCount = { made: 'erasures_before', boundOf: ({ erasures }: PersonErasure) => erasures } as const

/** `events_pending` comes before `events`, so that rows published in between are found in `events`. */
const tables: readonly ErasableTable[] = [
  ...['events_pending', 'events', 'deduplicated_flag_calls', 'rejected_events'].map(table => ({
    table,
    isErased: ({ deletesEvents }: PersonErasure) => deletesEvents,
    ...byCount,
    subject: 'distinct_id' as const,
  })),
  {
    table: 'replay_messages',
    isErased: ({ deletesRecordings }) => deletesRecordings,
    ...byCount,
    subject: 'distinct_id',
  },
  {
    table: 'person_distinct_id_overrides',
    isErased: ({ keepsPerson }) => !keepsPerson,
    made: 'version',
    boundOf: ({ erasures }) => erasures * versionsPerErasure,
    subject: 'distinct_id',
  },
  {
    table: 'persons',
    isErased: ({ keepsPerson }) => !keepsPerson,
    made: 'version',
    boundOf: ({ mirrorVersion }) => mirrorVersion + 1,
    subject: 'uuid',
  },
]

const subjectsTable = 'erased_subjects'
const counted: readonly (readonly [keyof typeof noRemovedRows, string])[] = [
  ['events', 'events'],
  ['recordings', 'replay_messages'],
  ['rejectedEvents', 'rejected_events'],
  ['pendingEvents', 'events_pending'],
]
const subjectsPerInsert = 5_000

export function createPersonEraser(clients: Pick<ClickHouseClients, 'write'>): PersonEraser {
  return {
    countErasedRows: erasures =>
      clients.write(async (client, database) => {
        if (await isRemoving(client, database)) return 'under_way'
        await saveSubjects(client, database, erasures)
        const nothing: CountedRows = { ...noRemovedRows, pendingOfJobs: [] }
        const counts = new Map(erasures.map(({ id }) => [id, nothing]))
        for (const [name, table] of counted)
          for (const { id, importJobId, count } of await countByErasure(client, database, table, erasures)) {
            const known = counts.get(id)!
            const pending = name === 'pendingEvents' ? [{ importJobId, count }] : []
            const pendingOfJobs = [...known.pendingOfJobs, ...pending]
            counts.set(id, { ...known, [name]: known[name] + count, pendingOfJobs })
          }
        return counts
      }),

    removeErasedRows: (erasures, beforeRemoving) =>
      clients.write(async (client, database) => {
        if (await isRemoving(client, database)) return 'under_way'
        await saveSubjects(client, database, erasures)
        const left: string[] = []
        const emptied: RowRange[] = []
        for (const each of tables) {
          const condition = conditionSql(each, erasures, database)
          if (condition === null) continue
          if (!(await hasAnyRow(client, database, each.table, condition))) continue
          left.push(`ALTER TABLE ${database}.${each.table} DELETE WHERE ${condition}`)
          emptied.push(...(await findEmptiedRanges(client, database, each.table, condition)))
        }
        if (left.length === 0) {
          // The erasure also waits until `known_person_properties` has no row of its ids: the import job removes them in
          // its next step or retry.
          const isErased = `distinct_id IN (SELECT subject FROM ${database}.${subjectsTable})`
          if (await hasAnyRow(client, database, knownTable, isErased)) return 'under_way'
          await invalidateAllCachedUsage(client, database)
          await client.command({ query: `TRUNCATE TABLE ${database}.${subjectsTable}` })
          return 'done'
        }
        await beforeRemoving(emptied)
        for (const query of left)
          await client.command({
            query,
            clickhouse_settings: { mutations_sync: '0', allow_nondeterministic_mutations: 1 },
          })
        return 'under_way'
      }),
  }
}

/**
 * Stores the erased subjects in the table in which mutations look them up. Truncates the table first, which waits for
 * mutations that still read it.
 */
async function saveSubjects(client: ClickHouseClient, database: string, erasures: readonly PersonErasure[]) {
  await client.command({ query: `TRUNCATE TABLE ${database}.${subjectsTable}` })
  const values = erasures.flatMap(({ projectId, erasures: count, distinctIds, personUuids }) => [
    ...distinctIds.map(subject => [projectId, count, 'distinct_id', subject]),
    ...personUuids.map(subject => [projectId, count, 'uuid', subject]),
  ])
  for (let from = 0; from < values.length; from += subjectsPerInsert)
    await client.insert({
      table: `${database}.${subjectsTable}`,
      columns: ['project_id', 'erasures', 'kind', 'subject'],
      values: values.slice(from, from + subjectsPerInsert),
      format: 'JSONCompactEachRow',
    })
}

/** The erasures of one project that concern a table. */
interface OfProject {
  readonly projectId: number
  readonly erasures: readonly PersonErasure[]
}

function groupByProject(
  { isErased, subject }: ErasableTable,
  erasures: readonly PersonErasure[],
): readonly OfProject[] {
  const concerned = erasures.filter(
    erasure => isErased(erasure) && (subject === 'uuid' ? erasure.personUuids : erasure.distinctIds).length > 0,
  )
  const byId = Map.groupBy(concerned, ({ projectId }) => projectId)
  return Array.from(byId, ([projectId, erasures]) => ({ projectId, erasures }))
}

/**
 * SQL that selects the rows to remove from a table; null when none of the erasures concerns the table. It contains only
 * numbers: the engine keeps the texts of mutations, so they must not name erased subjects.
 */
function conditionSql(table: ErasableTable, erasures: readonly PersonErasure[], database: string): string | null {
  const conditions = groupByProject(table, erasures).map(of => `(${projectConditionSql(table, of, database)})`)
  return conditions.length === 0 ? null : conditions.join(' OR ')
}

/** One condition covers all erasures of the project, so that each row is read once, however many erasures there are. */
function projectConditionSql(table: ErasableTable, of: OfProject, database: string): string {
  const { made, subject, boundOf } = table
  const value = subject === 'uuid' ? 'toUUID(subject)' : 'subject'
  return `project_id = ${of.projectId} AND ${subject} IN (SELECT ${value} FROM ${subjectsSql(table, of, database)})
    AND ${made} < ${latestErasureSql(table, of, database, boundOf)}`
}

/** SQL of the number (`numberOf`) of the latest erasure that included a row's subject. */
function latestErasureSql(
  table: ErasableTable,
  of: OfProject,
  database: string,
  numberOf: (erasure: PersonErasure) => number,
): string {
  const counts = of.erasures.map(({ erasures }) => erasures).join(', ')
  const bySubject = `SELECT subject, transform(max(erasures), [${counts}], [${of.erasures.map(numberOf).join(', ')}], 0) AS number
    FROM ${subjectsSql(table, of, database)} GROUP BY subject ORDER BY subject`
  const groupArraySql = (column: string) => `(SELECT groupArray(${column}) FROM (${bySubject}))`
  return `transform(toString(${table.subject}), ${groupArraySql('subject')}, ${groupArraySql('number')}, 0)`
}

function subjectsSql({ subject }: ErasableTable, { projectId, erasures }: OfProject, database: string): string {
  const counts = erasures.map(each => each.erasures).join(', ')
  return `(SELECT subject, erasures FROM ${database}.${subjectsTable}
    WHERE project_id = ${projectId} AND erasures IN (${counts}) AND kind = '${subject}')`
}

/** Whether a mutation of an earlier call is still under way. @throws PortError when one fails. */
async function isRemoving(client: ClickHouseClient, database: string): Promise<boolean> {
  try {
    const running = await readRows<[string, string]>(client, undefined, {
      query: `SELECT table, latest_fail_reason FROM system.mutations
        WHERE database = {database:String} AND NOT is_done AND position(command, {subjects:String}) > 0`,
      query_params: { database, subjects: subjectsTable },
    })
    const failing = running.find(([, reason]) => reason !== '')
    if (failing !== undefined)
      throw new PortError('event-store', 'unavailable', new Error(`rows of ${failing[0]} stay: ${failing[1]}`))
    return running.length > 0
  } catch (error) {
    // If the user may not see mutations, none counts as under way; the server runs them all the same.
    if (isAccessDenied(error)) return false
    throw error
  }
}

async function countByErasure(
  client: ClickHouseClient,
  database: string,
  name: string,
  erasures: readonly PersonErasure[],
): Promise<readonly { readonly id: number; readonly importJobId: number; readonly count: number }[]> {
  const table = tables.find(each => each.table === name)!
  const job = name === 'events_pending' ? 'import_job_id' : '0'
  const counts = []
  for (const of of groupByProject(table, erasures)) {
    const erasure = latestErasureSql(table, of, database, each => each.erasures)
    const rows = await readRows<(number | string)[]>(client, undefined, {
      query: `SELECT ${erasure} AS erasure, ${job} AS job, count() FROM ${database}.${name} FINAL
        WHERE ${projectConditionSql(table, of, database)} GROUP BY erasure, job`,
      clickhouse_settings: longReadSettings,
    })
    for (const row of rows) {
      const [number, importJobId, count] = row.map(Number)
      const { id } = of.erasures.find(each => each.erasures === number)!
      counts.push({ id, importJobId: importJobId!, count: count! })
    }
  }
  return counts
}

/**
 * Whether a row matches the condition. Whether a row matches the condition. Uses the primary key, so it reads less than
 * `findEmptiedRanges`.
 */
async function hasAnyRow(
  client: ClickHouseClient,
  database: string,
  table: string,
  condition: string,
): Promise<boolean> {
  const rows = await readRows(client, undefined, {
    query: `SELECT 1 FROM ${database}.${table} WHERE ${condition} LIMIT 1`,
    clickhouse_settings: longReadSettings,
  })
  return rows.length > 0
}

/**
 * The ranges of the parts in which all rows are to be removed. One query finds all of them, since a merge may replace a
 * part at any moment. A merge between this query and the mutation can only join such parts with each other or with rows
 * that stay.
 */
async function findEmptiedRanges(
  client: ClickHouseClient,
  database: string,
  table: string,
  condition: string,
): Promise<RowRange[]> {
  const rows = await readRows<[string]>(client, undefined, {
    query: `SELECT _part FROM ${database}.${table} GROUP BY _part HAVING count() = countIf(${condition})`,
    clickhouse_settings: longReadSettings,
  })
  const parts = rows.map(([part]) => parseBlocks(part))
  if (parts.length === 0) return []
  const ranges = (await listRowRanges(client, database, [table])) ?? []
  return parts.flatMap(({ partition, from, to }) => {
    // Since the query, a merge may have joined the part into a larger part, whose range is used then.
    const range = ranges.find(range => range.partition === partition && range.from <= from && to <= range.to)
    return range === undefined ? [] : [{ ...range, from, to }]
  })
}

/** `0-202611_1_5_2_9` → partition `0-202611`, blocks 1 to 5; how often the part was merged and mutated is left out. */
function parseBlocks(part: string): Pick<RowRange, 'partition' | 'from' | 'to'> {
  const [partition, from, to] = part.split('_')
  return { partition: partition!, from: Number(from), to: Number(to) }
}
