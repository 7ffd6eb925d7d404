// Flags and their history. Every write keeps a snapshot of the whole flag. A deletion is a change like any other: it frees
// the key, and `deleted: false` reverts it while the key is still free.

import { type Kysely, sql } from 'kysely'
import type { Author, Change } from '#core/author.ts'
import {
  applyFlagChange,
  deactivateIfArchived,
  type Flag,
  flagDefaults,
  flagOverheadBytes,
  flagResource,
  isSameDefinition,
  projectFlagsBytesMax,
} from '#core/flags/definitions/flag.ts'
import { staleAfterMs, statusOfFlag } from '#core/flags/definitions/flag-status.ts'
import { matchesTraits } from '#core/flags/definitions/flag-traits.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagChoice, FlagPatch, FlagSearch, FlagStore, FlagVersion, NewFlag } from '#ports/state/flag-store.ts'
import { containsTextSql } from '../tables/conditions.ts'
import { countFittingRows, readInSlices, readPage } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { allocateId, bumpRevision } from '../tables/revision-queries.ts'
import { parseStoredAuthor, parseStoredJsonObject, toAuthorText, toJsonText, toSqlBoolean } from '../tables/rows.ts'
import type { FlagVersionTable, StateSchema } from '../tables/schema.ts'
import { haveDefinitionsChanged } from './cohort-queries.ts'

/** How many flags one query reads, which limits `IN` lists. */
const idsPerQuery = 500

const flagBytes = sql<number>`octet_length(filters) + octet_length(name) + octet_length(tags)
  + octet_length(evaluation_contexts)`

export function createFlagQueries(
  db: Kysely<StateSchema>,
): Omit<FlagStore, 'listFlagOwners' | 'listFlagUses' | 'listLastCalls'> {
  return {
    createFlag: (input, change, options = {}) =>
      db.transaction().execute(async trx => {
        if (await haveDefinitionsChanged(trx, input.projectId, options)) return err('definitions_changed')
        const inserted = await insertFlag(trx, input, change)
        if (!inserted.ok) return inserted
        return ok({ value: inserted.value, revision: await bumpRevision(trx, input.projectId) })
      }),

    updateFlag: (projectId, flagId, patch, change, options = {}) =>
      db.transaction().execute(async trx => {
        if (await haveDefinitionsChanged(trx, projectId, options)) return err('definitions_changed')
        const changed = await updateFlagRow(trx, projectId, flagId, patch, change, options.expectedVersion)
        if (!changed.ok) return changed
        return ok({ value: changed.value, revision: await bumpRevision(trx, projectId) })
      }),

    async findFlag(projectId, idOrKey) {
      const id = /^\d{1,15}$/.test(idOrKey) ? await findById(db, projectId, Number(idOrKey)) : null
      return id ?? findByKey(db, projectId, idOrKey)
    },

    findFlagByKey: (projectId, key) => findByKey(db, projectId, key),

    async listFlagsById(projectId, flagIds) {
      const flags = db.selectFrom('feature_flag').selectAll().where('project_id', '=', projectId)
      return (await readInSlices(flagIds, some => flags.where('id', 'in', some).execute())).map(toFlag)
    },

    async listAuthors(projectId, ofWhat) {
      const rows = await db
        .selectFrom(ofWhat)
        .select('created_by')
        .distinct()
        .where('project_id', '=', projectId)
        .where('created_by', 'is not', null)
        .execute()
      return rows.map(row => parseStoredAuthor(row.created_by)!)
    },

    listFlags: (projectId, query) =>
      readPage(selectFlags(db, projectId, query).orderBy('id', 'desc'), flagBytes, query, toFlag),

    searchFlags: (projectId, search) => searchFlagIds(selectFlags(db, projectId, search), search),

    async listFittingFlags(projectId, flagIds) {
      const ids = flagIds.slice(0, idsPerQuery)
      if (ids.length === 0) return []
      const flags = db
        .selectFrom('feature_flag')
        .where('project_id', '=', projectId)
        .where('id', 'in', ids)
        .orderBy('id', 'desc')
      const sizes = await flags.select(flagBytes.as('bytes')).execute()
      const rows = await flags.selectAll().limit(countFittingRows(sizes)).execute()
      return rows.map(toFlag)
    },

    listFlagVersions(projectId, flagId, page) {
      const versions = selectVersions(db, projectId).where('flag_id', '=', flagId).orderBy('version', 'desc')
      return readPage(versions, versionBytes, page, toFlagVersion)
    },

    listProjectFlagVersions(projectId, page) {
      const versions = selectVersions(db, projectId)
        .orderBy('created_at', 'desc')
        .orderBy('flag_id', 'desc')
        .orderBy('version', 'desc')
      return readPage(versions, comparedBytes, page, toFlagVersion)
    },

    async findFlagVersion(projectId, flagId, version) {
      const versions = selectVersions(db, projectId).where('flag_id', '=', flagId)
      const row = await versions.selectAll().where('version', '=', version).executeTakeFirst()
      return row === undefined ? null : toFlagVersion(row)
    },
  }
}

