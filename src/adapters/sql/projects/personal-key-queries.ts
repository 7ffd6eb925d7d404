// Personal API keys, by the hash of their secret. Deleting a key bumps the revision, so that every process forgets the
// key. Creating one does not, since no process can have it cached.

import { type Kysely, type Selectable, sql } from 'kysely'
import { activityOfChange } from '#core/activity.ts'
import type { JsonObject } from '#core/json.ts'
import type { PersonalKey, PersonalKeyStore } from '#ports/state/personal-key-store.ts'
import { countFittingRows } from '../tables/fitting-rows.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import { jsonOf, jsonText } from '../tables/rows.ts'
import type { PersonalKeyTable, StateSchema } from '../tables/schema.ts'

const keyBytes = sql<number>`octet_length(label) + octet_length(scopes) + octet_length(scoped_project_ids)`

export function createPersonalKeyQueries(db: Kysely<StateSchema>): PersonalKeyStore {
  return {
    createPersonalKey: ({ secretHash, ...input }, change) =>
      db.transaction().execute(async trx => {
        const key = { ...input, createdAtMs: change.atMs }
        await trx
          .insertInto('personal_api_key')
          .values({
            id: key.id,
            label: key.label,
            secret_hash: secretHash,
            scopes: jsonText(key.scopes),
            scoped_project_ids: jsonText(key.scopedProjectIds),
            created_at: key.createdAtMs,
            last_used_at: key.lastUsedAtMs,
          })
          .execute()
        await recordActivity(trx, activityOfChange(itemOf(key), null, shownOf(key)), change)
        return key
      }),

    async findPersonalKeyByHash(secretHash) {
      const row = await db
        .selectFrom('personal_api_key')
        .selectAll()
        .where('secret_hash', '=', secretHash)
        .executeTakeFirst()
      return row === undefined ? null : keyOf(row)
    },

    async findPersonalKey(id) {
      const row = await db.selectFrom('personal_api_key').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : keyOf(row)
    },

    async listPersonalKeys({ limit, offset }) {
      const keys = db.selectFrom('personal_api_key')
      const { count } = await keys.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
      const page = keys.orderBy('created_at').orderBy('id').offset(offset)
      const sizes = await page.select(keyBytes.as('bytes')).limit(limit).execute()
      const rows = await page.selectAll().limit(countFittingRows(sizes)).execute()
      return { count: Number(count), results: rows.map(keyOf) }
    },

    deletePersonalKey: (id, change) =>
      db.transaction().execute(async trx => {
        const row = await trx.deleteFrom('personal_api_key').where('id', '=', id).returningAll().executeTakeFirst()
        if (row === undefined) return false
        const key = keyOf(row)
        await recordActivity(trx, activityOfChange(itemOf(key), shownOf(key), null), change)
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

function itemOf({ id, label }: PersonalKey) {
  return { kind: 'personal_api_key', projectId: null, itemId: id, itemName: label } as const
}

function shownOf({ label, scopes, scopedProjectIds }: PersonalKey): JsonObject {
  return { label, scopes: [...scopes], scoped_teams: [...scopedProjectIds] }
}

function keyOf(row: Selectable<PersonalKeyTable>): PersonalKey {
  return {
    id: row.id,
    label: row.label,
    scopes: jsonOf(row.scopes) as string[],
    scopedProjectIds: jsonOf(row.scoped_project_ids) as number[],
    createdAtMs: Number(row.created_at),
    lastUsedAtMs: row.last_used_at === null ? null : Number(row.last_used_at),
  }
}
