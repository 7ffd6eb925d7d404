// Requests to rebuild or split persons, and the splits that were made.

import { type Kysely, type Selectable, sql } from 'kysely'
import type { Change } from '#core/author.ts'
import type { JsonObject } from '#core/json.ts'
import { diffJson } from '#core/json-diff.ts'
import {
  emptyReport,
  type PersonRepair,
  type RebuildRequest,
  type RepairRequest,
  sumRepairReports,
} from '#core/persons/person-repair.ts'
import type { PersonRepairStore } from '#ports/state/person-store.ts'
import { readInSlices } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toAuthorText, toPersonRepair, toSqlBoolean } from '../tables/rows.ts'
import type { PersonRepairTable, StateSchema } from '../tables/schema.ts'
import { toStorableText } from '../tables/wrap-methods.ts'

const keptRepairsMax = 20

export function createRepairQueries(db: Kysely<StateSchema>): PersonRepairStore {
  return {
    requestRepair: (projectId, request, openMax, change) =>
      db.transaction().execute(async trx => {
        const changesPersons = request.kind === 'split' || request.applies
        // After the count is raised, chunks that were loaded before fail with a conflict when they commit. The write also
        // locks the row, so concurrent requests wait.
        await trx
          .updateTable('project')
          .set({ import_undos: sql<number>`import_undos + ${toSqlBoolean(changesPersons)}` })
          .where('id', '=', projectId)
          .execute()
        const open = await trx
          .selectFrom('person_repair')
          .selectAll()
          .where('project_id', '=', projectId)
          .where('done_at', 'is', null)
          .execute()
        const isFull = open.length >= openMax || (request.kind === 'rebuild' && open.some(row => isRebuild(row)))
        if (isFull) return null
        await deleteOldRepairs(trx, projectId)
        const row = await trx
          .insertInto('person_repair')
          .values({
            project_id: projectId,
            changes_persons: toSqlBoolean(changesPersons),
            requested_at: change.atMs,
            requested_by: toAuthorText(change.by),
            request: JSON.stringify(request),
          })
          .returningAll()
          .executeTakeFirstOrThrow()
        if (changesPersons) await recordRepair(trx, projectId, request, change)
        return toPersonRepair(row)
      }),

    async findRebuild(projectId, id) {
      const row = await db
        .selectFrom('person_repair')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('id', '=', id)
        .executeTakeFirst()
      return row === undefined || !isRebuild(row) ? null : (toPersonRepair(row) as PersonRepair<RebuildRequest>)
    },

    async listOpenRepairs() {
      const open = db.selectFrom('person_repair').selectAll().where('done_at', 'is', null)
      return (await open.orderBy('id').execute()).map(toPersonRepair)
    },

    addRepairReport: (id, { erasures, ...part }, isFirst) =>
      db.transaction().execute(async trx => {
        const row = await lockRepair(trx, id)
        if (row === undefined) return
        const project = await trx
          .selectFrom('project')
          .select('erasures')
          .where('id', '=', row.project_id)
          .executeTakeFirst()
        const { report } = toPersonRepair(row)
        // Leaves out the samples if any person was erased since, since they may name that person.
        const added = Number(project?.erasures) === erasures ? part : { ...part, samples: [] }
        const sum = sumRepairReports(isFirst || report === null ? emptyReport : report, added)
        await trx
          .updateTable('person_repair')
          .set({ report: JSON.stringify(sum) })
          .where('id', '=', id)
          .execute()
      }),

    finishRepair: (id, doneAtMs) =>
      db.transaction().execute(async trx => {
        const row = await lockRepair(trx, id)
        if (row === undefined) return
        const request = JSON.stringify(removeIds(toPersonRepair(row).request))
        await trx.updateTable('person_repair').set({ done_at: doneAtMs, request }).where('id', '=', id).execute()
      }),

    async listSplitIds(projectId, distinctIds) {
      const splits = db.selectFrom('person_cut').selectAll().where('project_id', '=', projectId)
      const found = await readInSlices(distinctIds.map(toStorableText), some =>
        splits.where('distinct_id', 'in', some).execute(),
      )
      return found.map(row => ({
        projectId: Number(row.project_id),
        distinctId: row.distinct_id,
        personUuid: row.person_uuid,
        createdAtMs: Number(row.created_at),
        atMs: Number(row.cut_at),
      }))
    },

    async listErasedPasts(projectId, distinctIds) {
      const ids = distinctIds.map(toStorableText)
      const past = db.selectFrom('erased_past').select(['distinct_id', 'erasures']).where('project_id', '=', projectId)
      // Also finds the ids of persons that were erased along with their events.
      const deleted = db
        .selectFrom('erased_distinct_id as d')
        .innerJoin('person_erasure as e', 'e.id', 'd.erasure_id')
        .select(['d.distinct_id', 'e.erasures'])
        .where('d.project_id', '=', projectId)
        .where('e.keeps_person', '=', 0)
      const found = [
        ...(await readInSlices(ids, some => past.where('distinct_id', 'in', some).execute())),
        ...(await readInSlices(ids, some => deleted.where('d.distinct_id', 'in', some).execute())),
      ]
      return found.map(row => ({ distinctId: row.distinct_id, erasures: Number(row.erasures) }))
    },

    async findTakenUuids(projectId, uuids) {
      const persons = db.selectFrom('person').select('uuid').where('project_id', '=', projectId)
      return (await readInSlices(uuids, some => persons.where('uuid', 'in', some).execute())).map(({ uuid }) => uuid)
    },

    async listProjectDistinctIds(projectId, after, limit) {
      const rows = await db
        .selectFrom('person_distinct_id')
        .select('distinct_id')
        .where('project_id', '=', projectId)
        .$if(after !== null, query => query.where('distinct_id', '>', after!))
        .orderBy('distinct_id')
        .limit(limit)
        .execute()
      return rows.map(row => row.distinct_id)
    },
  }
}

