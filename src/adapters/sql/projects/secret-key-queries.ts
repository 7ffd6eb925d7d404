// Secret keys of projects, by their hash: at most two rows per project, one for each role.

import type { Kysely } from 'kysely'
import { activityOfChange } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import type { JsonObject } from '#core/json.ts'
import type { SecretKeys } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { SecretKeyStore } from '#ports/state/project-store.ts'
import type { Written } from '#ports/state/written.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'
import { readInSlices } from '../tables/slices.ts'

export function createSecretKeyQueries(db: Kysely<StateSchema>): SecretKeyStore {
  return {
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
  }
}

function changeKeys(
  db: Kysely<StateSchema>,
  projectId: number,
  change: Change,
  write: (trx: Kysely<StateSchema>) => Promise<void>,
): Promise<Result<Written<SecretKeys>, 'not_found'>> {
  return db.transaction().execute(async trx => {
    const project = await trx
      .selectFrom('project')
      .select('name')
      .where('id', '=', projectId)
      .where('deleted', '=', 0)
      .executeTakeFirst()
    if (project === undefined) return err('not_found')
    const before = await readShown(trx, projectId)
    await write(trx)
    const value = await readShown(trx, projectId)
    const item = { kind: 'project', projectId, itemId: String(projectId), itemName: project.name } as const
    await recordActivity(trx, activityOfChange(item, toShown(before), toShown(value)), change)
    return ok({ value, revision: await bumpRevision(trx, projectId) })
  })
}

/** By their names in the private API; both are masked. */
function toShown({ primary, backup }: SecretKeys): JsonObject {
  return { secret_api_token: primary, secret_api_token_backup: backup }
}

async function readShown(trx: Kysely<StateSchema>, projectId: number): Promise<SecretKeys> {
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