/** Inserts a flag in the caller's transaction; the caller also raises the revision. */
export async function insertFlag(
  trx: Kysely<StateSchema>,
  input: NewFlag,
  { by, atMs }: Change,
  hasExperiment = false,
): Promise<Result<Flag, 'key_taken' | 'flags_too_large'>> {
  // Checks the key before an id is taken, so that a refused flag leaves no gap in the ids.
  if ((await findByKey(trx, input.projectId, input.key)) !== null) return err('key_taken')
  const unnumbered: Flag = {
    ...deactivateIfArchived(input),
    id: 0,
    version: 1,
    deleted: false,
    hasExperiment,
    createdAtMs: atMs,
    updatedAtMs: atMs,
    conditionsSinceMs: atMs,
    createdBy: by,
  }
  if (await areFlagsTooLarge(trx, null, unnumbered)) return err('flags_too_large')
  const flag = { ...unnumbered, id: await allocateId(trx, 'feature_flag') }
  await trx.insertInto('feature_flag').values(toResourceRow(flagResource, flag)).execute()
  await saveSnapshot(trx, flag, by, 'created')
  return ok(flag)
}

/** Does what `FlagStore.updateFlag` does, in the caller's transaction; the caller also raises the revision. */
export async function updateFlagRow(
  trx: Kysely<StateSchema>,
  projectId: number,
  flagId: number,
  patch: FlagPatch,
  { by, atMs }: Change,
  expectedVersion?: number,
): Promise<Result<Flag, 'not_found' | 'key_taken' | 'flags_too_large' | { readonly staleVersion: Flag }>> {
  const current = await findById(trx, projectId, flagId)
  if (current === null || (current.deleted && patch.deleted !== false)) return err('not_found')
  if (expectedVersion !== undefined && expectedVersion !== current.version) return err({ staleVersion: current })
  const flag = applyFlagChange(current, { ...patch, updatedAtMs: atMs, version: current.version + 1 })
  if (!flag.deleted) {
    const holder = await findByKey(trx, projectId, flag.key)
    if (holder !== null && holder.id !== flagId) return err('key_taken')
  }
  if (isSameDefinition(current, flag)) return ok(current)
  if (await areFlagsTooLarge(trx, current, flag)) return err('flags_too_large')
  // The condition checks the version again, since an engine may let two transactions read the flag at the same time.
  const { numUpdatedRows } = await trx
    .updateTable('feature_flag')
    .set(toResourceRow(flagResource, flag))
    .where('id', '=', flagId)
    .where('version', '=', current.version)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return err({ staleVersion: (await findById(trx, projectId, flagId)) ?? current })
  await saveSnapshot(trx, flag, by, flag.deleted && !current.deleted ? 'deleted' : 'updated')
  return ok(flag)
}

/**
 * Whether a write makes the project's flags larger than they may be. A write that does not add bytes is always allowed, so
 * that a project above the maximum can be changed and made smaller. Concurrent writes may each exceed it by one flag.
 */
async function areFlagsTooLarge(trx: Kysely<StateSchema>, before: Flag | null, after: Flag): Promise<boolean> {
  const bytesAfter = countDefinitionBytes(after)
  if (bytesAfter <= (before === null ? 0 : countDefinitionBytes(before))) return false
  const others = await trx
    .selectFrom('feature_flag')
    .select(sql<number | null>`sum(octet_length(key) + ${flagBytes} + ${sql.lit(flagOverheadBytes)})`.as('bytes'))
    .where('project_id', '=', after.projectId)
    .where('deleted', '=', 0)
    .where('id', '!=', after.id)
    .executeTakeFirstOrThrow()
  return bytesAfter + Number(others.bytes) > projectFlagsBytesMax
}

/** 0 for a deleted flag, which is not served. */
function countDefinitionBytes(flag: Flag): number {
  if (flag.deleted) return 0
  const { key, filters, name, tags, evaluation_contexts: contexts } = toResourceRow(flagResource, flag)
  return [key, filters, name, tags, contexts].reduce((sum, text) => sum + Buffer.byteLength(text), flagOverheadBytes)
}

const versionBytes = sql<number>`octet_length(snapshot)`
/** The bytes of a version and of the version before it: whoever reads a page compares the two. */
const comparedBytes = sql<number>`octet_length(snapshot) + coalesce((
  SELECT octet_length(p.snapshot) FROM feature_flag_version p
  WHERE p.flag_id = feature_flag_version.flag_id AND p.version = feature_flag_version.version - 1
), 0)`

function selectVersions(db: Kysely<StateSchema>, projectId: number) {
  return db.selectFrom('feature_flag_version').where('project_id', '=', projectId)
}

