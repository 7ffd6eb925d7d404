// Users: their fields, their password hashes, and the rule that one active admin is left.

import { type Kysely, type Selectable, sql } from 'kysely'
import { createActivityEntry, type NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import { personalKeyResource } from '#core/personal-key.ts'
import { patchItem, toActivityLogFields } from '#core/resource.ts'
import { err, ok, type Result } from '#core/result.ts'
import { holdsScopes, isActiveAdmin, isRiseOfRights, toUserAuthor, type User, userResource } from '#core/users/user.ts'
import type { UserPatch, UserStore } from '#ports/state/user-store.ts'
import { readPage } from '../tables/read-pages.ts'
import { recordActivity, recordKeyDeletion } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import { parseStoredAuthor } from '../tables/rows.ts'
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

    updateUser: (id, patch, change, accessVersion) =>
      db.transaction().execute(async trx => {
        const current = await readUser(trx, id)
        if (current === null) return err('not_found')
        if (typeof accessVersion === 'number' && current.accessVersion !== accessVersion) return err('changed')
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
        await deleteGivenAccess(trx, current, null, change)
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
  const patched: User = { ...patchItem(userResource, current, patch), hasPassword }
  const isNewPassword = passwordHash !== undefined && isSamePassword !== true
  const losesLinks = patched.isDisabled || isNewPassword
  const losesSessions = losesLinks || isRiseOfRights(current, patched)
  const user = { ...patched, accessVersion: current.accessVersion + (losesSessions ? 1 : 0) }
  if (user.email !== current.email && (await isEmailTaken(trx, user, change.atMs))) return err('email_taken')
  if (!isActiveAdmin(user) && (await isLastAdmin(trx, current))) return err('last_admin')
  await trx
    .updateTable('user')
    .set({ ...toResourceRow(userResource, user), ...(passwordHash !== undefined && { password_hash: passwordHash }) })
    .where('id', '=', user.id)
    .execute()
  await recordActivity(trx, createUserActivity(current, user), change)
  if (isNewPassword) await recordActivity(trx, createUserAct(user, 'password_changed'), change)
  if (losesSessions) await deleteAccess(trx, user.id, { links: losesLinks })
  if (user.isDisabled || isRiseOfRights(user, current)) await deleteGivenAccess(trx, current, user, change)
  await bumpRevision(trx, null)
  return ok(user)
}

/** Inserts a user within a transaction, with the entry in the activity log; the user is its own author. */
export async function insertUser(
  trx: Kysely<StateSchema>,
  user: User,
  passwordHash: string | null,
): Promise<Result<User, 'email_taken'>> {
  if (await isEmailTaken(trx, user, user.createdAtMs)) return err('email_taken')
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

/** Addresses of open invitations are taken too: otherwise a user could lock out whoever was invited. */
async function isEmailTaken(trx: Kysely<StateSchema>, { id, email }: User, nowMs: number): Promise<boolean> {
  if (email === null) return false
  const invited = selectOpenInvitations(trx, nowMs).select('id').where('email', '=', email)
  if ((await invited.executeTakeFirst()) !== undefined) return true
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

export function selectOpenInvitations(db: Kysely<StateSchema>, nowMs: number) {
  return db
    .selectFrom('sign_in_link')
    .where('user_id', 'is', null)
    .where('used_at', 'is', null)
    .where('expires_at', '>', nowMs)
}

/**
 * Deletes the invitations and keys that a user made, also by means of keys that they made. The activity log knows who made
 * what, and loses no entries.
 * @param after null when the user is deleted.
 */
async function deleteGivenAccess(
  trx: Kysely<StateSchema>,
  before: User,
  after: User | null,
  change: Change,
): Promise<void> {
  const keys = await trx
    .selectFrom('personal_api_key')
    .innerJoin('activity_log', 'activity_log.item_id', 'personal_api_key.id')
    .where('kind', '=', 'personal_api_key')
    .where('activity', '=', 'created')
    .selectAll('personal_api_key')
    .select('author')
    .execute()
  // A key is made after the key with which it was made, and the order of the rows is unknown.
  const makers = new Set([before.id])
  const isMade = ({ author }: { author: string | null }) => makers.has(parseStoredAuthor(author)?.id ?? '')
  for (let size = 0; size < makers.size; ) {
    size = makers.size
    for (const key of keys) if (isMade(key)) makers.add(key.id)
  }
  for (const row of keys) {
    const key = toResourceItem(personalKeyResource, row)
    if (!isMade(row) || (after !== null && !after.isDisabled && holdsScopes(after, key.scopes))) continue
    await trx.deleteFrom('personal_api_key').where('id', '=', key.id).execute()
    await recordKeyDeletion(trx, key, change)
  }
  if (!isActiveAdmin(before) || (after !== null && isActiveAdmin(after))) return
  const invitations = await selectOpenInvitations(trx, change.atMs)
    .innerJoin('activity_log', 'activity_log.item_id', 'sign_in_link.id')
    .where('activity', '=', 'invited')
    .select(['sign_in_link.id', 'author'])
    .execute()
  for (const row of invitations) if (isMade(row)) await deleteInvitation(trx, row.id, change)
  await trx.deleteFrom('sign_in_link').where('purpose', '=', 'reset').where('used_at', 'is', null).execute()
}

/** Deletes the open invitation within a transaction. @returns whether there was one. */
export async function deleteInvitation(trx: Kysely<StateSchema>, id: string, change: Change): Promise<boolean> {
  const row = await selectOpenInvitations(trx, change.atMs).selectAll().where('id', '=', id).executeTakeFirst()
  if (row === undefined) return false
  await trx.deleteFrom('sign_in_link').where('id', '=', id).execute()
  const { name, email, role } = row
  const item = { kind: 'user', projectId: null, itemId: id, itemName: name || (email ?? role) } as const
  await recordActivity(trx, { ...item, activity: 'invitation_deleted', changes: [] }, change)
  return true
}
