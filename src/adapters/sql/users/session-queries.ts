// Sessions, the links that sign somebody in once, and the counts of attempts to sign in.

import { type Kysely, sql } from 'kysely'
import { createActivityEntry } from '#core/activity.ts'
import type { Change } from '#core/author.ts'
import { toActivityLogFields } from '#core/resource.ts'
import { err, ok } from '#core/result.ts'
import {
  findLinkProblem,
  type SignedIn,
  type SignInLink,
  sessionFutureMaxMs,
  sessionLimits,
  sessionResource,
  signInLinkResource,
  type UserSession,
} from '#core/users/session.ts'
import { type AttemptKind, admitAttempt, keptAttempts } from '#core/users/sign-in-throttle.ts'
import { toUserAuthor, type User } from '#core/users/user.ts'
import type { NewSession, SessionStore, SignInAttemptStore, SignInLinkStore } from '#ports/state/user-store.ts'
import { readPage } from '../tables/read-pages.ts'
import { recordActivity } from '../tables/record-activity.ts'
import { toResourceItem, toResourceRow } from '../tables/resource-rows.ts'
import { bumpRevision } from '../tables/revision-queries.ts'
import type { StateSchema } from '../tables/schema.ts'
import { toStorableFields, toStorableText } from '../tables/wrap-methods.ts'
import {
  changeUser,
  createUserAct,
  deleteInvitation,
  insertUser,
  readUser,
  selectOpenInvitations,
} from './user-queries.ts'

const sessionsPerUserMax = 100
const expiredLinksKeptMs = 30 * 24 * 3_600_000
const attemptsRemovedEveryMs = 10_000

