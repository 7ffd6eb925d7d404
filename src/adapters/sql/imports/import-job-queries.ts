// Import jobs as the private API shows them.

import { type Kysely, sql } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import {
  type DescribedImportJob,
  encodeImportOptions,
  type ImportJob,
  type ImportOptions,
  parseImplicitJob,
  usualOptions,
} from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { RowOf } from '#core/resource.ts'
import { err, ok } from '#core/result.ts'
import { dayMs } from '#core/time.ts'
import type { ImportJobChange, ImportJobLimits, ImportJobStore, TooManyJobs } from '#ports/state/import-job-store.ts'
import { countRows, readPage } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toPartialResourceRow, toResourceItem } from '../tables/resource-rows.ts'
import { allocateId } from '../tables/revision-queries.ts'
import { parseStoredJsonObject, toAuthorText, toJsonText } from '../tables/rows.ts'
import { describedJobRow, importJobRow, type StateSchema } from '../tables/schema.ts'

const jobBytes = sql<number>`octet_length(plan) + octet_length(progress) + octet_length(name)`

/** All columns except the texts that clients provide about a job, which may be long. */
export const jobColumns = Object.values(importJobRow.fields).map(({ column }) => column)

export function createImportJobQueries(db: Kysely<StateSchema>): ImportJobStore {
  return {
    createImportJob: (job, limits, { by, atMs }) =>
      db.transaction().execute(async trx => {
        const tooMany = await findExceededLimit(trx, job.projectId, limits, atMs)
        if (tooMany !== null) return err(tooMany)
        const row = await trx
          .insertInto('import_job')
          .values({
            id: await allocateId(trx, 'import_job'),
            public_id: job.publicId,
            stored_rows: 0,
            project_id: job.projectId,
            name: job.name,
            source: job.source,
            state: 'planned',
            options: JSON.stringify(job.options),
            plan: toJsonText(job.plan),
            progress: '{}',
            created_by: toAuthorText(by),
            created_at: atMs,
            updated_at: atMs,
          })
          .returningAll()
          .executeTakeFirstOrThrow()
        const created = toDescribedJob(row)
        await recordActivity(trx, createJobActivity(null, created), { by, atMs })
        return ok(created)
      }),

    async listImplicitJobs(projectId, day) {
      const rows = await db
        .selectFrom('import_job')
        .select(['id', 'implicit_day'])
        .where('project_id', '=', projectId)
        .where('implicit_day', '>=', day)
        .where('implicit_day', '<', `${day}~`)
        .execute()
      return rows.map(row => parseImplicitJob(Number(row.id), row.implicit_day!))
    },

    createImplicitJob: (projectId, day, nowMs) =>
      db.transaction().execute(async trx => {
        await trx
          .insertInto('import_job')
          .values({
            id: await allocateId(trx, 'import_job'),
            project_id: projectId,
            implicit_day: day,
            name: `Imports of ${day} without a job`,
            source: 'capture',
            state: 'published',
            options: '{}',
            plan: '{}',
            progress: '{}',
            created_at: nowMs,
            updated_at: nowMs,
            published_at: nowMs,
          })
          // If another worker has already created this job, the new id stays unused.
          .onConflict(conflict => conflict.doNothing())
          .execute()
      }),

    async findImportJob(id) {
      const row = await db.selectFrom('import_job').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : toDescribedJob(row)
    },

    async findImportJobByPublicId(publicId) {
      const row = await db.selectFrom('import_job').selectAll().where('public_id', '=', publicId).executeTakeFirst()
      return row === undefined ? null : toDescribedJob(row)
    },

    async findNamedImportJobs(publicIds) {
      const rows = await db
        .selectFrom('import_job')
        .select(['id', 'project_id', 'public_id', 'state'])
        .where('public_id', 'in', publicIds)
        .execute()
      return rows.map(row => ({
        id: Number(row.id),
        projectId: Number(row.project_id),
        publicId: Number(row.public_id),
        state: row.state,
      }))
    },

    async listJobsInExperiments(projectId) {
      const rows = await db
        .selectFrom('import_job')
        .select('id')
        .where('project_id', '=', projectId)
        .where('options', 'like', '%"countsInExperiments":true%')
        .orderBy('id')
        .execute()
      return rows.map(({ id }) => Number(id))
    },

    async listImportJobs(projectId, page) {
      const ofProject = db.selectFrom('import_job').where('project_id', '=', projectId).orderBy('id', 'desc')
      const { count, results } = await readPage(ofProject, jobBytes, page, toDescribedJob)
      return { count, jobs: results }
    },

    updateImportJob: (id, change, from, by) =>
      db.transaction().execute(async trx => {
        const before =
          by === null
            ? undefined
            : await trx.selectFrom('import_job').selectAll().where('id', '=', id).executeTakeFirst()
        const job = await updateJob(trx, id, change, from)
        if (job === null) return null
        if (change.state === 'discarding')
          await trx
            .updateTable('project')
            .set({ import_undos: sql<number>`import_undos + 1` })
            .where('id', '=', job.projectId)
            .execute()
        if (by !== null && before !== undefined)
          await recordActivity(trx, createJobActivity(toDescribedJob(before), job), { by, atMs: change.updatedAtMs })
        return job
      }),

    async listImportNotes(importJobId) {
      const notes = await db
        .selectFrom('import_note')
        .select(['reason', 'note_count'])
        .where('import_job_id', '=', importJobId)
        .orderBy('note_count', 'desc')
        .orderBy('reason')
        .execute()
      const samples = await db
        .selectFrom('import_note_sample')
        .select(['reason', 'details'])
        .where('import_job_id', '=', importJobId)
        .orderBy('id')
        .execute()
      const byReason = Map.groupBy(samples, ({ reason }) => reason)
      return notes.map(({ reason, note_count }) => ({
        importJobId,
        reason,
        count: Number(note_count),
        samples: (byReason.get(reason) ?? []).map(({ details }) => parseStoredJsonObject(details)),
      }))
    },
  }
}

