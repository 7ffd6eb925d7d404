// Creates, changes, deletes and lists projects. A deleted project's row stays and its id is never reused; its token is
// free.

import { type Kysely, sql } from 'kysely'
import { activityOfChange, type NewActivity } from '#core/activity.ts'
import { type JsonObject, mergeObjects } from '#core/json.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { err, ok } from '#core/result.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { bumpRevision, nextId } from '../tables/revision-queries.ts'
import { flagBit, jsonText, projectOf } from '../tables/rows.ts'
import type { ProjectTable, StateSchema } from '../tables/schema.ts'

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
          .values({ id: project.id, deleted: 0, revision: 0, ...toProjectColumns(project) })
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
        const clientSettings = mergeObjects(current.clientSettings, patch.clientSettings ?? {})
        const quotas = { ...current.quotas, ...patch.quotas }
        const ingestion = { ...current.ingestion, ...patch.ingestion }
        const project = { ...current, ...omitUndefined(patch), quotas, clientSettings, ingestion }
        await trx.updateTable('project').set(toProjectColumns(project)).where('id', '=', projectId).execute()
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

    async listProjects({ limit, offset, ids }) {
      if (ids?.length === 0) return { count: 0, results: [] }
      let living = db.selectFrom('project').where('deleted', '=', 0)
      if (ids !== undefined) living = living.where('id', 'in', [...new Set(ids)])
      const { count } = await living.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
      const page = living.orderBy('id').offset(offset)
      const sizes = await page.select(projectBytes.as('bytes')).limit(limit).execute()
      const rows = await page.selectAll().limit(countFittingRows(sizes)).execute()
      return { count: Number(count), results: rows.map(projectOf) }
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
  return row === undefined ? null : projectOf(row)
}

function activityOfProject(before: Project | null, after: Project | null): NewActivity | null {
  const { id, name } = (after ?? before)!
  const item = { kind: 'project', projectId: id, itemId: String(id), itemName: name } as const
  return activityOfChange(item, before && shownOf(before), after && shownOf(after))
}

function shownOf({ id: _id, uuid: _uuid, createdAtMs: _createdAtMs, ...shown }: Project): JsonObject {
  return shown as unknown as JsonObject
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

function toProjectColumns(
  project: Project,
): Omit<ProjectTable, 'id' | 'deleted' | 'revision' | 'import_undos' | 'erasures'> {
  return {
    uuid: project.uuid,
    name: project.name,
    api_token: project.apiToken,
    timezone: project.timezone,
    anonymize_ips: flagBit(project.anonymizeIps),
    geoip_enabled: flagBit(project.geoipEnabled),
    property_matching_version: project.propertyMatchingVersion,
    quotas: jsonText(project.quotas),
    client_settings: jsonText(project.clientSettings),
    ingestion_settings: jsonText(project.ingestion),
    created_at: project.createdAtMs,
  }
}
