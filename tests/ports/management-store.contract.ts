// The contract of every management store besides flags (`flag-store.contract.ts`): project ids are never reused, a
// token has one holder at a time, and the revision moves with exactly the writes that affect evaluation.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { noQuotas } from '#core/project.ts'
import { noEventUsage } from '#core/usage.ts'
import type { Written } from '#ports/state/written.ts'
import { aChange, aGroup, aMapping, aNewFlag, aNewProject, aPerson, chunkChanges, created } from '../support/values.ts'
import { accountingStoreContract } from './accounting-store.contract.ts'
import { activityStoreContract } from './activity-store.contract.ts'
import { boundedListsContract } from './bounded-lists.contract.ts'
import { cohortStoreContract } from './cohort-store.contract.ts'
import { cookielessUpkeepContract } from './cookieless-visitors.contract.ts'
import { erasureStoreContract } from './erasure-store.contract.ts'
import { flagLifeContract } from './flag-life.contract.ts'
import { flagOwnersContract } from './flag-owners.contract.ts'
import { flagStoreContract } from './flag-store.contract.ts'
import { groupTypesContract } from './group-types.contract.ts'
import { importJobStoreContract } from './import-job-store.contract.ts'
import { change, commit, type OpenManagement, written } from './management-harness.ts'
import { secretKeyStoreContract } from './secret-key-store.contract.ts'
import { subjectMirrorSourceContract } from './subject-mirror-source.contract.ts'
import { userStoreContract } from './user-store.contract.ts'
import { deferredProjectsContract, workerStateContract } from './worker-state.contract.ts'

