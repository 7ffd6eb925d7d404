// The remaining work of publishing and undoing an import job. Each item of a list is deleted in the transaction that
// completes it, so the lists hold only open work.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Assignments } from '#core/imports/import-changes.ts'
import { importJobStates, toStagingProjectId } from '#core/imports/import-job.ts'
import type { ImportWorkStore, StagedItems } from '#ports/state/import-job-store.ts'
import { countRows } from '../tables/read-pages.ts'
import { parseStoredJsonObject } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'
import { jobColumns, toImportJob } from './import-job-queries.ts'

const clearedRowsMax = 2_000
/**
 * The most discarded jobs that one call deletes. Jobs are discarded one at a time, so there are hardly ever more to delete.
 */
const forgottenJobsMax = 100

const unfinishedStates = importJobStates.filter(state => state !== 'published' && state !== 'discarded')

type StagedLists = {
  readonly [Kind in keyof StagedItems]: (
    importJobId: number,
    limit: number,
    afterId: string | null,
  ) => Promise<StagedItems[Kind][]>
}

export function createImportWorkQueries(db: Kysely<StateSchema>): ImportWorkStore {
  const staged = createStagedLists(db)
  return {
    async listImportWork() {
      const rows = await db
        .selectFrom('import_job as job')
        .leftJoin('project', 'project.id', 'job.project_id')
        .select(['project.deleted', ...jobColumns.map(column => `job.${column}` as const)])
        .where('job.state', 'in', unfinishedStates)
        .where(({ or, eb }) => or([eb('job.state', 'in', ['publishing', 'discarding']), eb('project.deleted', '=', 1)]))
        .orderBy('job.updated_at')
        .orderBy('job.id')
        .execute()
      return rows.map(row => ({ ...toImportJob(row), isProjectGone: row.deleted === 1 }))
    },

    async recordImportFailure(importJobId, failure) {
      await db
        .updateTable('import_job')
        .set({ failure_code: failure?.code ?? null, failing_since: failure?.sinceMs ?? null })
        .where('id', '=', importJobId)
        .execute()
    },

    listStagedItems: (importJobId, kind, limit, afterId = null) => staged[kind](importJobId, limit, afterId),

    async listNamedGroupTypes(importJobId) {
      const rows = await db
        .selectFrom('import_group_type')
        .selectAll()
        .where('import_job_id', '=', importJobId)
        .orderBy('group_type_index')
        .execute()
      return rows.map(row => ({
        ...{ importJobId, typeIndex: row.group_type_index, name: row.name, isAdded: row.is_added === 1 },
      }))
    },

    async findAssignments(importJobId, uuids) {
      if (uuids.length === 0) return []
      const rows = await db
        .selectFrom('import_assignments')
        .selectAll()
        .where('import_job_id', '=', importJobId)
        .where('person_uuid', 'in', [...uuids])
        .execute()
      return rows.map(row => ({
        importJobId,
        uuid: row.person_uuid,
        own: parseAssignments(row.own),
        survivorUuid: row.survivor_uuid,
        taken: parseAssignments(row.taken),
      }))
    },

    async clearImportJob(importJobId, of) {
      // Lets the event loop run first: there may be very many rows, and the caller repeats the call at once.
      await nextTurn()
      const isMore = await deleteSomeRows(db, [
        ...stagedTables.map(([table, key]) => ({
          table,
          key,
          owner: 'project_id',
          value: toStagingProjectId(importJobId),
        })),
        { table: 'import_link', key: ['timestamp', 'uuid'], owner: 'import_job_id', value: importJobId },
        ...(of === 'everything' ? listUndoTables(importJobId) : []),
      ])
      if (!isMore && of === 'everything') await deleteGenerated(db, importJobId)
      return isMore
    },

    async finalizeImportJobs(publishedBeforeMs, { nowMs, isTrusted }) {
      const published = db.updateTable('import_job').where('state', '=', 'published')
      if (isTrusted) await published.set({ published_at: nowMs }).where('published_at', '>', nowMs).execute()
      await published
        .set({ final_at: nowMs })
        .where('final_at', 'is', null)
        .where(({ or, eb, selectFrom }) =>
          or([
            eb('published_at', '<', publishedBeforeMs),
            eb('project_id', 'in', selectFrom('project').select('id').where('deleted', '=', 1)),
          ]),
        )
        .execute()
      const rows = await db
        .selectFrom('import_job')
        .select('id')
        .where('state', '=', 'published')
        .where('final_at', 'is not', null)
        .where(({ or, exists, selectFrom }) =>
          or(
            (['import_assignments', 'import_group_type'] as const).map(table =>
              exists(selectFrom(table).select('import_job_id').whereRef('import_job_id', '=', 'import_job.id')),
            ),
          ),
        )
        .execute()
      for (const { id } of rows) while (await deleteSomeRows(db, listUndoTables(Number(id)))) await nextTurn()
    },

    deleteDiscardedJobs: (projectId, keptCount) =>
      db.transaction().execute(async trx => {
        const discarded = trx
          .selectFrom('import_job')
          .where('project_id', '=', projectId)
          .where('state', '=', 'discarded')
          .where('implicit_day', 'is', null)
        if ((await countRows(discarded)) <= keptCount) return
        const rows = await discarded
          .select('id')
          .orderBy('discarded_at', 'desc')
          .orderBy('id', 'desc')
          .offset(keptCount)
          .limit(forgottenJobsMax)
          .execute()
        const ids = rows.map(({ id }) => id)
        await trx.deleteFrom('import_note').where('import_job_id', 'in', ids).execute()
        await trx.deleteFrom('import_note_sample').where('import_job_id', 'in', ids).execute()
        await trx.deleteFrom('import_job').where('id', 'in', ids).execute()
      }),
  }
}

