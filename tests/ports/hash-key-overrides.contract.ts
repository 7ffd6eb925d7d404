// The contract of every store of experience continuity: one row per person and flag, and the first one stays.
// Source: docs/wire/evaluation.md 5.13.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'
import type { HashKeyAssignment, HashKeyRow } from '#ports/state/subject-store.ts'
import type { OpenSqlState, SqlState } from '../support/state.ts'
import { aMapping, aPerson, chunkChanges, created } from '../support/values.ts'

const position = { stream: 'main', ownerId: 'w1', offset: 1, committedAtMs: 0 } as const
const ada = aPerson()
const bob = aPerson({ uuid: '22222222-2222-5222-8222-222222222222' })
const beta: HashKeyAssignment = { projectId: 1, distinctId: 'ada', anonDistinctId: 'anon', flagKeys: ['beta'] }

export function hashKeyOverridesContract(adapter: string, openState: OpenSqlState): void {
  describe(`hash key overrides on ${adapter}`, () => {
    it('distinguish a person without rows from a missing person', async t => {
      const { hashKeys } = await open(t)
      assert.deepEqual(await hashKeys.findHashKeys(1, 'ada'), [])
      assert.equal(await hashKeys.findHashKeys(1, 'nobody'), null)
      assert.equal(await hashKeys.findHashKeys(1, 'no\0body'), null)
      assert.equal(await hashKeys.findHashKeys(2, 'ada'), null)
    })

    it('are written for each flag and for the persons of the distinct and the anonymous id, only in their project', async t => {
      const { hashKeys, overridesOf } = await open(t)
      const kept = await hashKeys.addMissingHashKeys({ ...beta, anonDistinctId: 'bob', flagKeys: ['beta', 'gamma'] })
      assert.deepEqual(sorted(kept), ['beta=bob', 'gamma=bob'])
      for (const { uuid } of [ada, bob]) assert.deepEqual(await overridesOf(1, uuid), ['beta=bob', 'gamma=bob'])
      await nextTurn()
      assert.deepEqual(sorted(await hashKeys.findHashKeys(1, 'ada')), ['beta=bob', 'gamma=bob'])
      assert.deepEqual(await hashKeys.addMissingHashKeys({ ...beta, projectId: 2 }), [])
    })

    it('are not written if neither id has a person', async t => {
      const { hashKeys } = await open(t)
      assert.deepEqual(await hashKeys.addMissingHashKeys({ ...beta, distinctId: 'nobody' }), [])
      assert.deepEqual(await hashKeys.addMissingHashKeys({ ...beta, distinctId: 'no\0body', anonDistinctId: '\0' }), [])
    })

    it('are written for a person known only by the anonymous id', async t => {
      const { hashKeys, overridesOf } = await open(t)
      const kept = await hashKeys.addMissingHashKeys({ ...beta, distinctId: 'new', anonDistinctId: 'ada' })
      assert.deepEqual(sorted(kept), ['beta=ada'])
      assert.deepEqual(await overridesOf(1, ada.uuid), ['beta=ada'])
    })

    it('accept the same id twice, and two ids of one person', async t => {
      const { hashKeys, overridesOf } = await open(t)
      assert.deepEqual(sorted(await hashKeys.addMissingHashKeys({ ...beta, anonDistinctId: 'ada' })), ['beta=ada'])
      const again = { ...beta, anonDistinctId: 'ada-phone', flagKeys: ['beta', 'gamma'] }
      assert.deepEqual(sorted(await hashKeys.addMissingHashKeys(again)), ['beta=ada', 'gamma=ada-phone'])
      assert.deepEqual(await overridesOf(1, ada.uuid), ['beta=ada', 'gamma=ada-phone'])
    })

    it('leave existing rows unchanged, and one person gets no row if the other person has one', async t => {
      const { hashKeys, addOverride, overridesOf } = await open(t)
      await addOverride(1, bob.uuid, 'beta', 'kept')
      const kept = await hashKeys.addMissingHashKeys({ ...beta, anonDistinctId: 'bob', flagKeys: ['beta', 'gamma'] })
      assert.deepEqual(sorted(kept), ['beta=kept', 'gamma=bob'])
      assert.deepEqual(await overridesOf(1, ada.uuid), ['gamma=bob'])
      assert.deepEqual(await overridesOf(1, bob.uuid), ['beta=kept', 'gamma=bob'])
    })

    it('come from the person who owns the distinct id if both persons have a row', async t => {
      const { hashKeys, addOverride } = await open(t)
      await addOverride(1, ada.uuid, 'beta', 'of ada')
      await addOverride(1, bob.uuid, 'beta', 'of bob')
      const both = (distinctId: string, anonDistinctId: string) =>
        hashKeys.addMissingHashKeys({ ...beta, distinctId, anonDistinctId }).then(sorted)
      assert.deepEqual(await both('ada', 'bob'), ['beta=of ada'])
      assert.deepEqual(await both('bob', 'ada'), ['beta=of bob'])
    })

    it('have the same value for all concurrent writers for one person', async t => {
      const { hashKeys, overridesOf } = await open(t)
      const anonymous = Array.from({ length: 40 }, (_, index) => `anon-${index}`)
      const answers = await Promise.all(
        anonymous.map(anonDistinctId => hashKeys.addMissingHashKeys({ ...beta, anonDistinctId }).then(sorted)),
      )
      const stored = await overridesOf(1, ada.uuid)
      assert.equal(stored.length, 1)
      for (const answer of answers) assert.deepEqual(answer, stored)
    })

    it('handle unusual texts safely, and replace characters that cannot be stored with U+FFFD', async t => {
      const { hashKeys } = await open(t)
      const flagKeys = ['__proto__', "'; --", 'é']
      const kept = await hashKeys.addMissingHashKeys({ ...beta, anonDistinctId: 'a\0b\ud800', flagKeys })
      assert.deepEqual(sorted(kept), flagKeys.map(key => `${key}=a\ufffdb\ufffd`).toSorted())
    })

    it('can be written for thousands of flags at once', async t => {
      const { hashKeys } = await open(t)
      const flagKeys = Array.from({ length: 3_000 }, (_, index) => `flag-${index}`)
      assert.equal((await hashKeys.addMissingHashKeys({ ...beta, flagKeys })).length, 3_000)
    })

    it('are not lost in a concurrent merge: the survivor has them, whichever is committed first', async t => {
      const { hashKeys, chunkStore, overridesOf } = await open(t)
      const others = Array.from({ length: 15 }, (_, index) => {
        const person = aPerson({ uuid: `${10 + index}000000-3333-5333-8333-333333333333` })
        return { person, distinctId: `other-${index}`, flagKey: `flag-${10 + index}` }
      })
      const persons = others.map(({ person }) => created(person))
      const mappings = others.map(({ person, distinctId }) => created(aMapping(person, distinctId)))
      let offset = position.offset
      const commit = (changes: Partial<ChunkChanges>) =>
        chunkStore.commitChunk(chunkChanges(changes), { ...position, offset: ++offset })
      await commit({ persons, mappings })
      for (const { person, distinctId, flagKey } of others) {
        const merge = async () => {
          const deletedPersons = [{ projectId: 1, uuid: person.uuid, survivorUuid: ada.uuid, loadedVersion: 0 }]
          const mappings = [{ row: aMapping(ada, distinctId, 1), loadedVersion: 0 }]
          // A writer may be in the way; the worker loads and tries again.
          while ((await commit({ deletedPersons, mappings })) !== 'committed');
        }
        const [kept] = await Promise.all([
          hashKeys.addMissingHashKeys({ ...beta, distinctId, flagKeys: [flagKey] }),
          merge(),
        ])
        assert.ok(sorted(kept)?.includes(`${flagKey}=anon`), `${sorted(kept)}`)
      }
      assert.deepEqual(
        await overridesOf(1, ada.uuid),
        others.map(({ flagKey }) => `${flagKey}=anon`),
      )
    })
  })

  /** Ada with two ids, Bob with one. */
  async function open(t: Parameters<OpenSqlState>[0]): Promise<SqlState> {
    const state = await openState(t)
    await state.chunkStore.claimPosition('main', 'w1')
    const mappings = [aMapping(ada, 'ada'), aMapping(ada, 'ada-phone'), aMapping(bob, 'bob')]
    const changes = chunkChanges({ persons: [created(ada), created(bob)], mappings: mappings.map(created) })
    await state.chunkStore.commitChunk(changes, position)
    await nextTurn()
    return state
  }
}

function sorted(rows: readonly HashKeyRow[] | null): string[] | null {
  return rows === null ? null : rows.map(([flagKey, hashKey]) => `${flagKey}=${hashKey}`).toSorted()
}
