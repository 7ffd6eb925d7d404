// The contract of every store of users: one active admin is left, a link is spent once, and whatever ends a session raises
// the revision.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Activity } from '#core/activity.ts'
import { sessionLimits } from '#core/users/session.ts'
import type { Role } from '#core/users/user.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { LinkSpending } from '#ports/state/user-store.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { aChange } from '../support/values.ts'
import type { OpenManagement } from './management-harness.ts'

const nowMs = 1_700_000_000_000
const hourMs = 3_600_000
const hashOf = (name: string) => name.padEnd(64, '0')
const aSession = (name: string) => ({
  ...{ id: `session-${name}`, secretHash: hashOf(name), userAgent: 'Browser', address: '192.0.2.1' },
})

async function invite(
  store: ManagementStore,
  name: string,
  role: Role = 'admin',
  email: string | null = `${name}@x.example`,
) {
  const link = { id: `link-${name}`, purpose: 'invitation', userId: null, role, seesPersons: true } as const
  const expiresAtMs = nowMs + hourMs
  await store.createSignInLink({ ...link, email, name, expiresAtMs }, hashOf(`t${name}`), aChange('Test', nowMs))
}

const spend = (store: ManagementStore, name: string, given: LinkSpending['given'] = {}, atMs = nowMs) =>
  store.spendSignInLink(
    { tokenHash: hashOf(`t${name}`), newUserId: `user-${name}`, given, session: aSession(name) },
    atMs,
  )

/** A user with a session, both with this name. */
async function aUser(store: ManagementStore, name: string, role: Role = 'admin', given: LinkSpending['given'] = {}) {
  await invite(store, name, role)
  const spent = await spend(store, name, given)
  assert.ok(spent.ok, JSON.stringify(spent))
  return spent.value.user
}

async function actsOn(store: ManagementStore): Promise<string[]> {
  const { results } = await store.listActivity({ projectId: null, kinds: ['user'], limit: 100 })
  return results.map(({ activity, itemName }: Activity) => `${activity} ${itemName}`).toReversed()
}

