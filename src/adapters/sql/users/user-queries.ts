// Users: their fields, their password hashes, and the rule that one active admin is left.

import { type Kysely, type Selectable, sql } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import { patchItem, toActivityLogFields } from '#core/resource.ts'
import { err, ok, type Result } from '#core/result.ts'
import { isActiveAdmin, isRiseOfRights, toUserAuthor, type User, userResource } from '#core/users/user.ts'
import type { UserPatch, UserStore } from '#ports/state/user-store.ts'
import { readPage } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'

const userBytes = sql<number>`octet_length(name) + coalesce(octet_length(email), 0)`

export function createUserQueries(db: Kysely<StateSchema>): UserStore {
  return {
    findUser: id => readUser(db, id),

    async findUserByEmail(email) {
      const row = await db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()
      return row === undefined ? null : toUser(row)
    },

    async findPasswordHash(userId) {
      const row = await db.selectFrom('user').select('password_hash').where('id', '=', userId).executeTakeFirst()
      return row?.password_hash ?? null
    },

    listUsers: page => readPage(db.selectFrom('user').orderBy('created_at').orderBy('id'), userBytes, page, toUser),

    updateUser: (id, patch, change) =>
      db.transaction().execute(async trx => {
        const current = await readUser(trx, id)
        if (current === null) return err('not_found')
        return changeUser(trx, current, patch, change)
      }),

    deleteUser: (id, change) =>
      db.transaction().execute(async trx => {
        const current = await readUser(trx, id)
        if (current === null) return err('not_found')
        if (await isLastAdmin(trx, current)) return err('last_admin')
        await trx.deleteFrom('user').where('id', '=', id).execute()
        await deleteAccess(trx, id, { links: true })
        await recordActivity(trx, createUserActivity(current, null), change)
        await bumpRevision(trx, null)
        return ok(null)
      }),
  }
}

/** Changes the user within a transaction, with the entry in the activity log. */
export async function changeUser(
  trx: Kysely<StateSchema>,
  current: User,
  { passwordHash, isSamePassword, ...patch }: UserPatch,
  change: Change,
): Promise<Result<User, 'email_taken' | 'last_admin'>> {
  const hasPassword = current.hasPassword || passwordHash !== undefined
  const user: User = { ...patchItem(userResource, current, patch), hasPassword }
  if (user.email !== current.email && (await isEmailTaken(trx, user))) return err('email_taken')
  if (!isActiveAdmin(user) && (await isLastAdmin(trx, current))) return err('last_admin')
  await trx
    .updateTable('user')
    .set({ ...toResourceRow(userResource, user), ...(passwordHash !== undefined && { password_hash: passwordHash }) })
    .where('id', '=', user.id)
    .execute()
  await recordActivity(trx, createUserActivity(current, user), change)
  const isNewPassword = passwordHash !== undefined && isSamePassword !== true
  if (isNewPassword) await recordActivity(trx, createUserAct(user, 'password_changed'), change)
  const losesLinks = user.isDisabled || isNewPassword
  if (losesLinks || isRiseOfRights(current, user)) await deleteAccess(trx, user.id, { links: losesLinks })
  await bumpRevision(trx, null)
  return ok(user)
}

/** Inserts a user within a transaction, with the entry in the activity log; the user is its own author. */
export async function insertUser(
  trx: Kysely<StateSchema>,
  user: User,
  passwordHash: string | null,
): Promise<Result<User, 'email_taken'>> {
  if (await isEmailTaken(trx, user)) return err('email_taken')
  await trx
    .insertInto('user')
    .values({ ...toResourceRow(userResource, user), password_hash: passwordHash })
    .execute()
  await recordActivity(trx, createUserActivity(null, user), { by: toUserAuthor(user), atMs: user.createdAtMs })
  return ok(user)
}

export async function readUser(db: Kysely<StateSchema>, id: string): Promise<User | null> {
  const row = await db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()
  return row === undefined ? null : toUser(row)
}

export function toUser(row: Selectable<StateSchema['user']>): User {
  return { ...toResourceItem(userResource, row), hasPassword: row.password_hash !== null }
}

/** The entry for something that a user did or that was done for them, which changes none of their fields. */
export function createUserAct(
  user: Pick<User, 'id' | 'name' | 'email'>,
  activity: string,
  shown: Readonly<Record<string, string>> = {},
): NewActivity {
  return {
    ...toLoggedUser(user),
    activity,
    changes: Object.entries(shown).map(([path, after]) => ({ path, action: 'created', before: null, after })),
  }
}

function createUserActivity(before: User | null, after: User | null): NewActivity | null {
  const fields = (user: User | null) => user && toActivityLogFields(userResource, user)
  return createActivityEntry(toLoggedUser((after ?? before)!), fields(before), fields(after))
}

function toLoggedUser(user: Pick<User, 'id' | 'name' | 'email'>) {
  return { kind: 'user', projectId: null, itemId: user.id, itemName: toUserAuthor(user).label } as const
}

async function isEmailTaken(trx: Kysely<StateSchema>, { id, email }: User): Promise<boolean> {
  if (email === null) return false
  const other = trx.selectFrom('user').select('id').where('email', '=', email).where('id', '!=', id)
  return (await other.executeTakeFirst()) !== undefined
}

async function isLastAdmin(trx: Kysely<StateSchema>, user: User): Promise<boolean> {
  if (!isActiveAdmin(user)) return false
  const others = trx
    .selectFrom('user')
    .select('id')
    .where('role', '=', 'admin')
    .where('disabled', '=', 0)
    .where('id', '!=', user.id)
  return (await others.executeTakeFirst()) === undefined
}

async function deleteAccess(trx: Kysely<StateSchema>, userId: string, { links }: { links: boolean }): Promise<void> {
  await trx.deleteFrom('user_session').where('user_id', '=', userId).execute()
  if (links) await trx.deleteFrom('sign_in_link').where('user_id', '=', userId).where('used_at', 'is', null).execute()
}
