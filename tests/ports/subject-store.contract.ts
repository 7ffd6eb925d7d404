// The contract of every subject store: it returns committed persons and groups by id, and nothing else.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { OpenState } from '../support/state.ts'
import { aGroup, aMapping, aPerson, chunkChanges, created } from '../support/values.ts'
import { openClaimed } from './chunk-store-cases.ts'

const position = { stream: 'main', ownerId: 'w1', offset: 1, committedAtMs: 0 } as const

export function subjectStoreContract(adapter: string, open: OpenState): void {
  describe(`SubjectStore on ${adapter}`, () => {
    it('finds the person of a distinct id right after its commit, only in its own project', async t => {
      const { chunkStore, subjectStore } = await open(t)
      assert.equal(await subjectStore.findPerson(1, 'ada'), null)
      await chunkStore.claimPosition('main', 'w1')
      const person = aPerson({ properties: { plan: 'free' }, createdAtMs: 5 })
      const changes = chunkChanges({ persons: [created(person)], mappings: [created(aMapping(person, 'ada'))] })
      await chunkStore.commitChunk(changes, position)
      await nextTurn()
      const found = { uuid: person.uuid, properties: { plan: 'free' }, createdAtMs: 5 }
      assert.deepEqual(await subjectStore.findPerson(1, 'ada'), found)
      assert.equal(await subjectStore.findPerson(2, 'ada'), null)
      assert.equal(await subjectStore.findPerson(1, 'ADA'), null)
    })

    it('finds the static cohorts of a person by each of its ids, only in its own project', async t => {
      const { chunkStore, subjectStore, addMembership } = await openClaimed(open, t)
      const person = aPerson()
      const mappings = ['ada', 'ada@work', '__proto__'].map(id => created(aMapping(person, id)))
      await chunkStore.commitChunk(chunkChanges({ persons: [created(person)], mappings }), position)
      assert.deepEqual(await subjectStore.findStaticCohorts(1, 'ada'), new Set())
      await addMembership(1, person.uuid, 7)
      await addMembership(1, person.uuid, 5)
      await nextTurn()
      for (const id of ['ada', 'ada@work', '__proto__'])
        assert.deepEqual(await subjectStore.findStaticCohorts(1, id), new Set([5, 7]), id)
      for (const id of ['nobody', 'ADA', '', 'ada\0'])
        assert.deepEqual(await subjectStore.findStaticCohorts(1, id), new Set(), id)
      assert.deepEqual(await subjectStore.findStaticCohorts(2, 'ada'), new Set())
    })

    it('finds a group by number and key', async t => {
      const { chunkStore, subjectStore } = await openClaimed(open, t)
      const group = aGroup({ typeIndex: 2, properties: { seats: 5 } })
      await chunkStore.commitChunk(chunkChanges({ groups: [created(group)] }), position)
      assert.deepEqual(await subjectStore.findGroup(1, 2, 'acme'), { properties: { seats: 5 } })
      assert.equal(await subjectStore.findGroup(1, 0, 'acme'), null)
      assert.equal(await subjectStore.findGroup(2, 2, 'acme'), null)
    })

    it('handles unusual keys safely and preserves literals', async t => {
      const { chunkStore, subjectStore } = await openClaimed(open, t)
      const text = '{"__proto__":{"polluted":true},"price":1.0,"id":12345678901234567890}'
      const person = aPerson({ properties: parseJson(text) as JsonObject })
      const mappings = ['__proto__', 'constructor', "'; --"].map(id => created(aMapping(person, id)))
      await chunkStore.commitChunk(chunkChanges({ persons: [created(person)], mappings }), position)
      for (const id of ['__proto__', 'constructor', "'; --"]) {
        const found = await subjectStore.findPerson(1, id)
        assert.ok(found !== null)
        assert.equal(JSON.stringify(found.properties), text)
        assert.equal((found.properties as { polluted?: boolean }).polluted, undefined)
      }
      assert.equal(await subjectStore.findGroup(1, 0, '__proto__'), null)
    })
  })
}
