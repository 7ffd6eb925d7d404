// The remaining work of publishing and undoing an import job. Each item is deleted in the transaction that completes
// it, so the lists hold only open work.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { toStagingId } from '#core/imports/import-job.ts'
import type { ImportWorkStore } from '#ports/state/import-job-store.ts'
import type { StateSchema } from '../tables/schema.ts'
import { importJobOf, jobColumns } from './import-job-queries.ts'
import { parseUndoRecord } from './undo-record-text.ts'

const clearedRowsMax = 2_000
/** Each holds a person as it was before and afterwards. */
const deletedUndoRecordsMax = 500
/** One more job at a time is discarded, so there are hardly ever more. */
const forgottenJobsMax = 100

/** Whether the marks name the job; some others may match, too. See `core/persons/property-marks-text.ts`. */
function marksMayNameJob(importJobId: number) {
  return sql<boolean>`(property_marks LIKE ${`%",${importJobId}]%`} OR property_marks LIKE ${`%",${importJobId},%`})`
}

export function importWorkQueries(db: Kysely<StateSchema>): ImportWorkStore {
  return {
    async listImportWork() {
      const rows = await db
        .selectFrom('import_job')
        .select(jobColumns)
        .where('state', 'in', ['publishing', 'discarding'])
        .orderBy('updated_at')
        .orderBy('id')
        .execute()
      return rows.map(importJobOf)
    },

    async listJobsOfGoneProjects() {
      const rows = await db
        .selectFrom('import_job')
        .innerJoin('project', 'project.id', 'import_job.project_id')
        .select(jobColumns.map(column => `import_job.${column}` as const))
        .where('project.deleted', '=', 1)
        .where(({ and, or, eb, exists, selectFrom }) =>
          or([
            eb('import_job.state', 'not in', ['published', 'discarded']),
            and([
              eb('import_job.state', '=', 'published'),
              exists(selectFrom('import_image').select('subject').whereRef('import_job_id', '=', 'import_job.id')),
            ]),
          ]),
        )
        .orderBy('import_job.id')
        .execute()
      return rows.map(importJobOf)
    },

    async listImportLinks(importJobId, limit) {
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

    async listStagedIds(importJobId, limit) {
      const rows = await db
        .selectFrom('person_distinct_id')
        .select('distinct_id')
        .where('project_id', '=', toStagingId(importJobId))
        .orderBy('distinct_id')
        .limit(limit)
        .execute()
      return rows.map(row => row.distinct_id)
    },

    async listStagedPersonlessIds(importJobId, after, limit) {
      const rows = await db
        .selectFrom('personless_distinct_id')
        .select('distinct_id')
        .where('project_id', '=', toStagingId(importJobId))
        .$if(after !== null, query => query.where('distinct_id', '>', after!))
        .orderBy('distinct_id')
        .limit(limit)
        .execute()
      return rows.map(row => row.distinct_id)
    },

    async listStagedGroups(importJobId, limit) {
      const rows = await db
        .selectFrom('group')
        .select(['group_type_index', 'group_key'])
        .where('project_id', '=', toStagingId(importJobId))
        .orderBy('group_type_index')
        .orderBy('group_key')
        .limit(limit)
        .execute()
      return rows.map(row => ({ typeIndex: row.group_type_index, key: row.group_key }))
    },

    async listUndoRecords(importJobId, kind, limit) {
      const rows = await db
        .selectFrom('import_image')
        .selectAll()
        .where('import_job_id', '=', importJobId)
        .where('kind', '=', kind)
        .orderBy('subject')
        .limit(limit)
        .execute()
      return rows.map(parseUndoRecord)
    },

    async findUndoRecords(importJobIds, kind, subjects) {
      if (subjects.length === 0 || importJobIds.length === 0) return []
      const rows = await db
        .selectFrom('import_image')
        .selectAll()
        .where('import_job_id', 'in', [...importJobIds])
        .where('kind', '=', kind)
        .where('subject', 'in', [...subjects])
        .execute()
      return rows.map(parseUndoRecord)
    },

    async findAssignments(importJobId, uuids) {
      if (uuids.length === 0) return []
      const rows = await db
        .selectFrom('import_image')
        .selectAll()
        .where('import_job_id', '=', importJobId)
        .where('kind', '=', 'assignments')
        .where('subject', 'in', [...uuids])
        .execute()
      return rows.map(parseUndoRecord).flatMap(record => {
        if (record.kind !== 'assignments' || record.before === null || record.after === null) return []
        const { importJobId, projectId, subject: uuid, before, after } = record
        return { importJobId, projectId, uuid, own: before, survivorUuid: after.personUuid, taken: after }
      })
    },

    async listLaterImportJobs({ id, projectId, publishedAtMs }) {
      if (publishedAtMs === null) return []
      const rows = await db
        .selectFrom('import_job')
        .select('id')
        .where('project_id', '=', projectId)
        .where('implicit_day', 'is', null)
        .where('state', 'in', ['published', 'discarding'])
        .where(sql<boolean>`(published_at, id) > (${publishedAtMs}, ${id})`)
        .orderBy('published_at')
        .orderBy('id')
        .execute()
      return rows.map(row => Number(row.id))
    },

    async listJobsNamingGroupType(projectId, typeIndex) {
      const rows = await db
        .selectFrom('import_job as j')
        .innerJoin('import_image as i', 'i.import_job_id', 'j.id')
        .select('j.id')
        .where('j.project_id', '=', projectId)
        .where('i.kind', '=', 'group_type')
        .where('i.subject', '=', String(typeIndex))
        .orderBy(sql`j.published_at IS NULL`)
        .orderBy('j.published_at')
        .orderBy('j.id')
        .execute()
      return rows.map(({ id }) => Number(id))
    },

    async findIdsOfPersons(projectId, uuids) {
      if (uuids.length === 0) return new Map()
      const rows = await db
        .selectFrom('person as p')
        .innerJoin('person_distinct_id as d', 'd.person_id', 'p.id')
        .select(({ fn }) => ['p.uuid', fn.min('d.distinct_id').as('distinct_id')])
        .where('p.project_id', '=', projectId)
        .where('p.uuid', 'in', [...uuids])
        .groupBy('p.uuid')
        .execute()
      return new Map(rows.map(row => [row.uuid, row.distinct_id]))
    },

    async listMarkedPersons(job, after, limit) {
      const rows = await db
        .selectFrom('person')
        .select(['id', 'uuid'])
        .where('project_id', '=', job.projectId)
        .where(marksMayNameJob(job.id))
        .$if(after !== null, query => query.where('id', '>', after!))
        .orderBy('id')
        .limit(limit)
        .execute()
      return rows.map(row => ({ cursor: Number(row.id), uuid: row.uuid }))
    },

    async listMarkedGroups(job, after, limit) {
      const rows = await db
        .selectFrom('group')
        .select(['group_type_index', 'group_key'])
        .where('project_id', '=', job.projectId)
        .where(marksMayNameJob(job.id))
        .$if(after !== null, query =>
          query.where(sql<boolean>`(group_type_index, group_key) > (${after!.typeIndex}, ${after!.key})`),
        )
        .orderBy('group_type_index')
        .orderBy('group_key')
        .limit(limit)
        .execute()
      return rows.map(row => ({ typeIndex: row.group_type_index, key: row.group_key }))
    },

    async noteImportFailure(importJobId, failure) {
      await db
        .updateTable('import_job')
        .set({ failure_code: failure?.code ?? null, failing_since: failure?.sinceMs ?? null })
        .where('id', '=', importJobId)
        .execute()
    },

    async deleteUndoRecords(importJobId) {
      const undoRecords = { table: 'import_image', owner: 'import_job_id', key: ['kind', 'subject'] }
      while (await deleteFirstRows(db, { ...undoRecords, value: importJobId, limit: deletedUndoRecordsMax }))
        await nextTurn()
    },

    async forgetGenerated(importJobId) {
      const job = await db
        .selectFrom('import_job')
        .select('project_id')
        .where('id', '=', importJobId)
        .executeTakeFirst()
      if (job === undefined) return
      for (let after: string | null = ''; after !== null; await nextTurn())
        after = await deleteSomeGenerated(db, { importJobId, projectId: job.project_id, after })
    },

    forgetDiscardedJobs: (projectId, keptCount) =>
      db.transaction().execute(async trx => {
        const discarded = trx
          .selectFrom('import_job')
          .where('project_id', '=', projectId)
          .where('state', '=', 'discarded')
          .where('implicit_day', 'is', null)
        const { count } = await discarded
          .select(({ fn }) => fn.countAll<number>().as('count'))
          .executeTakeFirstOrThrow()
        if (Number(count) <= keptCount) return
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

    async listFinalImportJobs(publishedBeforeMs) {
      const rows = await db
        .selectFrom('import_job')
        .select('id')
        .where('state', '=', 'published')
        .where(({ and, eb, exists, or, selectFrom }) =>
          or([
            and([eb('published_at', '<', publishedBeforeMs), eb('final_at', 'is', null)]),
            and([
              eb('final_at', 'is not', null),
              exists(selectFrom('import_image').select('subject').whereRef('import_job_id', '=', 'import_job.id')),
            ]),
          ]),
        )
        .execute()
      return rows.map(({ id }) => Number(id))
    },

    async makeImportJobFinal(importJobId, nowMs) {
      await db
        .updateTable('import_job')
        .set({ final_at: nowMs })
        .where('id', '=', importJobId)
        .where('state', '=', 'published')
        .where('final_at', 'is', null)
        .execute()
      const job = await db
        .selectFrom('import_job')
        .select('final_at')
        .where('id', '=', importJobId)
        .where('state', '=', 'published')
        .executeTakeFirst()
      return job !== undefined && job.final_at !== null
    },

    async dateBackImportJobs(nowMs) {
      await db
        .updateTable('import_job')
        .set({ published_at: nowMs })
        .where('state', '=', 'published')
        .where('published_at', '>', nowMs)
        .execute()
    },

    clearStaging: async importJobId => {
      // A staging overlay may have very many rows, and its caller repeats the call at once.
      await nextTurn()
      return db.transaction().execute(async trx => {
        const stagingId = toStagingId(importJobId)
        const clear = (table: string, column: string, of: string, value: number) =>
          deleteSomeRows(trx, { table, column, of, value })
        let isMore = await clear('person_distinct_id', 'distinct_id', 'project_id', stagingId)
        // Their distinct ids go first.
        if (!isMore) isMore = await clear('person', 'id', 'project_id', stagingId)
        isMore = (await clear('personless_distinct_id', 'distinct_id', 'project_id', stagingId)) || isMore
        isMore = (await clear('import_link', 'id', 'import_job_id', importJobId)) || isMore
        const groups = { table: 'group', owner: 'project_id', key: ['group_type_index', 'group_key'] }
        return (await deleteFirstRows(trx, { ...groups, value: stagingId, limit: clearedRowsMax })) || isMore
      })
    },
  }
}

/**
 * Deletes some of the rows whose column `of` has the value; `column` identifies each row. @returns whether there may be
 * more.
 */
async function deleteSomeRows(
  db: Kysely<StateSchema>,
  { table, column, of, value }: { table: string; column: string; of: string; value: number },
): Promise<boolean> {
  const [from, name, owner] = [sql.table(table), sql.ref(column), sql.ref(of)]
  const { numAffectedRows } = await sql`
    DELETE FROM ${from} WHERE ${owner} = ${value}
    AND ${name} IN (SELECT ${name} FROM ${from} WHERE ${owner} = ${value} LIMIT ${clearedRowsMax})`.execute(db)
  return numAffectedRows === BigInt(clearedRowsMax)
}

/**
 * Deletes the first rows of an owner, in the order of their key: other writers to the state wait until a statement
 * ends.
 * @returns whether there may be more.
 */
async function deleteFirstRows(
  db: Kysely<StateSchema>,
  rows: {
    readonly table: string
    readonly owner: string
    readonly value: number
    /** With the owner, the table's own key. */
    readonly key: readonly string[]
    readonly limit: number
  },
): Promise<boolean> {
  const ofOwner = sql`FROM ${sql.table(rows.table)} WHERE ${sql.ref(rows.owner)} = ${rows.value}`
  const columns = sql.join(rows.key.map(column => sql.ref(column)))
  const found = await sql<Record<string, number | string>>`
    SELECT ${columns} ${ofOwner} ORDER BY ${columns} LIMIT 1 OFFSET ${rows.limit - 1}`.execute(db)
  const last = found.rows[0]
  const upToLast =
    last === undefined ? sql`` : sql`AND (${columns}) <= (${sql.join(rows.key.map(column => last[column]))})`
  await sql`DELETE ${ofOwner} ${upToLast}`.execute(db)
  return last !== undefined
}

/**
 * Only rows of the project, since the table has events of all projects. @returns where to continue; null at the end.
 */
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
