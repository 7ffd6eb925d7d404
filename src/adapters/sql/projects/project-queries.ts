// Creates, changes, deletes and lists projects. A deleted project's row stays and its id is never reused; its token is
// free.

import { type Kysely, sql } from 'kysely'
import { activityOfChange, type NewActivity } from '#core/activity.ts'
import { type Project, projectResource } from '#core/project.ts'
import { patchItem, showLogged } from '#core/resource.ts'
import { err, ok } from '#core/result.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import { readPage } from '../tables/fitting-rows.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { itemOf, rowOf } from '../tables/resource-rows.ts'
import { bumpRevision, nextId } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'

const projectBytes = sql<number>`octet_length(name) + octet_length(quotas) + octet_length(client_settings)
  + octet_length(ingestion_settings)`

export function createProjectQueries(db: Kysely<StateSchema>): ProjectStore {
  return {
    createProject: (input, change) =>
      db.transaction().execute(async trx => {
        if (await isTokenTaken(trx, input.apiToken, null)) return err('token_taken')
        const project: Project = { ...input, id: await nextId(trx, 'project'), createdAtMs: change.atMs }
        await trx
          .insertInto('project')
          .values({ ...rowOf(projectResource, project), deleted: 0, revision: 0 })
          .execute()
        await recordActivity(trx, activityOfProject(null, project), change)
        return ok({ value: project, revision: await bumpRevision(trx, project.id) })
      }),

    updateProject: (projectId, patch, change) =>
      db.transaction().execute(async trx => {
        const current = await find(trx, projectId)
        if (current === null) return err('not_found')
        if (patch.apiToken !== undefined && (await isTokenTaken(trx, patch.apiToken, projectId)))
          return err('token_taken')
        const project = patchItem(projectResource, current, patch)
        await trx.updateTable('project').set(rowOf(projectResource, project)).where('id', '=', projectId).execute()
        await recordActivity(trx, activityOfProject(current, project), change)
        return ok({ value: project, revision: await bumpRevision(trx, projectId) })
      }),

    deleteProject: (projectId, change) =>
      db.transaction().execute(async trx => {
        const current = await find(trx, projectId)
        if (current === null) return err('not_found')
        await trx.updateTable('project').set({ deleted: 1 }).where('id', '=', projectId).execute()
        await recordActivity(trx, activityOfProject(current, null), change)
        return ok({ value: null, revision: await bumpRevision(trx, projectId) })
      }),

    findProject: projectId => find(db, projectId),

    async listProjects({ ids, ...page }) {
      if (ids?.length === 0) return { count: 0, results: [] }
      let living = db.selectFrom('project').where('deleted', '=', 0)
      if (ids !== undefined) living = living.where('id', 'in', [...new Set(ids)])
      return readPage(living.orderBy('id'), projectBytes, page, row => itemOf(projectResource, row))
    },

    async listProjectIds() {
      const rows = await db.selectFrom('project').select('id').where('deleted', '=', 0).orderBy('id').execute()
      return rows.map(row => Number(row.id))
    },
  }
}

async function find(db: Kysely<StateSchema>, projectId: number): Promise<Project | null> {
  const row = await db
    .selectFrom('project')
    .selectAll()
    .where('id', '=', projectId)
    .where('deleted', '=', 0)
    .executeTakeFirst()
  return row === undefined ? null : itemOf(projectResource, row)
}

function activityOfProject(before: Project | null, after: Project | null): NewActivity | null {
  const { id, name } = (after ?? before)!
  const item = { kind: 'project', projectId: id, itemId: String(id), itemName: name } as const
  return activityOfChange(
    item,
    before && showLogged(projectResource, before),
    after && showLogged(projectResource, after),
  )
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