function selectFlags(
  db: Kysely<StateSchema>,
  projectId: number,
  { search, key, active, archived = false }: FlagChoice,
) {
  let flags = db
    .selectFrom('feature_flag')
    .where('project_id', '=', projectId)
    .where('deleted', '=', 0)
    .where('feature_flag.id', 'not in', surveyFlagIdsSql(projectId, 'targeting_flag_id'))
    .where('feature_flag.id', 'not in', surveyFlagIdsSql(projectId, 'internal_targeting_flag_id'))
  if (key !== undefined) flags = flags.where(sql<boolean>`lower(key) = lower(${key})`)
  if (active !== undefined) flags = flags.where('active', '=', toSqlBoolean(active))
  if (archived !== 'all') flags = flags.where('archived', '=', toSqlBoolean(archived))
  if (search !== undefined && search !== '')
    flags = flags.where(sql<boolean>`(${containsTextSql('key', search)} OR ${containsTextSql('name', search)})`)
  return flags
}

function surveyFlagIdsSql(projectId: number, column: 'targeting_flag_id' | 'internal_targeting_flag_id') {
  return sql<number>`(SELECT ${sql.ref(column)} FROM survey
    WHERE survey.project_id = ${projectId} AND ${sql.ref(column)} IS NOT NULL)`
}

/**
 * The ids of the flags that match a search, descending. No query can read what is inside a flag's filters and lists, so
 * every flag that may match is read, a limited number of bytes at a time. A search for stale flags skips flags that changed
 * recently.
 */
async function searchFlagIds(
  flags: ReturnType<typeof selectFlags>,
  { staleAtMs, traits }: FlagSearch,
): Promise<number[]> {
  const called = flags.leftJoin('flag_last_call as call', 'call.flag_id', 'feature_flag.id').orderBy('id', 'desc')
  const beforeMs = (staleAtMs ?? 0) - staleAfterMs
  const candidates =
    staleAtMs === undefined
      ? called
      : called.where(eb => eb.or([eb('call.called_at', '<=', beforeMs), eb('conditions_since', '<=', beforeMs)]))
  const found: number[] = []
  for (let lastId: number | null = null; ; ) {
    const next: typeof candidates = lastId === null ? candidates : candidates.where('id', '<', lastId)
    const sizes = await next.select(flagBytes.as('bytes')).limit(idsPerQuery).execute()
    if (sizes.length === 0) return found
    const rows = await next.selectAll('feature_flag').select('call.called_at').limit(countFittingRows(sizes)).execute()
    for (const row of rows) {
      const flag = toFlag(row)
      const calledAtMs = row.called_at === null ? null : Number(row.called_at)
      const isStale = staleAtMs === undefined || statusOfFlag(flag, calledAtMs, staleAtMs).status === 'STALE'
      if (isStale && matchesTraits(flag, traits)) found.push(flag.id)
    }
    lastId = Number(rows.at(-1)!.id)
  }
}

async function findById(db: Kysely<StateSchema>, projectId: number, flagId: number): Promise<Flag | null> {
  const row = await db
    .selectFrom('feature_flag')
    .selectAll()
    .where('id', '=', flagId)
    .where('project_id', '=', projectId)
    .executeTakeFirst()
  return row === undefined ? null : toFlag(row)
}

async function findByKey(db: Kysely<StateSchema>, projectId: number, key: string): Promise<Flag | null> {
  const row = await db
    .selectFrom('feature_flag')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('key', '=', key)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  return row === undefined ? null : toFlag(row)
}

/** Saves a snapshot of the flag's new version, to which the entry of the activity log refers. */
async function saveSnapshot(trx: Kysely<StateSchema>, flag: Flag, by: Author, activity: string): Promise<void> {
  await trx
    .insertInto('feature_flag_version')
    .values({
      flag_id: flag.id,
      version: flag.version,
      project_id: flag.projectId,
      snapshot: toJsonText({
        ...flag,
        evaluationContexts: [...flag.evaluationContexts],
        tags: [...flag.tags],
        createdBy: flag.createdBy && { ...flag.createdBy },
      }),
      changed_by: toAuthorText(by),
      created_at: flag.updatedAtMs,
    })
    .execute()
  const item = { kind: 'feature_flag', projectId: flag.projectId, itemId: String(flag.id), itemName: flag.key } as const
  await recordActivity(trx, { ...item, activity, version: flag.version, changes: [] }, { by, atMs: flag.updatedAtMs })
}

function toFlagVersion(row: FlagVersionTable): FlagVersion {
  const snapshot = parseStoredJsonObject(row.snapshot) as unknown as Flag
  const by: Author | string | null = snapshot.createdBy
  return {
    flagId: Number(row.flag_id),
    version: Number(row.version),
    // Older snapshots lack fields that later releases added, which get their defaults; in the oldest, the author is only a
    // label.
    flag: { ...flagDefaults, ...snapshot, createdBy: typeof by === 'string' ? { id: null, label: by } : by },
    changedBy: parseStoredAuthor(row.changed_by),
    createdAtMs: Number(row.created_at),
  }
}

function toFlag(row: StateSchema['feature_flag']): Flag {
  return toResourceItem(flagResource, row)
}
