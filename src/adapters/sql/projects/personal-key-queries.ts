// Personal API keys, by the hash of their secret. Deleting a key bumps the revision, so that every process forgets the
// key. Creating one does not, since no process can have it cached.

import { type Kysely, sql } from 'kysely'
import { activityOfChange } from '#core/activity.ts'
import { type PersonalKey, personalKeyResource } from '#core/personal-key.ts'
import { showLogged } from '#core/resource.ts'
import type { PersonalKeyStore } from '#ports/state/project-store.ts'
import { readPage } from '../tables/fitting-rows.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { itemOf, rowOf } from '../tables/resource-rows.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'

const keyBytes = sql<number>`octet_length(label) + octet_length(scopes) + octet_length(scoped_project_ids)`

export function createPersonalKeyQueries(db: Kysely<StateSchema>): PersonalKeyStore {
  return {
    createPersonalKey: ({ secretHash, ...input }, change) =>
      db.transaction().execute(async trx => {
        const key = { ...input, createdAtMs: change.atMs }
        await trx
          .insertInto('personal_api_key')
          .values({ ...rowOf(personalKeyResource, key), secret_hash: secretHash })
          .execute()
        await recordActivity(trx, activityOfChange(toLogged(key), null, showLogged(personalKeyResource, key)), change)
        return key
      }),

    async findPersonalKeyByHash(secretHash) {
      const row = await db
        .selectFrom('personal_api_key')
        .selectAll()
        .where('secret_hash', '=', secretHash)
        .executeTakeFirst()
      return row === undefined ? null : itemOf(personalKeyResource, row)
    },

    async findPersonalKey(id) {
      const row = await db.selectFrom('personal_api_key').selectAll().where('id', '=', id).executeTakeFirst()
      return row === undefined ? null : itemOf(personalKeyResource, row)
    },

    listPersonalKeys(page) {
      const keys = db.selectFrom('personal_api_key').orderBy('created_at').orderBy('id')
      return readPage(keys, keyBytes, page, row => itemOf(personalKeyResource, row))
    },

    deletePersonalKey: (id, change) =>
      db.transaction().execute(async trx => {
        const row = await trx.deleteFrom('personal_api_key').where('id', '=', id).returningAll().executeTakeFirst()
        if (row === undefined) return false
        const key = itemOf(personalKeyResource, row)
        await recordActivity(trx, activityOfChange(toLogged(key), showLogged(personalKeyResource, key), null), change)
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

function toLogged({ id, label }: PersonalKey) {
  return { kind: 'personal_api_key', projectId: null, itemId: id, itemName: label } as const
}
