// Queries of groups and group types for the private API.

import { type Kysely, sql } from 'kysely'
import { createActivityEntry } from '#core/activity.ts'
import { hasGroupTypeReference } from '#core/flags/definitions/definition-links.ts'
import { encodeSubjects } from '#core/processing/mirror-subjects.ts'
import { err, ok } from '#core/result.ts'
import { type GroupStore, type GroupView, namedFlagsMax } from '#ports/state/group-store.ts'
import { containsTextSql } from '../tables/conditions.ts'
import { countFittingRows, countRows } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import { parseStoredJsonObject, toGroupType } from '../tables/rows.ts'
import type { GroupTable, StateSchema } from '../tables/schema.ts'

/** How many flags one query reads: a single flag may have a MiB. */
const flagsPerQuery = 20

/** The most bytes of one page of groups, which a front evaluates in one go. A page of a single group may have more. */
const evaluatedBytesMax = 256 * 1024

/** Leaves out columns that are not shown: marks may be as long as the properties. */
const shownColumns = [
  ...(['project_id', 'group_type_index', 'group_key'] as const),
  ...(['group_properties', 'created_at', 'version'] as const),
]

/**
 * Whether events of an import job that is not yet published name the group type; a job that is being discarded no longer
 * counts.
 */
async function isNamedByPendingJob(trx: Kysely<StateSchema>, projectId: number, typeIndex: number): Promise<boolean> {
  const named = await trx
    .selectFrom('import_group_type as t')
    .innerJoin('import_job as j', 'j.id', 't.import_job_id')
    .select('t.import_job_id')
    .where('j.project_id', '=', projectId)
    .where('j.state', 'not in', ['published', 'discarding', 'discarded'])
    .where('t.group_type_index', '=', typeIndex)
    .limit(1)
    .executeTakeFirst()
  return named !== undefined
}

const sizedKey = [
  'group_key' as const,
  sql<number>`octet_length(group_properties) + octet_length(group_key)`.as('bytes'),
] as const

