// Cohorts, and the references of flags and cohorts; `cohort-member-queries.ts` has the members. A deletion is a change like
// any other, and `deleted: false` reverts it; the members are kept.

import { type Kysely, sql } from 'kysely'
import { createActivityEntry } from '#core/activity.ts'
import { type Cohort, cohortResource, isSameCohort } from '#core/flags/definitions/cohort.ts'
import {
  createLinkedDefinition,
  listReferencesOfCohort,
  listReferencesOfFlag,
} from '#core/flags/definitions/definition-links.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { toActivityLogFields } from '#core/resource.ts'
import { err, ok } from '#core/result.ts'
import type { CohortStore } from '#ports/state/cohort-store.ts'
import type { DefinitionLinkReader, LinkedWrite } from '#ports/state/flag-store.ts'
import { containsTextSql } from '../tables/conditions.ts'
import { readPage } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { allocateId, bumpRevision } from '../tables/revision-queries.ts'
import { parseStoredJsonObject } from '../tables/rows.ts'
import type { StateSchema } from '../tables/schema.ts'

export function createCohortQueries(db: Kysely<StateSchema>): CohortStore & DefinitionLinkReader {
  return {
    createCohort: (input, change, options) =>
      db.transaction().execute(async trx => {
        if (await haveDefinitionsChanged(trx, input.projectId, options)) return err('definitions_changed')
        const cohort: Cohort = {
          ...input,
          id: await allocateId(trx, 'cohort'),
          deleted: false,
          version: 1,
          memberCount: input.isStatic ? 0 : null,
          countedAtMs: input.isStatic ? change.atMs : null,
          createdAtMs: change.atMs,
          updatedAtMs: change.atMs,
          createdBy: change.by,
        }
        await trx.insertInto('cohort').values(toResourceRow(cohortResource, cohort)).execute()
        await recordActivity(trx, createCohortActivity(null, cohort), change)
        return ok({ value: cohort, revision: await bumpRevision(trx, cohort.projectId) })
      }),

    updateCohort: (projectId, cohortId, patch, change, options) =>
      db.transaction().execute(async trx => {
        const current = await findCohort(trx, projectId, cohortId)
        if (current === null || (current.deleted && patch.deleted !== false)) return err('not_found')
        const { expectedVersion } = options
        if (expectedVersion !== undefined && expectedVersion !== current.version) return err({ staleVersion: current })
        if (await haveDefinitionsChanged(trx, projectId, options)) return err('definitions_changed')
        const cohort: Cohort = {
          ...current,
          ...omitUndefined(patch),
          updatedAtMs: change.atMs,
          version: current.version + 1,
        }
        if (isSameCohort(current, cohort))
          return ok({ value: current, revision: await readProjectRevision(trx, projectId) })
        const isCountKept = patch.filters === undefined || current.isStatic
        // Leaves out the member count: a new count may be written at the same moment, which the old count must not replace.
        const { id: _, member_count: _count, counted_at: _at, ...columns } = toResourceRow(cohortResource, cohort)
        await trx
          .updateTable('cohort')
          .set({ ...columns, ...(isCountKept ? {} : { member_count: null, counted_at: null }) })
          .where('id', '=', cohortId)
          .execute()
        await recordActivity(trx, createCohortActivity(current, cohort), change)
        const value = isCountKept ? cohort : { ...cohort, memberCount: null, countedAtMs: null }
        return ok({ value, revision: await bumpRevision(trx, projectId) })
      }),

    findCohort: (projectId, cohortId) => findCohort(db, projectId, cohortId),

    async listCohorts(projectId, { search, ...page }) {
      let cohorts = db.selectFrom('cohort').where('project_id', '=', projectId).where('deleted', '=', 0)
      if (search !== undefined && search !== '') cohorts = cohorts.where(containsTextSql('name', search))
      const bytes = sql<number>`octet_length(filters) + octet_length(description)`
      return readPage(cohorts.orderBy('id', 'desc'), bytes, page, row => toResourceItem(cohortResource, row))
    },

    async findLinks(projectId) {
      // Reads the revision before the definitions, so that a write in between makes the definitions newer than the
      // revision, never older.
      const revision = await readProjectRevision(db, projectId)
      // Reads only filters that may refer to a cohort, a flag or an experiment. A text search finds them, since
      // JSON.stringify wrote the text.
      const linking = sql<
        string | null
      >`CASE WHEN filters LIKE '%"cohort"%' OR filters LIKE '%"flag"%' OR filters LIKE '%"experiment_id"%' THEN filters END`
      const flags = await db
        .selectFrom('feature_flag')
        .select(['id', 'key', linking.as('filters')])
        .where('project_id', '=', projectId)
        .where('deleted', '=', 0)
        .orderBy('id')
        .execute()
      const cohorts = await db
        .selectFrom('cohort')
        .select(['id', 'name', 'is_static', linking.as('filters')])
        .where('project_id', '=', projectId)
        .where('deleted', '=', 0)
        .orderBy('id')
        .execute()
      const groupTypes = await db
        .selectFrom('group_type_mapping')
        .select(['group_type', 'group_type_index', 'removed'])
        .where('project_id', '=', projectId)
        .orderBy('group_type_index')
        .execute()
      const experiments = await db
        .selectFrom('experiment')
        .select('id')
        .where('project_id', '=', projectId)
        .where('deleted', '=', 0)
        .orderBy('id')
        .execute()
      return {
        revision,
        experimentIds: experiments.map(({ id }) => Number(id)),
        groupTypes: groupTypes.map(row => ({
          index: Number(row.group_type_index),
          name: row.group_type,
          ...(row.removed === 1 && { isBeingDeleted: true as const }),
        })),
        flags: flags.map(({ id, key, filters }) =>
          createLinkedDefinition(
            Number(id),
            key,
            filters === null ? [] : listReferencesOfFlag(parseStoredJsonObject(filters)),
          ),
        ),
        cohorts: cohorts.map(({ id, name, is_static, filters }) =>
          createLinkedDefinition(
            Number(id),
            name,
            filters === null || is_static === 1 ? [] : listReferencesOfCohort(parseStoredJsonObject(filters)),
          ),
        ),
      }
    },
    async saveCohortCount({ projectId, id, version }, count, countedAtMs) {
      await db
        .updateTable('cohort')
        .set({ member_count: count, counted_at: countedAtMs })
        .where('id', '=', id)
        .where('project_id', '=', projectId)
        .where('version', '=', version)
        .execute()
    },
  }
}

