// The contract of every chunk store: versions, ownership, merges, and that a refused commit writes nothing.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isRawNumber, type JsonObject, parseJson } from '#core/json.ts'
import { personDistinctIdCountMax } from '#core/processing/person-merge.ts'
import type { ChunkChanges, ChunkSubjects } from '#ports/state/chunk-store.ts'
import { loadWhole, type OpenState } from '../support/state.ts'
import { aGroup, aMapping, aPerson, created } from '../support/values.ts'

import { ada, bob, commit, load, openClaimed, subjects } from './chunk-store-cases.ts'
import { chunkStoreMergeContract } from './chunk-store-merges.contract.ts'
export function chunkStoreContract(adapter: string, open: OpenState): void {
  describe(`ChunkStore on ${adapter}`, () => {
    it('starts a stream at 0 and continues where the last commit stopped', async t => {
      const { chunkStore } = await open(t)
      assert.deepEqual(await chunkStore.claimPosition('main', 'w1'), { offset: 0 })
      assert.equal(await commit(chunkStore, {}, { offset: 41 }), 'committed')
      assert.deepEqual(await chunkStore.claimPosition('main', 'w2'), { offset: 41 })
      assert.deepEqual(await chunkStore.claimPosition('historical', 'w2'), { offset: 0 })
    })

    it('refuses the commit of a worker whose stream another worker claimed, and writes nothing', async t => {
      const { chunkStore, openAnotherChunkStore } = await openClaimed(open, t)
      await openAnotherChunkStore().claimPosition('main', 'w2')
      assert.equal(await commit(chunkStore, { persons: [created(ada)] }, { offset: 9 }), 'not_owner')
      assert.deepEqual((await load(chunkStore, ['ada'])).persons, [])
      assert.deepEqual(await chunkStore.claimPosition('main', 'w3'), { offset: 0 })
    })

    it('refuses a commit that does not start at the stream’s position, and writes nothing', async t => {
      const { chunkStore } = await openClaimed(open, t)
      assert.equal(await commit(chunkStore, {}, { fromOffset: 0, offset: 41 }), 'committed')
      for (const fromOffset of [0, 40, 42])
        assert.equal(
          await commit(chunkStore, { persons: [created(ada)] }, { fromOffset, offset: 50 }),
          'position_moved',
        )
      assert.deepEqual((await load(chunkStore, ['ada'])).persons, [])
      assert.equal(await chunkStore.findOwnPosition('main', 'w1'), 41)
      assert.equal(await commit(chunkStore, {}, { fromOffset: 41, offset: 50 }), 'committed')
      await chunkStore.claimPosition('main', 'w2')
      assert.equal(await commit(chunkStore, {}, { fromOffset: 0, offset: 60 }), 'not_owner')
    })

    it('returns the position of a stream only to its owner, without claiming the stream', async t => {
      const { chunkStore, openAnotherChunkStore } = await open(t)
      assert.equal(await chunkStore.findOwnPosition('main', 'w1'), null)
      await chunkStore.claimPosition('main', 'w1')
      assert.equal(await chunkStore.findOwnPosition('main', 'w1'), 0)
      assert.equal(await openAnotherChunkStore().findOwnPosition('main', 'w2'), null)
      assert.equal(await chunkStore.findOwnPosition('historical', 'w1'), null)
      assert.equal(await commit(chunkStore, {}, { offset: 41 }), 'committed')
    })

    it('refuses a commit to an unclaimed stream', async t => {
      const { chunkStore } = await open(t)
      assert.equal(await commit(chunkStore, {}, { offset: 1 }), 'not_owner')
    })

    it('loads persons, mappings and personless ids as they were committed, and omits unknown ones', async t => {
      const { chunkStore, openAnotherChunkStore } = await openClaimed(open, t)
      const marks = { plan: { kind: 'live_once', timestampMs: 5, uuid: 'u', importJobId: 0 } } as const
      const person = { ...ada, marks, isIdentified: true }
      await commit(chunkStore, {
        persons: [created(person)],
        mappings: [created(aMapping(person, 'ada')), created(aMapping(person, 'anon-1', 1))],
        personlessDistinctIds: [{ projectId: 1, distinctId: 'ghost' }],
      })
      const loaded = await load(openAnotherChunkStore(), ['ada', 'nobody', 'ghost', 'ada'])
      assert.deepEqual(loaded.persons, [person])
      assert.deepEqual(loaded.mappings, [aMapping(person, 'ada')])
      assert.deepEqual(
        loaded.personMappings.toSorted((a, b) => (a.distinctId < b.distinctId ? -1 : 1)),
        [aMapping(person, 'ada'), aMapping(person, 'anon-1', 1)],
      )
      assert.deepEqual(loaded.personlessDistinctIds, [{ projectId: 1, distinctId: 'ghost', nextVersion: 1 }])
      assert.deepEqual(
        loaded.projects.map(project => project.id),
        [1],
      )
    })

    it('loads the distinct ids that were not requested only for persons that are merged', async t => {
      const { chunkStore } = await openClaimed(open, t)
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: ['ada', 'ada-2'].map(id => created(aMapping(ada, id))).concat(created(aMapping(bob, 'bob'))),
      })
      const loaded = await loadWhole(chunkStore, {
        ...subjects(['ada', 'bob']),
        mergingDistinctIds: [{ projectId: 1, distinctId: 'ada' }],
      })
      assert.equal(loaded.persons.length, 2)
      assert.deepEqual(loaded.personMappings.map(mapping => mapping.distinctId).toSorted(), ['ada', 'ada-2'])
    })

    for (const large of ['persons', 'groups'] as const)
      it(`reports that a chunk is too large if its ${large} have more text than a chunk may load`, async t => {
        const { chunkStore } = await openClaimed(open, t)
        // A few large ones among many small ones: each large one has more text than its share.
        const sizes = Array.from({ length: 40 }, (_, index) => (index % 10 === 3 ? 10_000 : 10))
        const persons = sizes.map((size, index) =>
          aPerson({ uuid: `person-${index}`, properties: { text: 'x'.repeat(large === 'persons' ? size : 10) } }),
        )
        const groups = sizes.map((size, index) =>
          aGroup({ key: `group-${index}`, properties: { text: 'x'.repeat(large === 'groups' ? size : 10) } }),
        )
        await commit(chunkStore, {
          persons: persons.map(created),
          mappings: persons.flatMap((person, index) => [
            created(aMapping(person, `id-${index}`)),
            created(aMapping(person, `other-${index}`)),
          ]),
          groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
          groups: groups.map(created),
        })
        const wanted: ChunkSubjects = {
          ...subjects(sizes.flatMap((_, index) => [`id-${index}`, `other-${index}`])),
          groups: sizes.map((_, index) => ({ projectId: 1, typeName: 'company', key: `group-${index}` })),
          mergingDistinctIds: [],
        }
        assert.equal(await chunkStore.loadChunk(wanted, 39_000), 'too_large')
        const loaded = await chunkStore.loadChunk(wanted, 50_000)
        assert.ok(loaded !== 'too_large')
        assert.ok(loaded.textBytes > 40_000 && loaded.textBytes < 50_000, `${loaded.textBytes} bytes`)
        const byUuid = (a: { uuid: string }, b: { uuid: string }) => (a.uuid < b.uuid ? -1 : 1)
        assert.deepEqual(loaded.persons.toSorted(byUuid), persons.toSorted(byUuid))
        const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1)
        assert.deepEqual(loaded.groups.toSorted(byKey), groups.toSorted(byKey))
        for (const [index, text] of loaded.personPropertiesJson?.entries() ?? [])
          assert.equal(text, JSON.stringify(loaded.persons[index]!.properties))
        assert.deepEqual(await chunkStore.loadChunk(wanted, loaded.textBytes), loaded)
        assert.equal(await chunkStore.loadChunk(wanted, loaded.textBytes - 1), 'too_large')
      })

    it('counts the unrequested ids of persons that are merged, and stops loading at one more than the maximum', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const count = personDistinctIdCountMax + 20
      const idsOfAda = Array.from({ length: count }, (_, index) => created(aMapping(ada, `ada-${index}`)))
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: [...idsOfAda, created(aMapping(bob, 'bob'))],
      })
      const wanted = { ...subjects(['ada-7', 'bob']), mergingDistinctIds: subjects(['ada-7', 'bob']).distinctIds }
      assert.equal(await chunkStore.loadChunk(wanted, 100_000), 'too_large')
      const loaded = await loadWhole(chunkStore, wanted)
      assert.ok(loaded.textBytes > 256 * personDistinctIdCountMax)
      const countOf = (uuid: string) => loaded.personMappings.filter(({ personUuid }) => personUuid === uuid).length
      assert.ok(countOf(ada.uuid) > personDistinctIdCountMax)
      assert.equal(countOf(bob.uuid), 1)
      const others = await chunkStore.loadChunk({ ...wanted, mergingDistinctIds: [] }, 100_000)
      assert.ok(others !== 'too_large')
      assert.deepEqual(others.personMappings, [])
    })

    it('keeps the data of projects separate', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const other = { ...ada, projectId: 2, properties: { plan: 'paid' } }
      await commit(chunkStore, {
        persons: [created(ada), created(other)],
        mappings: [created(aMapping(ada, 'ada')), created(aMapping(other, 'ada'))],
      })
      const loaded = await loadWhole(chunkStore, {
        distinctIds: [{ projectId: 2, distinctId: 'ada' }],
        groups: [],
        projectIds: [2],
      })
      assert.deepEqual(loaded.persons, [other])
    })

    it('loads more ids than fit into one SQL list', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const ids = Array.from({ length: 1_100 }, (_, index) => `id-${index}`)
      const persons = ids.map((id, index) => aPerson({ uuid: `person-${index}`, properties: { id } }))
      await commit(chunkStore, {
        persons: persons.map(created),
        mappings: persons.map((person, index) => created(aMapping(person, ids[index]!))),
      })
      const loaded = await load(chunkStore, ids)
      assert.equal(loaded.persons.length, 1_100)
      assert.equal(loaded.mappings.length, 1_100)
      assert.equal(loaded.personMappings.length, 1_100)
    })

    it('refuses a person that changed since it was loaded, and writes nothing of that chunk', async t => {
      const { chunkStore, openAnotherChunkStore } = await openClaimed(open, t)
      await commit(chunkStore, { persons: [created(ada)], mappings: [created(aMapping(ada, 'ada'))] })
      const other = openAnotherChunkStore()
      await other.claimPosition('historical', 'w1')
      const newer = { ...ada, version: 1, properties: { plan: 'paid' } }
      const changes = { persons: [{ row: newer, loadedVersion: 0 }] }
      assert.equal(await commit(other, changes, { stream: 'historical' }), 'committed')
      const late: Partial<ChunkChanges> = {
        persons: [created(bob), { row: { ...ada, version: 1, properties: { plan: 'lost' } }, loadedVersion: 0 }],
        mappings: [created(aMapping(bob, 'bob'))],
        personlessDistinctIds: [{ projectId: 1, distinctId: 'ghost' }],
        outcomes: [{ projectId: 1, lane: 'main', outcome: 'stored', reason: '', count: 7 }],
      }
      assert.equal(await commit(chunkStore, late, { offset: 70 }), 'version_conflict')
      const loaded = await load(chunkStore, ['ada', 'bob', 'ghost'])
      assert.deepEqual(loaded.persons, [newer])
      assert.deepEqual(loaded.personlessDistinctIds, [])
      assert.deepEqual(await chunkStore.claimPosition('main', 'w1'), { offset: 1 })
    })

    it('refuses to create a person, a mapping or a group twice', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const everything = {
        persons: [created(ada)],
        mappings: [created(aMapping(ada, 'ada'))],
        groups: [created(aGroup())],
      }
      await commit(chunkStore, everything)
      assert.equal(await commit(chunkStore, { persons: [created(ada)] }), 'version_conflict')
      assert.equal(await commit(chunkStore, { mappings: [created(aMapping(ada, 'ada'))] }), 'version_conflict')
      assert.equal(await commit(chunkStore, { groups: [created(aGroup())] }), 'version_conflict')
    })

    it('refuses a mapping to a deleted person, and a mapping that moved since it was loaded', async t => {
      const { chunkStore } = await openClaimed(open, t)
      assert.equal(await commit(chunkStore, { mappings: [created(aMapping(ada, 'ada'))] }), 'version_conflict')
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: [created(aMapping(ada, 'shared'))],
      })
      const moved = { row: aMapping(bob, 'shared', 1), loadedVersion: 0 }
      assert.equal(await commit(chunkStore, { mappings: [moved] }), 'committed')
      assert.equal(await commit(chunkStore, { mappings: [moved] }), 'version_conflict')
    })

    it('loads groups of known types, and raises the revision only for a new group type', async t => {
      const { chunkStore, revision } = await openClaimed(open, t)
      const before = await revision()
      const group = aGroup({ typeIndex: 1, key: 'constructor', properties: { seats: 5 } })
      const types = [
        { projectId: 1, name: 'company', index: 0 },
        { projectId: 1, name: '__proto__', index: 1 },
      ]
      assert.equal(await commit(chunkStore, { groupTypes: types, groups: [created(group)] }), 'committed')
      const after = await revision()
      assert.ok(after > before)
      const wanted = ['__proto__', 'company', 'never'].map(typeName => ({ projectId: 1, typeName, key: 'constructor' }))
      const loaded = await loadWhole(chunkStore, { distinctIds: [], groups: wanted, projectIds: [1] })
      assert.deepEqual(loaded.groups, [group])
      assert.deepEqual(loaded.groupTypes, types)
      const update = { row: { ...group, version: 2, properties: { seats: 6 } }, loadedVersion: 1 }
      assert.equal(await commit(chunkStore, { groups: [update] }), 'committed')
      assert.equal(await commit(chunkStore, { groups: [update] }), 'version_conflict')
      assert.equal(await revision(), after)
    })

    it('refuses a group type whose name or number is taken, and accepts an identical group type', async t => {
      const { chunkStore, revision } = await openClaimed(open, t)
      const company = { projectId: 1, name: 'company', index: 0 }
      await commit(chunkStore, { groupTypes: [company] })
      const before = await revision()
      assert.equal(await commit(chunkStore, { groupTypes: [{ ...company, index: 1 }] }), 'version_conflict')
      assert.equal(await commit(chunkStore, { groupTypes: [{ ...company, name: 'team' }] }), 'version_conflict')
      assert.equal(await commit(chunkStore, { groupTypes: [company] }), 'committed')
      assert.equal(await commit(chunkStore, { groupTypes: [{ ...company, projectId: 2 }] }), 'committed')
      assert.equal(await revision(), before + 1)
    })

    it('preserves any property key and the number literals as the client wrote them', async t => {
      const { chunkStore } = await openClaimed(open, t)
      const text = '{"__proto__":{"a":1},"constructor":"x","price":1.0,"big":9007199254740993,"text":"\\u0000ü"}'
      const person = { ...ada, properties: parseJson(text) as JsonObject }
      const group = aGroup({ properties: parseJson(text) as JsonObject })
      await commit(chunkStore, {
        persons: [created(person)],
        mappings: [created(aMapping(person, '__proto__'))],
        groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
        groups: [created(group)],
      })
      const loaded = await loadWhole(chunkStore, {
        distinctIds: [{ projectId: 1, distinctId: '__proto__' }],
        groups: [{ projectId: 1, typeName: 'company', key: 'acme' }],
        projectIds: [1],
      })
      assert.equal(JSON.stringify(loaded.persons[0]!.properties), text)
      assert.equal(JSON.stringify(loaded.groups[0]!.properties), text)
      assert.ok(isRawNumber(loaded.persons[0]!.properties.price))
    })

    it('preserves any text allowed in an id or a key', async t => {
      const { chunkStore, subjectStore } = await openClaimed(open, t)
      const texts = [
        'NULL',
        '{a,b}',
        '"',
        '\\',
        '\\"',
        "'",
        ' ',
        ' a ',
        '$1',
        '?',
        '😀',
        '\ufffd',
        '\u0001',
        'ß',
        'SS',
        'ss',
        'é',
        'e\u0301',
      ]
      const persons = texts.map((_, index) => aPerson({ uuid: `person-${index}` }))
      const types = texts.slice(0, 5).map((name, index) => ({ projectId: 1, name, index }))
      const groups = texts.map(key => aGroup({ key, properties: { key }, version: 1 }))
      const changes = {
        persons: persons.map(created),
        mappings: texts.map((id, index) => created(aMapping(persons[index]!, id))),
        personlessDistinctIds: texts.map(id => ({ projectId: 1, distinctId: `ghost ${id}` })),
        groupTypes: types,
        groups: groups.map(created),
      }
      assert.equal(await commit(chunkStore, changes), 'committed')
      const loaded = await loadWhole(chunkStore, {
        ...subjects([...texts, ...texts.map(id => `ghost ${id}`)]),
        groups: texts.map(key => ({ projectId: 1, typeName: 'NULL', key })),
      })
      assert.deepEqual(loaded.mappings.map(mapping => mapping.distinctId).toSorted(), texts.toSorted())
      assert.equal(loaded.personlessDistinctIds.length, texts.length)
      assert.deepEqual(loaded.groupTypes, types)
      assert.deepEqual(loaded.groups.map(group => group.key).toSorted(), texts.toSorted())
      const next = {
        persons: persons.map(row => ({ row: { ...row, version: 1 }, loadedVersion: 0 })),
        mappings: texts.map((id, index) => ({ row: aMapping(persons[index]!, id, 1), loadedVersion: 0 })),
        groups: groups.map(row => ({ row: { ...row, version: 2 }, loadedVersion: 1 })),
      }
      assert.equal(await commit(chunkStore, next), 'committed')
      for (const [index, id] of texts.entries()) {
        assert.equal((await subjectStore.findPerson(1, id))?.uuid, `person-${index}`)
        assert.deepEqual(await subjectStore.findGroup(1, 0, id), { properties: { key: id } })
      }
      assert.equal(await subjectStore.findPerson(1, 'a\0'), null)
      assert.equal(await subjectStore.findGroup(1, 0, 'a\0'), null)
    })

    it('adds up the outcomes of records', async t => {
      const { chunkStore, outcomesOf } = await openClaimed(open, t)
      const stored = { projectId: 1, lane: 'main', outcome: 'stored', reason: '', count: 10 } as const
      const dropped = {
        projectId: 1,
        lane: 'main',
        outcome: 'dropped',
        reason: 'group_key_too_long',
        count: 1,
      } as const
      await commit(chunkStore, { outcomes: [stored, dropped] })
      await commit(chunkStore, { outcomes: [stored, { ...stored, projectId: 2, count: 3 }] })
      const outcomes = await outcomesOf(1)
      assert.deepEqual(
        outcomes.toSorted((a, b) => (a.outcome < b.outcome ? -1 : 1)),
        [dropped, { ...stored, count: 20 }],
      )
    })
  })

  chunkStoreMergeContract(adapter, open)
}