export function userStoreContract(adapter: string, open: OpenManagement): void {
  describe(`UserStore on ${adapter}`, () => {
    it('creates a user when their link is spent, once, with a session', async t => {
      const { store } = await open(t)
      await invite(store, 'ada', 'editor')
      const found = await store.findSignInLink(hashOf('tada'))
      assert.deepEqual(
        [found?.purpose, found?.role, found?.email, found?.usedAtMs],
        ['invitation', 'editor', 'ada@x.example', null],
      )
      const spent = await spend(store, 'ada', { name: 'Ada L\0', passwordHash: 'h' })
      assert.ok(spent.ok)
      const { user, session } = spent.value
      assert.deepEqual(user, {
        ...{ id: 'user-ada', email: 'ada@x.example', name: 'Ada L\ufffd', role: 'editor', seesPersons: true },
        ...{ isDisabled: false, createdAtMs: nowMs, lastSeenAtMs: nowMs, hasPassword: true },
        accessVersion: 0,
      })
      assert.deepEqual(await store.findUser('user-ada'), user)
      assert.deepEqual(await store.findUserByEmail('ada@x.example'), user)
      assert.equal(await store.findPasswordHash('user-ada'), 'h')
      assert.deepEqual(await store.findSession(hashOf('ada')), { session, user })
      assert.deepEqual(await spend(store, 'ada'), { ok: false, error: 'used' })
      assert.deepEqual(await spend(store, 'nobody'), { ok: false, error: 'unknown' })
      assert.deepEqual(await store.listUsers({ limit: 10, offset: 0 }), { count: 1, results: [user] })
      assert.deepEqual(await actsOn(store), ['invited ada', 'created Ada L\ufffd', 'signed_in Ada L\ufffd'])
    })

    it('does not spend a link that expired, was replaced, or whose address is taken by then', async t => {
      const { store } = await open(t)
      await invite(store, 'ada')
      assert.deepEqual(await spend(store, 'ada', {}, nowMs + hourMs), { ok: false, error: 'expired' })
      await aUser(store, 'eve')
      assert.deepEqual(await spend(store, 'ada', { email: 'eve@x.example' }), { ok: false, error: 'email_taken' })
      await invite(store, 'newer', 'admin', 'ada@x.example')
      assert.deepEqual(await spend(store, 'ada'), { ok: false, error: 'unknown' })
      assert.equal((await spend(store, 'newer')).ok, true, 'a refusal does not use a link up')
    })

    it('signs in a user by a link of theirs, and a new password ends their other sessions and links', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      const link = { id: 'l', purpose: 'reset', userId: ada.id, role: ada.role, seesPersons: true } as const
      const shown = { email: ada.email, name: ada.name, expiresAtMs: nowMs + hourMs }
      await store.createSignInLink({ ...link, ...shown }, hashOf('treset'), aChange('Test', nowMs))
      const spent = await spend(store, 'reset', { passwordHash: 'new' })
      assert.ok(spent.ok)
      assert.equal(spent.value.user.id, ada.id)
      assert.equal(await store.findPasswordHash(ada.id), 'new')
      assert.equal(await store.findSession(hashOf('ada')), null)
      assert.deepEqual(fieldOf(await store.listSessions(ada.id, nowMs), 'id'), ['session-reset'])
      assert.deepEqual(await spend(store, 'reset'), { ok: false, error: 'used' })
    })

    it('keeps one active admin, and one user per address', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      const eve = await aUser(store, 'eve', 'editor')
      for (const patch of [{ role: 'editor' }, { role: 'viewer' }, { isDisabled: true }] as const)
        assert.deepEqual(await store.updateUser(ada.id, patch, aChange()), { ok: false, error: 'last_admin' })
      assert.deepEqual(await store.deleteUser(ada.id, aChange()), { ok: false, error: 'last_admin' })
      assert.deepEqual(await store.updateUser(eve.id, { email: 'ada@x.example' }, aChange()), {
        ok: false,
        error: 'email_taken',
      })
      assert.equal((await store.updateUser(eve.id, { role: 'admin' }, aChange())).ok, true)
      assert.equal((await store.updateUser(ada.id, { isDisabled: true }, aChange())).ok, true)
      assert.deepEqual(await store.deleteUser(eve.id, aChange()), { ok: false, error: 'last_admin' })
      assert.deepEqual(await store.deleteUser(ada.id, aChange()), { ok: true, value: null })
      assert.deepEqual(await store.updateUser(ada.id, {}, aChange()), { ok: false, error: 'not_found' })
      assert.deepEqual(await store.deleteUser(ada.id, aChange()), { ok: false, error: 'not_found' })
      assert.equal(await store.findUser(ada.id), null)
    })

    it('ends the sessions of a user who is disabled or gets more rights, but not of one who gets fewer', async t => {
      const { store, revision } = await open(t)
      await aUser(store, 'ada')
      const eve = await aUser(store, 'eve', 'editor')
      const before = await revision()
      await store.updateUser(eve.id, { role: 'viewer' }, aChange())
      assert.equal((await store.findSession(hashOf('eve')))?.user.role, 'viewer')
      assert.equal(await revision(), before + 1)
      await store.updateUser(eve.id, { role: 'editor' }, aChange())
      assert.equal(await store.findSession(hashOf('eve')), null)
      const risen = (await store.findUser(eve.id))!
      const refused = { ok: false, error: 'not_found' }
      const start = (user: typeof eve) => store.createSession(user, aSession('eve2'), aChange('Test', nowMs))
      assert.deepEqual(await start(eve), refused, 'her sign-in began before')
      assert.equal((await start(risen)).ok, true)
      await store.updateUser(eve.id, { isDisabled: true }, aChange())
      assert.equal(await store.findSession(hashOf('eve2')), null)
      assert.deepEqual(await start((await store.findUser(eve.id))!), refused)
    })

    it('ends one session, or all but one, and raises the revision only then', async t => {
      const { store, revision } = await open(t)
      const ada = await aUser(store, 'ada')
      for (const name of ['b', 'c', 'd']) await store.createSession(ada, aSession(name), aChange('Test', nowMs + 1))
      const before = await revision()
      assert.equal(await store.endSessions(ada.id, { only: 'session-b' }, aChange()), 1)
      assert.equal(await store.endSessions(ada.id, { only: 'session-b' }, aChange()), 0)
      assert.equal(await store.endSessions('user-eve', { only: 'session-c' }, aChange()), 0)
      assert.equal(await revision(), before + 1)
      assert.equal(await store.endSessions(ada.id, { except: 'session-d' }, aChange()), 2)
      assert.equal(await store.endSessions(ada.id, { except: null }, aChange()), 1)
      assert.deepEqual(await store.listSessions(ada.id, nowMs), [])
    })

    it('refuses a session or a change when a new password or an end of all sessions came in between', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      const attempt = async (read: typeof ada) => {
        const started = await store.createSession(read, aSession('late'), aChange('Test', nowMs))
        const changed = await store.updateUser(read.id, { passwordHash: 'late' }, aChange(), read.accessVersion)
        return [started.ok || started.error, changed.ok || changed.error]
      }
      assert.equal((await store.updateUser(ada.id, { passwordHash: 'new' }, aChange())).ok, true)
      assert.deepEqual(await attempt(ada), ['not_found', 'changed'])
      const second = (await store.findUser(ada.id))!
      await store.endSessions(ada.id, { except: null }, aChange())
      assert.deepEqual(await attempt(second), ['not_found', 'changed'])
      assert.equal(await store.findPasswordHash(ada.id), 'new')
      const same = { passwordHash: 'rehashed', isSamePassword: true } as const
      const third = (await store.findUser(ada.id))!
      assert.equal((await store.updateUser(ada.id, same, aChange(), third.accessVersion)).ok, true)
      assert.deepEqual(await attempt(third), [true, true])
    })

    it('lists and deletes open invitations, and keeps their addresses for them', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      for (const name of ['b', 'c']) await invite(store, name, 'viewer')
      const open_ = await store.listInvitations({ limit: 1, offset: 1 }, nowMs)
      assert.deepEqual([open_.count, fieldOf(open_.results, 'email')], [2, ['c@x.example']])
      const take = (atMs: number) => store.updateUser(ada.id, { email: 'b@x.example' }, aChange('Test', atMs))
      assert.deepEqual(await take(nowMs), { ok: false, error: 'email_taken' })
      const change = aChange('Test', nowMs)
      assert.equal(await store.deleteInvitation('link-c', change), true)
      for (const id of ['link-c', 'link-ada']) assert.equal(await store.deleteInvitation(id, change), false, id)
      assert.deepEqual(await spend(store, 'c'), { ok: false, error: 'unknown' })
      assert.equal((await actsOn(store)).at(-1), 'invitation_deleted c')
      assert.equal((await store.listInvitations({ limit: 9, offset: 0 }, nowMs + hourMs)).count, 0)
      assert.equal((await take(nowMs + hourMs)).ok, true)
    })

    it('removes sessions that have ended by the clock, and keeps at most 100 of a user', async t => {
      const { store, revision } = await open(t)
      const ada = await aUser(store, 'ada')
      const laterMs = nowMs + sessionLimits.idleMs
      assert.deepEqual(await store.listSessions(ada.id, laterMs), [])
      const before = await revision()
      for (let n = 0; n < 105; n++) await store.createSession(ada, aSession(`n${n}x`), aChange('Test', laterMs + n))
      assert.equal(await revision(), before + 5, 'what ends here ends in other processes')
      assert.equal(await store.findSession(hashOf('ada')), null)
      const sessions = await store.listSessions(ada.id, laterMs + 104)
      assert.equal(sessions.length, 100)
      assert.equal(sessions[0]!.id, 'session-n104x')
    })

    it('moves the last use of sessions and their users forward, never back', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      const usedAt = (usedAtMs: number) =>
        store.saveSessionUses([
          { id: 'session-ada', usedAtMs },
          { id: 'gone', usedAtMs },
        ])
      await usedAt(nowMs + 60_000)
      await usedAt(nowMs + 5)
      await store.saveSessionUses([])
      assert.equal((await store.findSession(hashOf('ada')))?.session.lastSeenAtMs, nowMs + 60_000)
      assert.equal((await store.findUser(ada.id))?.lastSeenAtMs, nowMs + 60_000)
    })

    it('counts attempts on an account and from an address', async t => {
      const { store } = await open(t)
      const count = store.countSignInAttempt
      for (let n = 0; n < 5; n++) assert.equal(await count('account', 'ada', nowMs), null)
      assert.equal(await count('account', 'ada', nowMs), 1_000)
      assert.equal(await count('account', 'eve', nowMs), null, 'other accounts do not wait')
      for (let n = 0; n < 20; n++) assert.equal(await count('address', 'busy', nowMs), null)
      assert.equal(await count('address', 'busy', nowMs), 60_000)
      assert.equal(await count('address', 'busy', nowMs + 59_000), 1_000)
      assert.equal(await count('address', 'busy', nowMs + 60_000), null)
    })

    it('makes a network a home by a sign-in there, which takes back what was counted', async t => {
      const { store } = await open(t)
      const count = store.countSignInAttempt
      const signInFrom = (network: string, atMs = nowMs) =>
        store.recordSignIn({ id: 'ada', network, homeKey: `ada ${network}` }, atMs)
      for (let n = 0; n < 20; n++) await count('address', 'n1', nowMs)
      for (let n = 0; n < 5; n++) await count('user', 'ada', nowMs)
      assert.equal(await store.isHomeNetwork('ada n1', nowMs), false)
      await signInFrom('n1')
      assert.equal(await store.isHomeNetwork('ada n1', nowMs), true)
      assert.equal(await store.isHomeNetwork('ada n2', nowMs), false)
      assert.equal(await store.isHomeNetwork('ada n1', nowMs + 30 * 24 * hourMs), false)
      assert.equal(await count('address', 'n1', nowMs), null)
      assert.equal(await count('address', 'n1', nowMs), 60_000)
      for (let n = 0; n < 5; n++) assert.equal(await count('user', 'ada', nowMs), null)
      for (let n = 0; n < 5; n++) assert.equal(await count('home', 'ada n1', nowMs), null)
      assert.equal(await count('home', 'ada n1', nowMs), 1_000)
      await signInFrom('n1')
      assert.equal(await count('home', 'ada n1', nowMs), null)
      assert.equal(await count('user', 'ada', nowMs), 1_000, 'attempts of others go on waiting')
    })

    it('records a wrong password of a user', async t => {
      const { store } = await open(t)
      const ada = await aUser(store, 'ada')
      await store.recordFailedSignIn(ada, '192.0.2.9', aChange('Sign-in', nowMs))
      const { results } = await store.listActivity({ projectId: null, kinds: ['user'], limit: 1 })
      assert.deepEqual(fieldsOf(results, 'activity', 'itemId'), [['sign_in_failed', ada.id]])
      assert.deepEqual(fieldOf(results[0]!.changes, 'after'), ['192.0.2.9'])
      assert.equal((await actsOn(store)).filter(act => act.startsWith('sign_in_failed')).length, 1)
    })
  })
}