export function createSessionQueries(db: Kysely<StateSchema>): SessionStore & SignInLinkStore & SignInAttemptStore {
  let attemptsRemovedAtMs = Number.NEGATIVE_INFINITY

  return {
    createSession: ({ id, accessVersion }, session, change) =>
      db.transaction().execute(async trx => {
        const user = await readUser(trx, id)
        if (user === null || user.isDisabled || user.accessVersion !== accessVersion) return err('not_found')
        return ok(await startSession(trx, user, session, change))
      }),

    async findSession(secretHash) {
      const session = await db
        .selectFrom('user_session')
        .selectAll()
        .where('secret_hash', '=', secretHash)
        .executeTakeFirst()
      if (session === undefined) return null
      const user = await readUser(db, session.user_id)
      return user === null || user.isDisabled ? null : { session: toResourceItem(sessionResource, session), user }
    },

    async listSessions(userId, nowMs) {
      const rows = await db
        .selectFrom('user_session')
        .selectAll()
        .where('user_id', '=', userId)
        .where('created_at', '>', nowMs - sessionLimits.longestMs)
        .where('created_at', '<=', nowMs + sessionFutureMaxMs)
        .where('last_seen_at', '>', nowMs - sessionLimits.idleMs)
        .orderBy('created_at', 'desc')
        .orderBy('id')
        .execute()
      return rows.map(row => toResourceItem(sessionResource, row))
    },

    endSessions: (userId, which, change) =>
      db.transaction().execute(async trx => {
        let ending = trx.deleteFrom('user_session').where('user_id', '=', userId)
        if ('only' in which) ending = ending.where('id', '=', which.only)
        else {
          if (which.except !== null) ending = ending.where('id', '!=', which.except)
          const version = sql<number>`access_version + 1`
          await trx.updateTable('user').set({ access_version: version }).where('id', '=', userId).execute()
        }
        const ended = await ending.returningAll().execute()
        if (ended.length === 0) return 0
        const user = (await readUser(trx, userId)) ?? { id: userId, name: '', email: null }
        for (const row of ended)
          await recordActivity(trx, createUserAct(user, 'session_ended', describeSession(row)), change)
        await bumpRevision(trx, null)
        return ended.length
      }),

    async saveSessionUses(uses) {
      if (uses.length === 0) return
      await db.transaction().execute(async trx => {
        for (const { id, usedAtMs } of uses) {
          await trx
            .updateTable('user_session')
            .set({ last_seen_at: usedAtMs })
            .where('id', '=', id)
            .where('last_seen_at', '<', usedAtMs)
            .execute()
          await trx
            .updateTable('user')
            .set({ last_seen_at: usedAtMs })
            .where('id', '=', trx.selectFrom('user_session').select('user_id').where('id', '=', id))
            .where(is => is.or([is('last_seen_at', 'is', null), is('last_seen_at', '<', usedAtMs)]))
            .execute()
        }
      })
    },

    createSignInLink: (given, tokenHash, change) =>
      db.transaction().execute(async trx => {
        const link: SignInLink = { ...given, createdAtMs: change.atMs, usedAtMs: null }
        await trx
          .deleteFrom('sign_in_link')
          .where('expires_at', '<', change.atMs - expiredLinksKeptMs)
          .execute()
        const unused = trx.deleteFrom('sign_in_link').where('used_at', 'is', null)
        if (link.userId !== null) await unused.where('user_id', '=', link.userId).execute()
        else if (link.email !== null)
          await unused.where('user_id', 'is', null).where('email', '=', link.email).execute()
        await trx
          .insertInto('sign_in_link')
          .values({ ...toResourceRow(signInLinkResource, link), token_hash: tokenHash })
          .execute()
        const user = link.userId === null ? null : await readUser(trx, link.userId)
        const entry = createActivityEntry(
          {
            ...({ kind: 'user', projectId: null, itemId: link.userId ?? link.id } as const),
            itemName: user === null ? link.name || (link.email ?? link.role) : toUserAuthor(user).label,
          },
          null,
          toActivityLogFields(signInLinkResource, link),
        )!
        await recordActivity(trx, { ...entry, activity: user === null ? 'invited' : 'link_created' }, change)
      }),

    findSignInLink: tokenHash => readLink(db, tokenHash),

    listInvitations(page, nowMs) {
      const open = selectOpenInvitations(db, nowMs).orderBy('created_at').orderBy('id')
      const bytes = sql<number>`octet_length(name) + coalesce(octet_length(email), 0)`
      return readPage(open, bytes, page, row => toResourceItem(signInLinkResource, row))
    },

    deleteInvitation: (id, change) => db.transaction().execute(trx => deleteInvitation(trx, id, change)),

    spendSignInLink: ({ tokenHash, newUserId, given, session }, nowMs) =>
      db.transaction().execute(async trx => {
        const link = await readLink(trx, tokenHash)
        const problem = findLinkProblem(link, nowMs)
        if (link === null || problem !== null) return err(problem ?? 'unknown')
        const { passwordHash, ...fields } = toStorableFields(given)
        // Set first, because a new password deletes the user's unused links.
        await markLinkUsed(trx, link, nowMs)
        const undo = async <E>(error: E) => {
          await markLinkUsed(trx, link, null)
          return err(error)
        }
        let user: User
        if (link.userId === null) {
          const { role, seesPersons, name, email } = link
          const times = { createdAtMs: nowMs, lastSeenAtMs: null }
          const made: User = {
            ...{ id: newUserId, name, email, role, seesPersons, isDisabled: false, ...times, ...fields },
            hasPassword: passwordHash !== undefined,
            accessVersion: 0,
          }
          const inserted = await insertUser(trx, made, passwordHash ?? null)
          if (!inserted.ok) return undo(inserted.error)
          user = made
        } else {
          const current = await readUser(trx, link.userId)
          if (current === null) return undo('unknown' as const)
          if (current.isDisabled) return undo('user_disabled' as const)
          const patch = { ...fields, ...(passwordHash !== undefined && { passwordHash }) }
          const changed = await changeUser(trx, current, patch, { by: toUserAuthor(current), atMs: nowMs })
          if (!changed.ok) return undo('email_taken' as const)
          user = changed.value
        }
        return ok(await startSession(trx, user, session, { by: toUserAuthor(user), atMs: nowMs }))
      }),

    countSignInAttempt: (kind, key, nowMs) =>
      db.transaction().execute(async trx => {
        const name = `${kind}:${key}`
        const row = await trx.selectFrom('sign_in_attempt').selectAll().where('name', '=', name).executeTakeFirst()
        const seen = row === undefined ? null : { count: Number(row.attempts), atMs: Number(row.counted_at) }
        const admission = admitAttempt(kind, seen, nowMs)
        if (!admission.isAdmitted) return admission.retryAfterMs
        const { count, atMs } = admission.attempts
        await writeAttempts(trx, { name, attempts: count, counted_at: atMs })
        if (Math.abs(nowMs - attemptsRemovedAtMs) < attemptsRemovedEveryMs) return null
        attemptsRemovedAtMs = nowMs
        await removeOldAttempts(trx, name, nowMs)
        return null
      }),

    async isHomeNetwork(homeKey, nowMs) {
      const home = db.selectFrom('sign_in_attempt').select('name').where('name', '=', `home:${homeKey}`)
      return (await home.where('counted_at', '>', nowMs - keptAttempts.home.forMs).executeTakeFirst()) !== undefined
    },

    recordSignIn: ({ id, network, homeKey }, nowMs) =>
      db.transaction().execute(async trx => {
        const home = { name: `home:${homeKey}`, attempts: 0, counted_at: nowMs }
        const known = trx.selectFrom('sign_in_attempt').select('name').where('name', '=', home.name)
        // A sign-in at home was not counted on the user, whose attempts from elsewhere go on waiting.
        if ((await known.executeTakeFirst()) === undefined)
          await trx.deleteFrom('sign_in_attempt').where('name', '=', `user:${id}`).execute()
        await writeAttempts(trx, home)
        await trx
          .updateTable('sign_in_attempt')
          .set({ attempts: sql<number>`attempts - 1` })
          .where('name', '=', `address:${network}`)
          .where('attempts', '>', 0)
          .execute()
      }),

    recordFailedSignIn: (user, address, change) =>
      db.transaction().execute(trx => recordActivity(trx, createUserAct(user, 'sign_in_failed', { address }), change)),
  }
}