/**
 * Which limit one more job of the project would exceed. Call it in the transaction that creates the job, which waits for
 * all other writing transactions.
 */
async function findExceededLimit(
  trx: Kysely<StateSchema>,
  projectId: number,
  { openMax, perDayMax, keptMax }: ImportJobLimits,
  nowMs: number,
): Promise<TooManyJobs | null> {
  const ofProject = trx.selectFrom('import_job').where('project_id', '=', projectId)
  const open = await countRows(ofProject.where('state', 'not in', ['published', 'discarded']))
  if (open >= openMax) return 'too_many_open'
  const explicit = ofProject.where('implicit_day', 'is', null)
  if ((await countRows(explicit.where('state', '!=', 'discarded'))) >= keptMax) return 'too_many_kept'
  const earlier = await explicit
    .select('created_at')
    .orderBy('id', 'desc')
    .offset(perDayMax - 1)
    .limit(1)
    .executeTakeFirst()
  return earlier !== undefined && Number(earlier.created_at) > nowMs - dayMs ? 'too_many_per_day' : null
}

/**
 * The activity entry of a change. It names the job by its number, since anyone who knows the public id can add events, and
 * leaves out progress, which is reported often.
 */
function createJobActivity(before: DescribedImportJob | null, after: DescribedImportJob): NewActivity | null {
  const { projectId, id, name } = after
  const item = { kind: 'import_job', projectId, itemId: String(id), itemName: name } as const
  const toLoggedJob = ({ name, source, state, plan, options }: DescribedImportJob): JsonObject => {
    return { name, source, state, plan, options: encodeImportOptions(options) }
  }
  return createActivityEntry(item, before && toLoggedJob(before), toLoggedJob(after))
}

async function updateJob(
  db: Kysely<StateSchema>,
  id: number,
  change: ImportJobChange,
  { states, step }: Parameters<ImportJobStore['updateImportJob']>[2],
): Promise<DescribedImportJob | null> {
  const row = await db
    .updateTable('import_job')
    .set(toPartialResourceRow(describedJobRow, change))
    .where('id', '=', id)
    .where('state', 'in', [...states])
    .$if(change.state === 'discarding', query => query.where('final_at', 'is', null))
    .$if(step !== undefined, query =>
      step === null ? query.where('step', 'is', null) : query.where('step', '=', step!),
    )
    .returningAll()
    .executeTakeFirst()
  return row === undefined ? null : toDescribedJob(row)
}

function toDescribedJob(row: RowOf<typeof describedJobRow>): DescribedImportJob {
  return { ...toImportJob(row), plan: parseStoredJsonObject(row.plan), progress: parseStoredJsonObject(row.progress) }
}

export function toImportJob(row: RowOf<typeof importJobRow>): ImportJob {
  const { publicId, options, failureCode, failingSinceMs, ...fields } = toResourceItem(importJobRow, row)
  return {
    ...fields,
    publicId: publicId ?? fields.id,
    options: { ...usualOptions, ...(options as Partial<ImportOptions>) },
    failure: failureCode === null ? null : { code: failureCode, sinceMs: failingSinceMs! },
  }
}