/**
 * Whether the project's definitions changed since a write was checked against them. Call it in the write's transaction.
 */
export async function haveDefinitionsChanged(
  trx: Kysely<StateSchema>,
  projectId: number,
  { linksRevision }: LinkedWrite,
): Promise<boolean> {
  return linksRevision !== undefined && linksRevision !== (await readProjectRevision(trx, projectId))
}

/** The activity entry of a change. A deletion may also change fields, so its entry shows the cohort with these changes. */
function createCohortActivity(before: Cohort | null, after: Cohort) {
  const { projectId, id, name } = after
  const item = { kind: 'cohort', projectId, itemId: String(id), itemName: name } as const
  const toLoggedOrNull = (cohort: Cohort | null) => cohort && toActivityLogFields(cohortResource, cohort)
  return after.deleted && before?.deleted === false
    ? createActivityEntry(item, toLoggedOrNull({ ...after, deleted: false }), null)
    : createActivityEntry(item, toLoggedOrNull(before), toLoggedOrNull(after))
}

async function readProjectRevision(db: Kysely<StateSchema>, projectId: number): Promise<number> {
  const row = await db.selectFrom('project').select('revision').where('id', '=', projectId).executeTakeFirst()
  return Number(row?.revision ?? 0)
}

async function findCohort(db: Kysely<StateSchema>, projectId: number, cohortId: number): Promise<Cohort | null> {
  const row = await db
    .selectFrom('cohort')
    .selectAll()
    .where('id', '=', cohortId)
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return row === undefined ? null : toResourceItem(cohortResource, row)
}
