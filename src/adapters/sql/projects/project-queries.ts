// Projects, their secret keys (at most two rows, one for each role) and personal API keys. A key is found by the hash of
// its secret. A deleted project's row stays, and its id is never reused, but its token may be reused.

import { type Kysely, sql } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import type { JsonObject } from '#core/json.ts'
import { personalKeyResource } from '#core/personal-key.ts'
import { type Project, projectResource, type SecretKeys } from '#core/project.ts'
import { patchItem, toActivityLogFields } from '#core/resource.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PersonalKeyStore, ProjectStore, SecretKeyStore } from '#ports/state/project-store.ts'
import type { Written } from '#ports/state/written.ts'
import { readInSlices, readPage } from '../tables/read-pages.ts'
import { recordActivity, recordKeyDeletion, toLoggedKey } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { allocateId, bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'

const projectBytes = sql<number>`octet_length(name) + octet_length(quotas) + octet_length(client_settings)
  + octet_length(ingestion_settings)`

const keyBytes = sql<number>`octet_length(label) + octet_length(scopes) + octet_length(scoped_project_ids)`

export function createProjectQueries(db: Kysely<StateSchema>): ProjectStore & SecretKeyStore & PersonalKeyStore {
  return {
    createProject: (input, change) =>
      db.transaction().execute(async trx => {
        if (await isTokenTaken(trx, input.apiToken, null)) return err('token_taken')
        const project: Project = { ...input, id: await allocateId(trx, 'project'), createdAtMs: change.atMs }
        await trx
          .insertInto('project')
          .values({ ...toResourceRow(projectResource, project), deleted: 0, revision: 0 })
          .execute()
        await recordActivity(trx, createProjectActivity(null, project), change)
        return ok({ value: project, revision: await bumpRevision(trx, project.id) })
      }),

    updateProject: (projectId, patch, change) =>
      db.transaction().execute(async trx => {
        const current = await readProject(trx, projectId)
        if (current === null) return err('not_found')
        if (patch.apiToken !== undefined && (await isTokenTaken(trx, patch.apiToken, projectId)))
          return err('token_taken')
        const project = patchItem(projectResource, current, patch)
        await trx
          .updateTable('project')
          .set(toResourceRow(projectResource, project))
          .where('id', '=', projectId)
          .execute()
        await recordActivity(trx, createProjectActivity(current, project), change)
        return ok({ value: project, revision: await bumpRevision(trx, projectId) })
      }),

    deleteProject: (projectId, change) =>
      db.transaction().execute(async trx => {
        const current = await readProject(trx, projectId)
        if (current === null) return err('not_found')
        await trx.updateTable('project').set({ deleted: 1 }).where('id', '=', projectId).execute()
        await recordActivity(trx, createProjectActivity(current, null), change)
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findProject: projectId => readProject(db, projectId),

    async listProjects({ ids, ...page }) {
      if (ids?.length === 0) return { count: 0, results: [] }
      let living = db.selectFrom('project').where('deleted', '=', 0)
      if (ids !== undefined) living = living.where('id', 'in', [...new Set(ids)])
      return readPage(living.orderBy('id'), projectBytes, page, row => toResourceItem(projectResource, row))
    },

    async listProjectIds() {
      const rows = await db.selectFrom('project').select('id').where('deleted', '=', 0).orderBy('id').execute()
      return rows.map(row => Number(row.id))
    },

    rotateSecretKey: (projectId, key, change) =>
      changeKeys(db, projectId, change, async trx => {
        const keys = trx.deleteFrom('secret_api_key').where('project_id', '=', projectId)
        await keys.where('role', '=', 'backup').execute()
        await trx.updateTable('secret_api_key').set({ role: 'backup' }).where('project_id', '=', projectId).execute()
        await trx
          .insertInto('secret_api_key')
          .values({
            project_id: projectId,
            role: 'primary',
            secret_hash: key.secretHash,
            masked: key.masked,
            created_at: change.atMs,
          })
          .execute()
      }),

    deleteBackupSecretKey: (projectId, change) =>
      changeKeys(db, projectId, change, async trx => {
        await trx
          .deleteFrom('secret_api_key')
          .where('project_id', '=', projectId)
          .where('role', '=', 'backup')
          .execute()
      }),

    listSecretKeys: projectIds => readInSlices(projectIds, some => readKeys(db, some)),

    createPersonalKey: ({ secretHash, ...input }, change) =>
      db.transaction().execute(async trx => {
        const key = { ...input, createdAtMs: change.atMs }
        await trx
          .insertInto('personal_api_key')
          .values({ ...toResourceRow(personalKeyResource, key), secret_hash: secretHash })
          .execute()
        await recordActivity(
          trx,
          createActivityEntry(toLoggedKey(key), null, toActivityLogFields(personalKeyResource, key)),
          change,
        )
        return key
      }),

    async findPersonalKeyByHash(secretHash) {
      const row = await db
        .selectFrom('personal_api_key')
        .selectAll()
        .where('secret_hash', '=', secretHash)
        .executeTakeFirst()
      return row === undefined ? null : toResourceItem(personalKeyResource, row)
    },

    async findPersonalKey(id) {
      const row = await db.selectFrom('personal_api_key').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : toResourceItem(personalKeyResource, row)
    },

    listPersonalKeys(page) {
      const keys = db.selectFrom('personal_api_key').orderBy('created_at').orderBy('id')
      return readPage(keys, keyBytes, page, row => toResourceItem(personalKeyResource, row))
    },

    deletePersonalKey: (id, change) =>
      db.transaction().execute(async trx => {
        const row = await trx.deleteFrom('personal_api_key').where('id', '=', id).returningAll().executeTakeFirst()
        if (row === undefined) return false
        await recordKeyDeletion(trx, toResourceItem(personalKeyResource, row), change)
        // Bumping the revision makes every process forget the deleted key. A created key needs no bump: no process has
        // cached it.
        await bumpRevision(trx, null)
        return true
      }),

    async savePersonalKeyUses(uses) {
      if (uses.length === 0) return
      await db.transaction().execute(async trx => {
        for (const { id, usedAtMs } of uses)
          await trx
            .updateTable('personal_api_key')
            .set({ last_used_at: usedAtMs })
            .where('id', '=', id)
            .where(is => is.or([is('last_used_at', 'is', null), is('last_used_at', '<', usedAtMs)]))
            .execute()
      })
    },
  }
}

async function readProject(db: Kysely<StateSchema>, projectId: number): Promise<Project | null> {
  const row = await db
    .selectFrom('project')
    .selectAll()
    .where('id', '=', projectId)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  return row === undefined ? null : toResourceItem(projectResource, row)
}

function createProjectActivity(before: Project | null, after: Project | null): NewActivity | null {
  return createActivityEntry(
    toLoggedProject((after ?? before)!),
    before && toActivityLogFields(projectResource, before),
    after && toActivityLogFields(projectResource, after),
  )
}

function toLoggedProject({ id, name }: Project) {
  return { kind: 'project', projectId: id, itemId: String(id), itemName: name } as const
}

async function isTokenTaken(db: Kysely<StateSchema>, token: string, exceptId: number | null): Promise<boolean> {
  const row = await db
    .selectFrom('project')
    .select('id')
    .where('api_token', '=', token)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  return row !== undefined && Number(row.id) !== exceptId
}

function changeKeys(
  db: Kysely<StateSchema>,
  projectId: number,
  change: Change,
  write: (trx: Kysely<StateSchema>) => Promise<void>,
): Promise<Result<Written<SecretKeys>, 'not_found'>> {
  return db.transaction().execute(async trx => {
    const project = await readProject(trx, projectId)
    if (project === null) return err('not_found')
    const before = await readSecretKeys(trx, projectId)
    await write(trx)
    const value = await readSecretKeys(trx, projectId)
    await recordActivity(
      trx,
      createActivityEntry(toLoggedProject(project), toLoggedSecretKeys(before), toLoggedSecretKeys(value)),
      change,
    )
    return ok({ value, revision: await bumpRevision(trx, projectId) })
  })
}

/** The two keys under their names in the private API, both masked. */
function toLoggedSecretKeys({ primary, backup }: SecretKeys): JsonObject {
  return { secret_api_token: primary, secret_api_token_backup: backup }
}

async function readSecretKeys(trx: Kysely<StateSchema>, projectId: number): Promise<SecretKeys> {
  const [keys] = await readKeys(trx, [projectId])
  return { primary: keys?.primary ?? null, backup: keys?.backup ?? null }
}

async function readKeys(
  db: Kysely<StateSchema>,
  projectIds: readonly number[],
): Promise<(SecretKeys & { readonly projectId: number })[]> {
  const rows = await db
    .selectFrom('secret_api_key')
    .select(['project_id', 'role', 'masked'])
    .where('project_id', 'in', projectIds)
    .execute()
  const byProject = Map.groupBy(rows, row => Number(row.project_id))
  return Array.from(byProject, ([projectId, keys]) => ({
    projectId,
    primary: keys.find(key => key.role === 'primary')?.masked ?? null,
    backup: keys.find(key => key.role === 'backup')?.masked ?? null,
  }))
}