export function createGroupQueries(db: Kysely<StateSchema>): GroupStore {
  /** Reads the groups that fit into a page, in the order of `sizes`, which may have one entry more than `limit`. */
  async function readGroups(
    projectId: number,
    typeIndex: number,
    sizes: readonly { readonly group_key: string; readonly bytes: number }[],
    limit: number,
    bytesMax?: number,
  ): Promise<{ results: readonly GroupView[]; hasMore: boolean }> {
    const keys = sizes.slice(0, countFittingRows(sizes.slice(0, limit), bytesMax)).map(row => row.group_key)
    if (keys.length === 0) return { results: [], hasMore: false }
    const rows = await db
      .selectFrom('group')
      .select(shownColumns)
      .where(isOfTypeSql(projectId, typeIndex))
      .where('group_key', 'in', keys)
      .execute()
    const viewOfKey = new Map(rows.map(row => [row.group_key, toGroupView(row)]))
    // Leaves out a group that was deleted between the read of the sizes and the read of the rows.
    return { results: keys.flatMap(key => viewOfKey.get(key) ?? []), hasMore: sizes.length > keys.length }
  }

  return {
    async listGroupTypes(projectId) {
      const rows = await db
        .selectFrom('group_type_mapping')
        .selectAll()
        .where('project_id', '=', projectId)
        .orderBy('group_type_index')
        .execute()
      return rows.map(toGroupType)
    },

    startDeletingGroupType: (projectId, typeIndex, change) =>
      db.transaction().execute(async trx => {
        // Writes the row unchanged to lock it: either we see a concurrent chunk that names the type, or the chunk sees the
        // deletion.
        const type = await trx
          .updateTable('group_type_mapping')
          .set({ removed: sql<number>`removed` })
          .where(isOfTypeSql(projectId, typeIndex))
          .returning(['removed', 'group_type'])
          .executeTakeFirst()
        if (type === undefined) return err('not_found')
        if (type.removed === 0 && (await isNamedByPendingJob(trx, projectId, typeIndex))) return err('used_by_import')
        // Checks this in the transaction that marks the type as removed, so a flag that is written later is refused as
        // outdated.
        const usedBy = type.removed === 1 ? [] : await listFlagsWithType(trx, projectId, typeIndex)
        if (usedBy.length > 0) return err({ usedBy })
        await trx
          .updateTable('group_type_mapping')
          .set({ removed: 1 })
          .where(isOfTypeSql(projectId, typeIndex))
          .execute()
        const item = { kind: 'group_type', projectId, itemId: String(typeIndex), itemName: type.group_type } as const
        if (type.removed === 0) await recordActivity(trx, createActivityEntry(item, {}, null), change)
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    deleteGroupsOfType: (projectId, typeIndex, countMax) =>
      db.transaction().execute(async trx => {
        // Writes the row, which locks it until the transaction ends: otherwise another call could free the index in
        // between, and a new type with this index would lose its groups.
        const { numUpdatedRows } = await trx
          .updateTable('group_type_mapping')
          .set({ removed: 1 })
          .where(isOfTypeSql(projectId, typeIndex))
          .where('removed', '=', 1)
          .executeTakeFirstOrThrow()
        if (numUpdatedRows === 0n) return false
        const rows = await trx
          .selectFrom('group')
          .select('group_key')
          .where(isOfTypeSql(projectId, typeIndex))
          .orderBy('group_key')
          .limit(countMax)
          .execute()
        const keys = rows.map(row => row.group_key)
        if (keys.length > 0) {
          await trx
            .deleteFrom('group')
            .where(isOfTypeSql(projectId, typeIndex))
            .where('group_key', 'in', keys)
            .execute()
          const groups = keys.map(key => ({ projectId, typeIndex, key }))
          await trx
            .insertInto('subject_change')
            .values({ subjects: encodeSubjects({ persons: [], groups }) })
            .execute()
        }
        if (keys.length >= countMax) return true
        await trx.deleteFrom('group_type_mapping').where(isOfTypeSql(projectId, typeIndex)).execute()
        return false
      }),

    async listGroups(projectId, { typeIndex, search, keyPart, limit, offset }) {
      let groups = db.selectFrom('group').where(isOfTypeSql(projectId, typeIndex))
      if (search !== undefined && search !== '') {
        groups = groups.where(
          sql<boolean>`(${containsTextSql('group_key', search)} OR ${containsTextSql('group_properties', search)})`,
        )
      }
      if (keyPart !== undefined) groups = groups.where(containsTextSql('group_key', keyPart))
      const sizes = await groups
        .select(sizedKey)
        .orderBy('created_at', 'desc')
        .orderBy('group_key')
        .limit(limit + 1)
        .offset(offset)
        .execute()
      return readGroups(projectId, typeIndex, sizes, limit)
    },

    async listGroupsAfter(projectId, { typeIndex, afterKey, limit }) {
      const groups = db.selectFrom('group').where(isOfTypeSql(projectId, typeIndex))
      const sizes = await (afterKey === undefined ? groups : groups.where('group_key', '>', afterKey))
        .select(sizedKey)
        .orderBy('group_key')
        .limit(limit + 1)
        .execute()
      return readGroups(projectId, typeIndex, sizes, limit, evaluatedBytesMax)
    },

    countGroups: (projectId, typeIndex) => countRows(db.selectFrom('group').where(isOfTypeSql(projectId, typeIndex))),

    async findStoredGroup(projectId, typeIndex, key) {
      const row = await db
        .selectFrom('group')
        .select(shownColumns)
        .where(isOfTypeSql(projectId, typeIndex))
        .where('group_key', '=', key)
        .executeTakeFirst()
      return row === undefined ? null : toGroupView(row)
    },
  }
}

/**
 * Matches filters that may name a type, as JSON.stringify writes them; in most flags the field is null, so they need no
 * parsing.
 */
const namesAType = /group_type_index":(?!null)/

/** Keys of flags that use a group type, newest first. */
async function listFlagsWithType(trx: Kysely<StateSchema>, projectId: number, typeIndex: number): Promise<string[]> {
  const keys: string[] = []
  for (let beforeId = Number.MAX_SAFE_INTEGER; keys.length < namedFlagsMax; ) {
    const flags = await trx
      .selectFrom('feature_flag')
      .select(['id', 'key', 'filters'])
      .where('project_id', '=', projectId)
      .where('deleted', '=', 0)
      .where('id', '<', beforeId)
      .where('filters', 'like', '%group_type_index":%')
      .orderBy('id', 'desc')
      .limit(flagsPerQuery)
      .execute()
    for (const { key, filters } of flags)
      if (namesAType.test(filters) && hasGroupTypeReference(parseStoredJsonObject(filters), typeIndex)) keys.push(key)
    if (flags.length < flagsPerQuery) break
    beforeId = Number(flags.at(-1)!.id)
  }
  return keys.slice(0, namedFlagsMax)
}

/** Matches rows of a group type or of its groups: both tables name the type by these two columns. */
function isOfTypeSql(projectId: number, typeIndex: number) {
  return sql<boolean>`project_id = ${projectId} AND group_type_index = ${typeIndex}`
}

function toGroupView(row: Pick<GroupTable, (typeof shownColumns)[number]>): GroupView {
  return {
    projectId: Number(row.project_id),
    typeIndex: Number(row.group_type_index),
    key: row.group_key,
    propertiesJson: row.group_properties,
    createdAtMs: Number(row.created_at),
    version: Number(row.version),
  }
}