function createStagedLists(db: Kysely<StateSchema>): StagedLists {
  const listIds =
    (table: 'person_distinct_id' | 'personless_distinct_id') =>
    async (importJobId: number, limit: number, afterId: string | null) => {
      const rows = await db
        .selectFrom(table)
        .select('distinct_id')
        .where('project_id', '=', toStagingProjectId(importJobId))
        .$if(afterId !== null, query => query.where('distinct_id', '>', afterId!))
        .orderBy('distinct_id')
        .limit(limit)
        .execute()
      return rows.map(row => row.distinct_id)
    }
  return {
    ids: listIds('person_distinct_id'),
    personlessIds: listIds('personless_distinct_id'),

    async links(importJobId, limit) {
      const rows = await db
        .selectFrom('import_link')
        .selectAll()
        .where('import_job_id', '=', importJobId)
        .orderBy('timestamp')
        .orderBy('uuid')
        .orderBy('id')
        .limit(limit)
        .execute()
      return rows.map(row => ({
        id: Number(row.id),
        link: {
          importJobId,
          distinctId: row.distinct_id,
          otherId: row.other_id,
          dangerously: row.dangerously === 1,
          timestampMs: Number(row.timestamp),
          uuid: row.uuid,
        },
      }))
    },

    async groups(importJobId, limit) {
      const rows = await db
        .selectFrom('group')
        .select(['group_type_index', 'group_key'])
        .where('project_id', '=', toStagingProjectId(importJobId))
        .orderBy('group_type_index')
        .orderBy('group_key')
        .limit(limit)
        .execute()
      return rows.map(row => ({ typeIndex: row.group_type_index, key: row.group_key }))
    },
  }
}

/** @throws PortError `corrupt` */
function parseAssignments(text: string): Assignments {
  const { hashKeys, cohortIds } = parseStoredJsonObject(text) as unknown as Assignments
  return { hashKeys, cohortIds }
}

/**
 * The rows of a table whose column `owner` has the value `value`, in the order of the columns `key`, for which there is an
 * index.
 */
interface OwnedRows {
  readonly table: string
  readonly owner: string
  readonly value: number
  readonly key: readonly string[]
}

/** The tables of the staged rows, in the order of deletion: distinct ids are deleted before their persons. */
const stagedTables = [
  ['person_distinct_id', ['distinct_id']],
  ['person', ['id']],
  ['personless_distinct_id', ['distinct_id']],
  ['group', ['group_type_index', 'group_key']],
] as const

function listUndoTables(importJobId: number): OwnedRows[] {
  const ofJob = { owner: 'import_job_id', value: importJobId }
  return [
    { table: 'import_assignments', key: ['person_uuid'], ...ofJob },
    { table: 'import_group_type', key: ['group_type_index'], ...ofJob },
  ]
}

/**
 * Deletes the first rows of the tables, one table after another, in the order of their keys. Deletes only some rows at a
 * time, since other writers to the state wait until a statement ends.
 * @returns whether there may be more.
 */
async function deleteSomeRows(db: Kysely<StateSchema>, tables: readonly OwnedRows[]): Promise<boolean> {
  for (const { table, owner, value, key } of tables) {
    const ofOwner = sql`FROM ${sql.table(table)} WHERE ${sql.ref(owner)} = ${value}`
    const columns = sql.join(key.map(column => sql.ref(column)))
    const found = await sql<Record<string, number | string>>`
      SELECT ${columns} ${ofOwner} ORDER BY ${columns} LIMIT 1 OFFSET ${clearedRowsMax - 1}`.execute(db)
    const last = found.rows[0]
    const upToLast =
      last === undefined ? sql`` : sql`AND (${columns}) <= (${sql.join(key.map(column => last[column]))})`
    await sql`DELETE ${ofOwner} ${upToLast}`.execute(db)
    if (last !== undefined) return true
  }
  return false
}

/** Deletes a job's rows of `import_generated` in steps, since the table has rows of all projects and jobs. */
async function deleteGenerated(db: Kysely<StateSchema>, importJobId: number): Promise<void> {
  const job = await db.selectFrom('import_job').select('project_id').where('id', '=', importJobId).executeTakeFirst()
  if (job === undefined) return
  for (let after: string | null = ''; after !== null; await nextTurn())
    after = await deleteSomeGenerated(db, { importJobId, projectId: job.project_id, after })
}

/** @returns the uuid after which to continue; null when all rows have been visited. */
async function deleteSomeGenerated(
  db: Kysely<StateSchema>,
  { importJobId, projectId, after }: { importJobId: number; projectId: number; after: string },
): Promise<string | null> {
  const last = await db
    .selectFrom('import_generated')
    .select('uuid')
    .where('project_id', '=', projectId)
    .where('uuid', '>', after)
    .orderBy('uuid')
    .offset(clearedRowsMax - 1)
    .limit(1)
    .executeTakeFirst()
  await db
    .deleteFrom('import_generated')
    .where('project_id', '=', projectId)
    .where('uuid', '>', after)
    .$if(last !== undefined, query => query.where('uuid', '<=', last!.uuid))
    .where('import_job_id', '=', importJobId)
    .execute()
  return last?.uuid ?? null
}