/** Runs all suites of the management store. */
export function managementStoreContract(adapter: string, open: OpenManagement): void {
  const suites = [
    accountingStoreContract,
    activityStoreContract,
    flagStoreContract,
    flagLifeContract,
    flagOwnersContract,
    boundedListsContract,
    cohortStoreContract,
    erasureStoreContract,
    groupTypesContract,
    importJobStoreContract,
    secretKeyStoreContract,
    userStoreContract,
    workerStateContract,
    deferredProjectsContract,
    subjectMirrorSourceContract,
    cookielessUpkeepContract,
  ]
  for (const suite of suites) suite(adapter, open)

  describe(`ManagementStore on ${adapter}: projects`, () => {
    it('assigns ids from 1 up and never reuses one, even of deleted or refused projects', async t => {
      const { store } = await open(t)
      assert.equal(written(await store.createProject(aNewProject({ apiToken: 'phc_a' }), aChange())).id, 1)
      assert.deepEqual(await store.createProject(aNewProject({ apiToken: 'phc_a' }), aChange()), {
        ok: false,
        error: 'token_taken',
      })
      assert.equal(written(await store.createProject(aNewProject({ apiToken: 'phc_b' }), aChange())).id, 2)
      await store.deleteProject(2, aChange())
      assert.equal(written(await store.createProject(aNewProject({ apiToken: 'phc_b' }), aChange())).id, 3)
      const { count, results } = await store.listProjects({ limit: 10, offset: 1 })
      assert.equal(count, 2)
      assert.deepEqual(
        results.map(project => project.id),
        [3],
      )
      assert.deepEqual(await store.listProjectIds(), [1, 3])
    })

    it('stores all fields and changes only those that a patch names', async t => {
      const { store } = await open(t)
      const input = aNewProject({
        name: "Zoë's",
        timezone: 'Europe/Vienna',
        anonymizeIps: true,
        geoipEnabled: false,
        propertyMatchingVersion: 1,
        quotas: { ...noQuotas, events: 0, recordings: 5 },
      })
      const project = written(await store.createProject(input, aChange()))
      assert.deepEqual(project, { ...input, id: 1, createdAtMs: aChange().atMs })
      assert.deepEqual(await store.findProject(1), project)
      const quotas = { ...noQuotas, events: 100 }
      const patched = written(await store.updateProject(1, { geoipEnabled: true, quotas }, aChange()))
      assert.deepEqual(patched, { ...project, geoipEnabled: true, quotas })
      assert.deepEqual(await store.findProject(1), patched)
      await store.updateProject(1, { ingestion: { personProcessingOptOut: true } }, aChange())
      const { ingestion } = written(
        await store.updateProject(1, { ingestion: { dropEventsOlderThanSeconds: 60 } }, aChange()),
      )
      assert.deepEqual(ingestion, { ...input.ingestion, personProcessingOptOut: true, dropEventsOlderThanSeconds: 60 })
      assert.deepEqual((await store.findProject(1))?.ingestion, ingestion)
    })

    it('stores NUL and lone surrogates as U+FFFD in names, and unchanged in JSON', async t => {
      const { store } = await open(t)
      const odd = 'a\0b\ud800c'
      const project = written(await store.createProject(aNewProject({ name: odd }), aChange()))
      assert.equal(project.name, 'a\ufffdb\ufffdc')
      assert.deepEqual(await store.findProject(1), project)
      const filters = { groups: [{ properties: [{ key: odd, value: odd }] }] }
      const flag = written(await store.createFlag(aNewFlag({ name: odd, tags: [odd], filters }), aChange(odd)))
      assert.deepEqual([flag.name, flag.createdBy, flag.tags], ['a\ufffdb\ufffdc', aChange(odd).by, [odd]])
      assert.deepEqual(await store.findFlag(1, 'beta'), flag)
      assert.deepEqual(flag.filters, filters)
      assert.equal(written(await change(store, 1, 1, { name: '\0' })).name, '\ufffd')
      assert.equal(await store.findFlag(1, '\0'), null)
      const page = { limit: 10, offset: 0 }
      assert.equal((await store.listFlags(1, { ...page, search: '\0' })).count, 1)
      assert.deepEqual(
        (await store.listPersons(1, { ...page, distinctId: '\0', uuid: '\0', search: '\0' })).results,
        [],
      )
      assert.equal(await store.findPersonByUuid(1, '\0'), null)
      assert.equal(await store.findStoredGroup(1, 0, '\0'), null)
    })

    it('refuses a token of another project, accepts a project’s own token again, and does not find a deleted project', async t => {
      const { store } = await open(t)
      await store.createProject(aNewProject({ apiToken: 'phc_a' }), aChange())
      await store.createProject(aNewProject({ apiToken: 'phc_b' }), aChange())
      assert.deepEqual(await store.updateProject(1, { apiToken: 'phc_b' }, aChange()), {
        ok: false,
        error: 'token_taken',
      })
      assert.equal((await store.updateProject(1, { apiToken: 'phc_a' }, aChange())).ok, true)
      assert.equal((await store.deleteProject(1, aChange())).ok, true)
      assert.deepEqual(await store.deleteProject(1, aChange()), { ok: false, error: 'not_found' })
      assert.deepEqual(await store.updateProject(1, { name: 'x' }, aChange()), { ok: false, error: 'not_found' })
      assert.equal(await store.findProject(1), null)
    })
  })

  describe(`ManagementStore on ${adapter}: personal keys`, () => {
    it('finds a key only by its hash, and lists and deletes keys', async t => {
      const { store } = await open(t)
      const input = {
        id: 'k1',
        label: 'ci',
        scopes: ['feature_flag:read', '*'],
        scopedProjectIds: [1, 2],
        lastUsedAtMs: null,
      }
      const key = { ...input, createdAtMs: 5 }
      assert.deepEqual(await store.createPersonalKey({ ...input, secretHash: 'abc' }, aChange('Test', 5)), key)
      assert.deepEqual(await store.findPersonalKeyByHash('abc'), key)
      assert.equal(await store.findPersonalKeyByHash('k1'), null)
      assert.deepEqual(await store.listPersonalKeys({ limit: 9, offset: 0 }), { count: 1, results: [key] })
      await assert.rejects(store.createPersonalKey({ ...input, id: 'k2', secretHash: 'abc' }, aChange()), {
        code: 'conflict',
      })
      assert.equal(await store.deletePersonalKey('k1', aChange()), true)
      assert.equal(await store.deletePersonalKey('k1', aChange()), false)
      assert.equal(await store.findPersonalKeyByHash('abc'), null)
    })

    it('keeps the latest use of a key, in whatever order uses are written', async t => {
      const { store } = await open(t)
      const key = { label: 'ci', scopes: ['*'], scopedProjectIds: [], lastUsedAtMs: null }
      await store.createPersonalKey({ ...key, id: 'k1', secretHash: 'abc' }, aChange())
      await store.createPersonalKey({ ...key, id: 'k2', secretHash: 'abd' }, aChange())
      await store.savePersonalKeyUses([
        { id: 'k1', usedAtMs: 90 },
        { id: 'deleted', usedAtMs: 91 },
      ])
      await store.savePersonalKeyUses([{ id: 'k1', usedAtMs: 80 }])
      await store.savePersonalKeyUses([])
      const uses = (await store.listPersonalKeys({ limit: 9, offset: 0 })).results.map(({ id, lastUsedAtMs }) => [
        id,
        lastUsedAtMs,
      ])
      assert.deepEqual(uses, [
        ['k1', 90],
        ['k2', null],
      ])
    })
  })

  describe(`ManagementStore on ${adapter}: data that the worker wrote`, () => {
    it('reads a person with its ids and finds it by id, uuid and text', async t => {
      const { store, chunkStore } = await open(t)
      const ada = aPerson({ uuid: 'u-ada', properties: parseJson('{"plan":"Free","v":1.0}') as JsonObject })
      const bob = aPerson({ uuid: 'u-bob', version: 4, isIdentified: true })
      await commit(chunkStore, {
        persons: [created(ada), created(bob)],
        mappings: [
          created(aMapping(ada, 'ada')),
          created(aMapping(ada, 'anon', 1)),
          created(aMapping(bob, 'bob_1')),
          created(aMapping(bob, 'Ünal')),
        ],
      })
      const view = await store.findPersonByUuid(1, 'u-ada')
      assert.equal(view?.propertiesJson, '{"plan":"Free","v":1.0}')
      assert.deepEqual(view?.distinctIds, [aMapping(ada, 'ada'), aMapping(ada, 'anon', 1)])
      assert.deepEqual(view?.flagOverrides, [])
      assert.equal(await store.findPersonByUuid(2, 'u-ada'), null)
      const uuids = async (query: { distinctId?: string; uuid?: string; search?: string; offset?: number }) => {
        const page = await store.listPersons(1, { limit: 1, offset: 0, ...query })
        return page.results.map(person => person.uuid).join(' ') + (page.hasMore ? ' …' : '')
      }
      assert.equal(await uuids({}), 'u-bob …')
      assert.equal(await uuids({ offset: 1 }), 'u-ada')
      assert.equal(await uuids({ distinctId: 'anon' }), 'u-ada')
      assert.equal(await uuids({ distinctId: 'anon', uuid: 'u-bob' }), '')
      assert.equal(await uuids({ search: 'free' }), 'u-ada')
      assert.equal(await uuids({ search: 'BOB_' }), 'u-bob')
      assert.equal(await uuids({ search: 'Ünal' }), 'u-bob', 'a text is found as it is written, beyond ASCII too')
      assert.equal(await uuids({ search: '%' }), '')
      const { results } = await store.listPersons(1, { uuid: 'u-bob', limit: 5, offset: 0 })
      assert.deepEqual([results[0]?.version, results[0]?.isIdentified, results[0]?.id], [4, true, 2])
    })

    it('reads groups and their types', async t => {
      const { store, chunkStore } = await open(t)
      const acme = aGroup({ properties: { name: 'Acme', constructor: 1 } })
      const later = aGroup({ key: 'later', createdAtMs: acme.createdAtMs + 1 })
      await commit(chunkStore, {
        groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
        groups: [created(acme), created(later), created(aGroup({ typeIndex: 1 }))],
      })
      assert.deepEqual(await store.listGroupTypes(1), [{ projectId: 1, name: 'company', index: 0 }])
      assert.deepEqual(await store.listGroupTypes(2), [])
      const { marks: _, properties, ...rest } = acme
      const view = { ...rest, propertiesJson: JSON.stringify(properties) }
      assert.deepEqual(await store.findStoredGroup(1, 0, 'acme'), view)
      assert.equal(await store.findStoredGroup(1, 0, '__proto__'), null)
      const page = await store.listGroups(1, { typeIndex: 0, limit: 1, offset: 0 })
      assert.deepEqual([page.results[0]?.key, page.hasMore], ['later', true])
      const found = await store.listGroups(1, { typeIndex: 0, search: 'ACME', limit: 9, offset: 0 })
      assert.deepEqual(found, { results: [view], hasMore: false })
      const byKey = await store.listGroups(1, { typeIndex: 0, keyPart: 'CM', limit: 9, offset: 0 })
      assert.deepEqual(byKey, found)
    })

    it('reads all groups of a type in the order of their keys, and counts them', async t => {
      const { store, chunkStore } = await open(t)
      const keys = ['b', 'É', 'a', 'Z', '10', '9']
      const groups = keys.map((key, index) => aGroup({ key, createdAtMs: 1_000 - index }))
      const large = aGroup({ key: 'large', properties: { text: 'x'.repeat(300_000) } })
      const others = [aGroup({ typeIndex: 1, key: 'c' }), aGroup({ projectId: 2, key: 'd' })]
      await commit(chunkStore, { groups: [...groups, large, ...others].map(created) })
      const pages: string[][] = []
      for (let afterKey: string | undefined; ; afterKey = pages.at(-1)!.at(-1)) {
        const after = afterKey === undefined ? {} : { afterKey }
        const { results, hasMore } = await store.listGroupsAfter(1, { typeIndex: 0, limit: 3, ...after })
        pages.push(results.map(({ key }) => key))
        if (!hasMore) break
      }
      assert.deepEqual(pages, [['10', '9', 'Z'], ['a', 'b'], ['large'], ['É']], 'a large one makes a page short')
      assert.deepEqual(
        await Promise.all([store.countGroups(1, 0), store.countGroups(1, 1), store.countGroups(1, 2)]),
        [7, 1, 0],
      )
    })

    it('stores what was last recorded about the event store, and lists the persons of distinct ids in pages', async t => {
      const { store, chunkStore } = await open(t)
      assert.equal(await store.findEventStoreMark(), null)
      const held = [
        { table: 'events', tableId: 't', partition: '0-1', from: 1, to: 9, oldestMs: 1.5e12, newestMs: null },
      ]
      for (const id of ['first', 'second']) {
        const mark = { id, positions: { main: 7, historical: 0 }, held, missing: [] }
        await store.saveEventStoreMark(mark)
        assert.deepEqual(await store.findEventStoreMark(), mark)
      }
      const ada = aPerson({ uuid: 'u-ada' })
      const mappings = [aMapping(ada, 'a'), aMapping(ada, 'b', 2), aMapping(ada, 'Ünal', 1)].map(created)
      await commit(chunkStore, { persons: [created(ada)], mappings })
      const first = await store.listOverrides(null, 2)
      const rest = await store.listOverrides(first.at(-1)!, 2)
      assert.deepEqual(
        [...first, ...rest].map(({ projectId, distinctId, personId, version }) => [
          ...[projectId, distinctId, personId],
          version,
        ]),
        [
          [1, 'a', 'u-ada', 0],
          [1, 'b', 'u-ada', 2],
          [1, 'Ünal', 'u-ada', 1],
        ],
      )
      assert.deepEqual(await store.listOverrides(rest.at(-1)!, 2), [])
    })

    it('returns the worker’s position in a stream', async t => {
      const { store, chunkStore } = await open(t)
      assert.deepEqual(await store.findLogPosition('main'), { offset: 0, committedAtMs: null })
      await commit(chunkStore, {})
      assert.deepEqual(await store.findLogPosition('main'), { offset: 77, committedAtMs: 12 })
      assert.deepEqual(await store.findLogPosition('historical'), { offset: 0, committedAtMs: null })
    })
  })

  describe(`ManagementStore on ${adapter}: revision`, () => {
    it('increases by one with each write that affects evaluation, and is returned by the write', async t => {
      const { store, chunkStore, revision } = await open(t)
      const writes: readonly (() => Promise<{ ok: boolean; value?: Written<unknown> }>)[] = [
        () => store.createProject(aNewProject({ apiToken: 'phc_r' }), aChange()),
        () => store.updateProject(1, { quotas: { ...noQuotas, featureFlagRequests: 3 } }, aChange()),
        () => store.updateProject(1, { apiToken: 'phc_s' }, aChange()),
        () => store.createFlag(aNewFlag(), aChange()),
        () => change(store, 1, 1, { active: false }),
        () => change(store, 1, 1, { deleted: true }),
        () => store.deleteProject(1, aChange()),
      ]
      for (const write of writes) {
        const before = await revision()
        const result = await write()
        assert.equal(result.value?.revision, before + 1)
        assert.equal(await revision(), before + 1)
      }
      const before = await revision()
      await commit(chunkStore, { groupTypes: [{ projectId: 1, name: 'company', index: 0 }] })
      assert.equal(await revision(), before + 1)
    })

    it('increases when a personal key is deleted, so that every process drops it', async t => {
      const { store, revision } = await open(t)
      const key = { label: '', scopes: [], scopedProjectIds: [], lastUsedAtMs: null }
      await store.createPersonalKey({ ...key, id: 'k', secretHash: 'h' }, aChange())
      const before = await revision()
      await store.deletePersonalKey('k', aChange())
      assert.equal(await revision(), before + 1)
      await store.deletePersonalKey('k', aChange())
      assert.equal(await revision(), before + 1)
    })

    it('does not change with refused writes, or with writes that do not affect evaluation', async t => {
      const { store, chunkStore, revision } = await open(t)
      await store.createProject(aNewProject({ apiToken: 'phc_x' }), aChange())
      await store.createFlag(aNewFlag(), aChange())
      const before = await revision()
      await store.createProject(aNewProject({ apiToken: 'phc_x' }), aChange())
      await store.createFlag(aNewFlag(), aChange())
      await change(store, 1, 7, { name: 'x' })
      await store.deleteProject(7, aChange())
      await store.createPersonalKey(
        {
          id: 'k',
          label: '',
          scopes: [],
          scopedProjectIds: [],
          lastUsedAtMs: null,
          secretHash: 'h',
        },
        aChange('Test', 0),
      )
      await store.addFlagRequests([{ projectId: 1, day: '2026-03-01', count: 2 }])
      await store.saveEventCounts(1, [{ ...noEventUsage, day: '2026-03-01', eventsCharged: 1 }], '2026-01-01')
      const person = aPerson()
      await commit(chunkStore, {
        persons: [created(person)],
        mappings: [created(aMapping(person, 'ada'))],
        groups: [created(aGroup())],
      })
      assert.equal(await revision(), before)
    })
  })

  describe(`ManagementStore on ${adapter}: the log that the state belongs to`, () => {
    const log = { id: 'a', place: 'here:/a', formerId: null, begunAt: '{"main":0}' }

    it('is unset at first, and then the one that was set last', async t => {
      const { store } = await open(t)
      assert.equal(await store.findFollowedLog(), null)
      await store.followLog(log)
      assert.deepEqual(await store.findFollowedLog(), log)
      const next = { id: 'b', place: 'there:/b', formerId: 'a', begunAt: '{"main":77}' }
      await store.followLog(next)
      assert.deepEqual(await store.findFollowedLog(), next)
    })

    it('when changed, ends the claims of workers that read another log, but leaves positions unchanged', async t => {
      const { store, chunkStore } = await open(t)
      await commit(chunkStore, {})
      await store.followLog(log)
      const position = { stream: 'main', ownerId: 'w1', offset: 99, committedAtMs: 13 } as const
      assert.equal(await chunkStore.commitChunk(chunkChanges({}), position), 'not_owner')
      assert.equal((await store.findLogPosition('main')).offset, 77)
      assert.deepEqual(await chunkStore.claimPosition('main', 'w2'), { offset: 77 })
    })
  })
}