function lockRepair(trx: Kysely<StateSchema>, id: number) {
  return trx.selectFrom('person_repair').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
}

function isRebuild(row: Selectable<PersonRepairTable>): boolean {
  return toPersonRepair(row).request.kind === 'rebuild'
}

function removeIds(request: RepairRequest): RepairRequest {
  if (request.kind === 'split') return { ...request, mainId: '' }
  return { ...request, persons: request.persons && { uuids: [], distinctIds: [] } }
}

async function deleteOldRepairs(trx: Kysely<StateSchema>, projectId: number): Promise<void> {
  const done = await trx
    .selectFrom('person_repair')
    .select('id')
    .where('project_id', '=', projectId)
    .where('done_at', 'is not', null)
    .orderBy('id', 'desc')
    .offset(keptRepairsMax - 1)
    .limit(1)
    .executeTakeFirst()
  if (done === undefined) return
  await trx
    .deleteFrom('person_repair')
    .where('project_id', '=', projectId)
    .where('done_at', 'is not', null)
    .where('id', '<=', done.id)
    .execute()
}

/** Writes the activity entry without distinct ids, since the activity log is kept when the person is erased. */
async function recordRepair(
  trx: Kysely<StateSchema>,
  projectId: number,
  request: RepairRequest,
  change: Change,
): Promise<void> {
  const isSplit = request.kind === 'split'
  const item = { kind: 'person', projectId, itemId: isSplit ? request.uuid : '', itemName: '' } as const
  const after: JsonObject = isSplit
    ? {}
    : request.persons === null
      ? { all: true }
      : { persons: request.persons.uuids.length + request.persons.distinctIds.length }
  const activity = isSplit ? 'split_person' : 'rebuilt'
  await recordActivity(trx, { ...item, activity, changes: diffJson({}, after) }, change)
}
