// The contract of the stored data of cookieless visitors: written with a chunk or not at all, found by name and by
// position in the log, deleted by day.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { VisitorIdentify, VisitorSession } from '#core/processing/visitors.ts'
import type { OpenState } from '../support/state.ts'
import { created } from '../support/values.ts'
import { ada, commit, openClaimed } from './chunk-store-cases.ts'
import type { OpenManagement } from './management-harness.ts'

const hash = 'DhKalSaWowNbjg/pDrlg9A'
const other = 'sjSJh5qV4gsbEAc2DG6w7g'

function anIdentify(over: Partial<VisitorIdentify>): VisitorIdentify {
  return { projectId: 1, hash, uuid: 'u1', ordinal: 0, offset: 10, day: '2026-01-15', ...over }
}

function aSession(over: Partial<VisitorSession>): VisitorSession {
  const name = { projectId: 1, hash, identifies: 0 }
  return { ...name, offset: 10, sessionId: 's1', lastMs: 1_768_471_200_000, day: '2026-01-15', ...over }
}

const first = anIdentify({})
const second = anIdentify({ uuid: 'u2', ordinal: 1, offset: 20 })

export function cookielessVisitorsContract(adapter: string, open: OpenState): void {
  describe(`CookielessVisitors on ${adapter}`, () => {
    it('counts the log-ins of a visitor, in total or before a given offset in the event log', async t => {
      const { chunkStore, subjectStore } = await openClaimed(open, t)
      assert.equal(await subjectStore.countIdentifies(1, hash), 0)
      const identifies = [first, second, anIdentify({ hash: other, uuid: 'u1', offset: 5 })]
      assert.equal(await commit(chunkStore, { visitors: { identifies, sessions: [] } }), 'committed')
      await nextTurn()
      assert.equal(await subjectStore.countIdentifies(1, hash), 2)
      assert.equal(await subjectStore.countIdentifies(1, other), 1)
      assert.equal(await subjectStore.countIdentifies(2, hash), 0)
      const before = (beforeOffset: number, of = hash) => ({ projectId: 1, hash: of, beforeOffset })
      const wanted = [before(10), before(11), before(20), before(21), before(30), before(30, other), before(5, other)]
      const loaded = await chunkStore.loadIdentifies({ visitors: wanted, events: [] })
      assert.deepEqual(loaded, { counts: [0, 1, 1, 2, 2, 1, 0], known: [] })
    })

    it('finds log-ins by event uuid, and stores only the first log-in with each uuid', async t => {
      const { chunkStore } = await openClaimed(open, t)
      await commit(chunkStore, { visitors: { identifies: [first, second], sessions: [] } })
      await commit(chunkStore, {
        visitors: { identifies: [anIdentify({ ordinal: 2, offset: 30 })], sessions: [] },
      })
      const events = ['u2', 'u1', 'u3'].map(uuid => ({ projectId: 1, hash, uuid }))
      const visitors = [{ projectId: 1, hash, beforeOffset: 99 }]
      const { counts, known } = await chunkStore.loadIdentifies({ visitors, events })
      assert.deepEqual(counts, [2])
      assert.deepEqual(
        known.toSorted((a, b) => a.offset - b.offset),
        [first, second],
      )
    })

    it('loads the sessions of a visitor, each with the last time that was saved', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const later = aSession({ offset: 30, sessionId: 's2' })
      const sessions = [aSession({}), later, aSession({ identifies: -1 }), aSession({ projectId: 2 })]
      await commit(chunkStore, { visitors: { identifies: [], sessions } })
      const lasting = { ...later, lastMs: later.lastMs + 60_000 }
      await commit(chunkStore, { visitors: { identifies: [], sessions: [lasting] } })
      const load = (identifies: number) => chunkStore.loadSessions([{ projectId: 1, hash, identifies }])
      assert.deepEqual(
        (await load(0)).toSorted((a, b) => a.offset - b.offset),
        [aSession({}), lasting],
      )
      assert.deepEqual(await load(-1), [aSession({ identifies: -1 })])
      assert.deepEqual(await load(1), [])
    })

    it('writes nothing when a chunk is refused', async t => {
      const { chunkStore, subjectStore } = await openClaimed(open, t)
      const visitors = { identifies: [first], sessions: [aSession({})] }
      const stale = { ...created(ada), loadedVersion: 7 }
      assert.equal(await commit(chunkStore, { visitors, persons: [stale] }), 'version_conflict')
      assert.equal(await subjectStore.countIdentifies(1, hash), 0)
      assert.deepEqual(await chunkStore.loadSessions([{ projectId: 1, hash, identifies: 0 }]), [])
    })
  })
}

export function cookielessUpkeepContract(adapter: string, open: OpenManagement): void {
  describe(`CookielessVisitorUpkeep on ${adapter}`, () => {
    it('deletes the rows of all but the retained days, a limited number at a time', async t => {
      const { store, chunkStore } = await open(t)
      await chunkStore.claimPosition('main', 'w1')
      const days = ['2026-01-13', '2026-01-14', '2026-01-15', '2026-01-16', '2027-01-01']
      await commit(chunkStore, {
        visitors: {
          identifies: days.map((day, index) => anIdentify({ uuid: day, day, ordinal: index, offset: index })),
          sessions: days.map((day, index) => aSession({ sessionId: day, day, offset: index })),
        },
      })
      assert.equal(await store.deleteVisitorsExcept({ first: '2026-01-13', last: '2027-01-01' }, [], 1), 0)
      const kept = { first: '2026-01-15', last: '2026-01-16' }
      const deleted = []
      for (let round = 0; round < 3; round++) deleted.push(await store.deleteVisitorsExcept(kept, ['2026-01-14'], 1))
      for (let round = 0; round < 2; round++) deleted.push(await store.deleteVisitorsExcept(kept, [], 1))
      assert.deepEqual(deleted, [2, 2, 0, 2, 0])
      const events = days.map(uuid => ({ projectId: 1, hash, uuid }))
      const { known } = await chunkStore.loadIdentifies({ visitors: [], events })
      assert.deepEqual(known.map(({ day }) => day).sort(), ['2026-01-15', '2026-01-16'])
      const sessions = await chunkStore.loadSessions([{ projectId: 1, hash, identifies: 0 }])
      assert.deepEqual(sessions.map(({ day }) => day).sort(), ['2026-01-15', '2026-01-16'])
    })
  })
}