async function readLink(db: Kysely<StateSchema>, tokenHash: string): Promise<SignInLink | null> {
  const row = await db.selectFrom('sign_in_link').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst()
  return row === undefined ? null : toResourceItem(signInLinkResource, row)
}

async function markLinkUsed(trx: Kysely<StateSchema>, { id }: SignInLink, usedAtMs: number | null): Promise<void> {
  await trx.updateTable('sign_in_link').set({ used_at: usedAtMs }).where('id', '=', id).execute()
}

async function startSession(
  trx: Kysely<StateSchema>,
  user: User,
  { secretHash, ...given }: NewSession,
  change: Change,
): Promise<SignedIn> {
  const { atMs } = change
  const session: UserSession = {
    ...{ id: given.id, userId: user.id, createdAtMs: atMs, lastSeenAtMs: atMs },
    ...{ userAgent: toStorableText(given.userAgent), address: toStorableText(given.address) },
  }
  await trx
    .deleteFrom('user_session')
    .where(is =>
      is.or([
        is('created_at', '<=', atMs - sessionLimits.longestMs),
        is('last_seen_at', '<=', atMs - sessionLimits.idleMs),
      ]),
    )
    .execute()
  const newest = trx.selectFrom('user_session').select('id').where('user_id', '=', user.id)
  const kept = newest
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(sessionsPerUserMax - 1)
  const ids = (await kept.execute()).map(({ id }) => id)
  if (ids.length === sessionsPerUserMax - 1) {
    const removing = trx.deleteFrom('user_session').where('user_id', '=', user.id).where('id', 'not in', ids)
    const { numDeletedRows } = await removing.executeTakeFirstOrThrow()
    if (numDeletedRows > 0) await bumpRevision(trx, null)
  }
  await trx
    .insertInto('user_session')
    .values({ ...toResourceRow(sessionResource, session), secret_hash: secretHash })
    .execute()
  await trx.updateTable('user').set({ last_seen_at: atMs }).where('id', '=', user.id).execute()
  await recordActivity(
    trx,
    createUserAct(user, 'signed_in', { address: session.address, user_agent: session.userAgent }),
    change,
  )
  return { session, user: { ...user, lastSeenAtMs: atMs } }
}

function describeSession(row: { readonly address: string; readonly user_agent: string }) {
  return { address: row.address, user_agent: row.user_agent }
}

type AttemptRow = StateSchema['sign_in_attempt']

async function writeAttempts(trx: Kysely<StateSchema>, row: AttemptRow): Promise<void> {
  await trx
    .insertInto('sign_in_attempt')
    .values(row)
    .onConflict(found => found.column('name').doUpdateSet(row))
    .execute()
}

/** @param counted the name just counted, which stays. */
async function removeOldAttempts(trx: Kysely<StateSchema>, counted: string, nowMs: number): Promise<void> {
  for (const kind of Object.keys(keptAttempts) as AttemptKind[]) {
    const { forMs, namesMax } = keptAttempts[kind]
    // `;` comes after `:`. The key of the table is in the order of bytes.
    const range = [`${kind}:`, `${kind};`] as const
    const removal = trx.deleteFrom('sign_in_attempt').where('name', '>=', range[0]).where('name', '<', range[1])
    await removal.where('counted_at', '<=', nowMs - forMs).execute()
    if (namesMax === null) continue
    const oldest = trx
      .selectFrom('sign_in_attempt')
      .select('name')
      .where('name', '>=', range[0])
      .where('name', '<', range[1])
      .where('name', '!=', counted)
      .orderBy('counted_at', 'desc')
      .limit(1_000_000_000)
      .offset(namesMax)
    await trx.deleteFrom('sign_in_attempt').where('name', 'in', oldest).execute()
  }
}
