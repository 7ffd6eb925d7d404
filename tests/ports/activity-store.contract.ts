// The contract of the activity log: every write that people make stores its entry in its own transaction, with the author,
// the time and the values before and after.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Activity, activityKinds } from '#core/activity.ts'
import { computeAuthorNumber } from '#core/author.ts'
import { usualOptions } from '#core/imports/import-job.ts'
import { noQuotas } from '#core/project.ts'
import type { ActivityQuery } from '#ports/state/activity-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { aChange, aMapping, aNewCohort, aNewFlag, aNewProject, aPerson, created } from '../support/values.ts'
import { change, commit, type OpenManagement, written } from './management-harness.ts'

const [ada, bob] = [aChange('ada', 5), aChange('bob', 6)]
const key = { id: 'k1', label: 'ci', scopes: ['*'], scopedProjectIds: [2], secretHash: 'c0ffee', lastUsedAtMs: null }
const newJob = { publicId: 7_777, projectId: 1, name: 'history', source: 'test', options: usualOptions, plan: {} }
const limits = { openMax: 9, perDayMax: 9, keptMax: 9 }

export function activityStoreContract(adapter: string, open: OpenManagement): void {
  describe(`ActivityStore on ${adapter}`, () => {
    /** Project 1, and the log without the entry of its creation. */
    async function start(t: TestContext) {
      const harness = await open(t)
      const { store } = harness
      await store.createProject(aNewProject({ name: 'First' }), ada)
      const first = (await entries(store))[0]!.id
      /** The entries since then, oldest first, without their ids. */
      const log = async () =>
        (await entries(store))
          .filter(({ id }) => id > first)
          .map(({ id: _, ...entry }) => entry)
          .toReversed()
      /** The entries since then as texts: who did what to which item. */
      const told = async () =>
        (await log()).map(
          ({ by, activity, kind, itemId, version }) =>
            `${by?.label} ${activity} ${kind} ${itemId}${version === undefined ? '' : ` v${version}`}`,
        )
      return { ...harness, log, told }
    }

    it('records the fields of a cohort before and after a change, and records nothing if nothing changed', async t => {
      const { store, log } = await start(t)
      const { name, description, isStatic, filters } = aNewCohort()
      written(await store.createCohort(aNewCohort(), ada, {}))
      written(await store.updateCohort(1, 1, { name: 'Gamma', description: '' }, bob, {}))
      written(await store.updateCohort(1, 1, { name: 'Gamma' }, aChange('nobody', 7), {}))
      written(await store.updateCohort(1, 1, { deleted: true }, ada, {}))
      const item = { projectId: 1, kind: 'cohort', itemId: '1' }
      const fields = { description, is_static: isStatic, filters, deleted: false }
      const [adasWrite, bobsWrite] = [ada, bob].map(({ by, atMs }) => ({ by, atMs }))
      assert.deepEqual(await log(), [
        { ...item, ...adasWrite, itemName: name, activity: 'created', changes: gained({ name, ...fields }) },
        {
          ...{ ...item, ...bobsWrite, itemName: 'Gamma', activity: 'updated' },
          changes: [{ path: 'name', action: 'changed', before: name, after: 'Gamma' }],
        },
        { ...item, ...adasWrite, itemName: 'Gamma', activity: 'deleted', changes: lost({ name: 'Gamma', ...fields }) },
      ])
    })

    it('records a restored cohort, and a deleted cohort with the fields that it has after its deletion', async t => {
      const { store, log } = await start(t)
      written(await store.createCohort(aNewCohort(), ada, {}))
      written(await store.updateCohort(1, 1, { deleted: true, name: 'Last' }, bob, {}))
      written(await store.updateCohort(1, 1, { deleted: false }, ada, {}))
      const [, deleted, restored] = await log()
      assert.deepEqual([deleted?.activity, deleted?.itemName], ['deleted', 'Last'])
      assert.deepEqual(
        deleted?.changes.filter(({ path }) => path === 'name'),
        lost({ name: 'Last' }),
      )
      assert.deepEqual([restored?.activity, restored?.itemName], ['updated', 'Last'])
      assert.deepEqual(restored?.changes, [{ path: 'deleted', action: 'changed', before: true, after: false }])
    })

    it('records project settings and masked secret keys, and its entries outlive the project', async t => {
      const { store, log, told } = await start(t)
      written(await store.updateProject(1, { name: 'Renamed', quotas: { ...noQuotas, events: 3 } }, bob))
      written(await store.updateProject(1, { name: 'Renamed', quotas: { events: 3 } }, bob))
      written(await store.rotateSecretKey(1, { secretHash: 'hash-1', masked: 'phs_...1' }, ada))
      written(await store.rotateSecretKey(1, { secretHash: 'hash-2', masked: 'phs_...2' }, ada))
      for (const _time of [1, 2]) written(await store.deleteBackupSecretKey(1, bob))
      written(await store.deleteProject(1, ada))
      assert.deepEqual(await told(), [
        ...['bob updated project 1', 'ada updated project 1', 'ada updated project 1', 'bob updated project 1'],
        'ada deleted project 1',
      ])
      const changed = (await log()).map(({ changes }) =>
        changes.map(({ path, before, after }) => [path, before, after]),
      )
      assert.deepEqual(changed.slice(0, -1), [
        [
          ['name', 'First', 'Renamed'],
          ['quotas.events', null, 3],
        ],
        [['secret_api_token', null, 'phs_...1']],
        [
          ['secret_api_token', 'phs_...1', 'phs_...2'],
          ['secret_api_token_backup', null, 'phs_...1'],
        ],
        [['secret_api_token_backup', 'phs_...1', null]],
      ])
      assert.ok(changed.at(-1)!.some(([path, before]) => path === 'name' && before === 'Renamed'))
      assert.doesNotMatch(JSON.stringify(await log()), /hash-/)
    })

    it('records personal keys outside of any project, without the hash that verifies them', async t => {
      const { store, log } = await start(t)
      await store.createPersonalKey(key, ada)
      await store.deletePersonalKey('k1', bob)
      await store.deletePersonalKey('k1', bob)
      const shown = { label: 'ci', scopes: ['*'], scoped_teams: [2] }
      const item = { projectId: null, kind: 'personal_api_key', itemId: 'k1', itemName: 'ci' }
      assert.deepEqual(await log(), [
        { ...item, by: ada.by, atMs: 5, activity: 'created', changes: gained(shown) },
        { ...item, by: bob.by, atMs: 6, activity: 'deleted', changes: lost(shown) },
      ])
      assert.equal((await entries(store, { projectId: 1 })).length, 1, 'that of the project')
    })

    it('records a change of a flag as a flag version, which contains the fields', async t => {
      const { store, log, told } = await start(t)
      written(await store.createFlag(aNewFlag(), ada))
      written(await change(store, 1, 1, { name: 'New' }, { changedBy: 'bob' }))
      written(await change(store, 1, 1, { name: 'New' }, { changedBy: 'nobody' }))
      written(await change(store, 1, 1, { deleted: true }, { changedBy: 'bob' }))
      written(await change(store, 1, 1, { deleted: false, key: 'back' }, { changedBy: 'bob' }))
      assert.deepEqual(await told(), [
        'ada created feature_flag 1 v1',
        'bob updated feature_flag 1 v2',
        'bob deleted feature_flag 1 v3',
        'bob updated feature_flag 1 v4',
      ])
      assert.deepEqual(
        (await log()).map(({ itemName, atMs, changes }) => [itemName, atMs, ...changes]),
        [['beta', 5], ...Array(2).fill(['beta', 9]), ['back', 9]],
      )
    })

    it('records how many members were added and removed, and nothing if there were none', async t => {
      const { store, chunkStore, log } = await start(t)
      const persons = [1, 2].map(n => aPerson({ uuid: `11111111-1111-5111-8111-11111111111${n}` }))
      const mappings = persons.map((person, index) => created(aMapping(person, `user-${index}`)))
      await commit(chunkStore, { persons: persons.map(created), mappings })
      written(await store.createCohort(aNewCohort({ isStatic: true }), ada, {}))
      const both = { kind: 'distinct_id', ids: ['user-0', 'user-1'] } as const
      for (const _time of [1, 2]) await store.addCohortMembers(1, 1, both, bob)
      const one = { kind: 'distinct_id', ids: ['user-0'] } as const
      for (const _time of [1, 2]) await store.removeCohortMembers(1, 1, one, ada)
      const members = (await log()).slice(1)
      assert.deepEqual(
        members.map(({ by, activity, itemName, changes }) => [by?.label, activity, itemName, changes[0]?.after]),
        [
          ['bob', 'members_added', 'Beta', 2],
          ['ada', 'members_removed', 'Beta', 1],
        ],
      )
    })

    it('records an erasure without naming the person', async t => {
      const { store, chunkStore, log, told } = await start(t)
      const person = aPerson()
      await commit(chunkStore, { persons: [created(person)], mappings: [created(aMapping(person, 'the-erased'))] })
      const personIds = await store.findPersonIds(1, { distinctIds: ['the-erased'] })
      const terms = { deletesEvents: true, deletesRecordings: false, logId: 'log', endOffsets: {} }
      await store.erasePersons({ projectId: 1, personIds, keepsPerson: true, ...terms }, ada)
      await store.erasePersons({ projectId: 1, personIds, keepsPerson: false, ...terms }, bob)
      await store.erasePersons({ projectId: 1, personIds, keepsPerson: false, ...terms }, bob)
      assert.deepEqual(await told(), ['ada data_deleted person ', 'bob deleted person '])
      const erased = gained({ persons: 1, delete_events: true, delete_recordings: false })
      for (const { itemName, changes } of await log()) assert.deepEqual([itemName, changes], ['', erased])
      const text = JSON.stringify(await log())
      for (const secret of [person.uuid, 'the-erased']) assert.ok(!text.includes(secret), text)
    })

    it('records what people do with an import job, but neither its progress nor the worker’s steps', async t => {
      const { store, log, told } = await start(t)
      const made = await store.createImportJob(newJob, limits, ada)
      assert.ok(made.ok)
      const update = (fields: object, by: typeof ada.by | null) =>
        store.updateImportJob(made.value.id, { ...fields, updatedAtMs: 9 }, { states: ['planned', 'publishing'] }, by)
      await update({ name: 'renamed' }, bob.by)
      await update({ progress: { rows: 5 } }, bob.by)
      await update({ state: 'publishing', step: 'draining' }, bob.by)
      await update({ step: 'rows' }, null)
      await update({ state: 'published', step: null }, null)
      await update({ name: 'too late' }, bob.by)
      assert.deepEqual(await told(), [
        'ada created import_job 2',
        'bob updated import_job 2',
        'bob updated import_job 2',
      ])
      const options = { person_properties: 'keep', first_touch_backdate: false, geoip: false, experiments: false }
      const shown = { name: 'history', source: 'test', state: 'planned', plan: {}, options }
      assert.deepEqual((await log())[0]!.changes, gained(shown))
      const text = JSON.stringify(await log())
      assert.ok(!text.includes(String(newJob.publicId)), 'whoever knows the public id can add events')
    })

    it('records the deletion of a group type once', async t => {
      const { store, chunkStore, told } = await start(t)
      await commit(chunkStore, { groupTypes: [{ projectId: 1, name: 'company', index: 0 }] })
      for (const _time of [1, 2]) await store.startDeletingGroupType(1, 0, ada)
      assert.deepEqual(await told(), ['ada deleted group_type 0'])
    })

    it('has no entry for a write that was refused, even if part of it had already been made', async t => {
      const { store, told } = await start(t)
      written(await store.createFlag(aNewFlag({ key: 'taken' }), ada))
      written(await store.createCohort(aNewCohort(), ada, {}))
      await store.createPersonalKey(key, ada)
      const before = await told()

      const survey = { id: 'd1', projectId: 1, name: 'Why', type: 'popover' as const }
      const flags = {
        targetingFlagId: { kind: 'create', flag: aNewFlag({ key: 'first' }) },
        internalTargetingFlagId: { kind: 'create', flag: aNewFlag({ key: 'taken' }) },
      } as const
      const refused = [
        await store.createResource('survey', survey, flags, bob),
        await store.createFlag(aNewFlag({ key: 'taken' }), bob),
        await store.updateFlag(1, 1, { name: 'x' }, bob, { expectedVersion: 9 }),
        await store.updateCohort(1, 1, { name: 'x' }, bob, { expectedVersion: 9 }),
        await store.updateCohort(1, 1, { name: 'x' }, bob, { linksRevision: 0 }),
        await store.createProject(aNewProject({ apiToken: (await store.findProject(1))!.apiToken }), bob),
      ]
      assert.deepEqual(
        refused.map(({ ok }) => ok),
        refused.map(() => false),
      )
      await assert.rejects(store.createPersonalKey({ ...key, id: 'k2' }, bob), { code: 'conflict' })
      assert.deepEqual(await told(), before)
    })

    it('stores no more text for a change than the old and the new value', async t => {
      const { store, log } = await start(t)
      const content = (value: number) => ({ appearance: { ['k'.repeat(1_000)]: Array<number>(2_000).fill(value) } })
      const survey = { id: 'd1', projectId: 1, name: 'Why', type: 'popover' as const, content: content(0) }
      written(await store.createResource('survey', survey, {}, ada))
      written(await store.updateResource('survey', 1, 'd1', { content: content(1) }, {}, bob))
      assert.deepEqual((await log()).at(-1)?.changes, [
        {
          ...{ path: 'appearance', action: 'changed' },
          ...{ before: content(0).appearance, after: content(1).appearance },
        },
      ])
    })

    it('filters by project, kind of object, item and author, and lists the newest entries first', async t => {
      const { store } = await start(t)
      await store.createProject(aNewProject({ name: 'Second' }), bob)
      await store.createPersonalKey(key, bob)
      for (const projectId of [1, 2]) {
        written(await store.createFlag(aNewFlag({ projectId }), ada))
        written(await store.createCohort(aNewCohort({ projectId }), bob, {}))
      }
      const found = async (query: Partial<ActivityQuery>) =>
        (await entries(store, query)).map(({ projectId, kind, itemId }) => `${projectId} ${kind} ${itemId}`)
      assert.deepEqual(await found({}), [
        ...['2 cohort 2', '2 feature_flag 2', '1 cohort 1', '1 feature_flag 1'],
        ...['null personal_api_key k1', '2 project 2', '1 project 1'],
      ])
      assert.deepEqual(await found({ projectId: 2 }), ['2 cohort 2', '2 feature_flag 2', '2 project 2'])
      assert.deepEqual(await found({ kinds: ['cohort', 'survey'] }), ['2 cohort 2', '1 cohort 1'])
      assert.deepEqual(await found({ kinds: [] }), [])
      assert.deepEqual(await found({ projectId: 1, itemId: '1' }), ['1 cohort 1', '1 feature_flag 1', '1 project 1'])
      assert.deepEqual(await found({ itemId: 'k1\0' }), [])
      assert.deepEqual(await found({ by: [computeAuthorNumber(ada.by)] }), [
        '2 feature_flag 2',
        '1 feature_flag 1',
        '1 project 1',
      ])
      assert.equal((await found({ by: [ada.by, bob.by].map(computeAuthorNumber) })).length, 7)
      assert.deepEqual(await found({ by: [] }), [])
      assert.deepEqual(
        await found({ by: [computeAuthorNumber({ id: 'k1', label: 'ada' })] }),
        [],
        'a key that has the same label',
      )
    })

    it('continues below a cursor while new entries arrive, and ends a page of large entries early, but never empty', async t => {
      const { store } = await start(t)
      const record = (name: string, bytes = 0) => {
        const changes = [{ path: 'plan', action: 'created', before: null, after: 'x'.repeat(bytes) }] as const
        const item = { kind: 'import_job', projectId: 1, itemId: name, itemName: name, activity: 'updated' } as const
        return store.recordActivity({ ...item, changes }, ada)
      }
      for (const name of ['a', 'b', 'c']) await record(name)
      for (const name of ['d', 'e', 'f']) await record(name, 700_000)
      const pages: string[] = []
      for (let belowId: number | undefined; ; await record('new')) {
        const cursor = belowId === undefined ? {} : { belowId }
        const page = await store.listActivity({ projectId: 1, kinds: ['import_job'], limit: 2, ...cursor })
        pages.push(page.results.map(({ itemId }) => itemId).join(' '))
        belowId = page.results.at(-1)!.id
        if (page.nextBelowId === null) break
      }
      assert.deepEqual(pages, ['f', 'e', 'd c', 'b a'])
    })

    it('ends a page early if the flag versions needed to show the changes are large', async t => {
      const { store } = await start(t)
      await store.createPersonalKey(key, ada)
      const filters = { groups: [], note: 'x'.repeat(700_000) }
      written(await store.createFlag(aNewFlag({ filters }), ada))
      written(await change(store, 1, 1, { name: 'New' }))
      const { results, nextBelowId } = await store.listActivity({ projectId: null, kinds: activityKinds, limit: 9 })
      assert.deepEqual(
        results.map(({ version }) => version),
        [2],
      )
      const [{ id }] = results as [Activity]
      assert.equal(nextBelowId, id)
      const rest = await store.listActivity({ projectId: null, kinds: activityKinds, limit: 9, belowId: id })
      assert.deepEqual(
        rest.results.map(({ version }) => version),
        [1, undefined, undefined],
      )
    })

    it('ends a page early if the flag versions before the shown ones are large, because the two are compared', async t => {
      const { store } = await start(t)
      const [large, small] = ['x'.repeat(700_000), ''].map(note => ({ filters: { groups: [], note } }))
      for (const name of ['a', 'b', 'c']) written(await store.createFlag(aNewFlag({ key: name, ...large }), ada))
      for (const id of [1, 2, 3]) written(await change(store, 1, id, small!))
      const { results } = await store.listActivity({ projectId: 1, kinds: ['feature_flag'], limit: 9 })
      assert.deepEqual(
        results.map(({ itemId, version }) => [itemId, version]),
        [['3', 2]],
      )
      const versions = await store.listProjectFlagVersions(1, { limit: 9, offset: 0 })
      assert.deepEqual([versions.count, versions.results.length], [6, 1])
    })
  })
}

/** Newest first. */
async function entries(store: ManagementStore, query: Partial<ActivityQuery> = {}): Promise<readonly Activity[]> {
  return (await store.listActivity({ projectId: null, kinds: activityKinds, limit: 100, ...query })).results
}

function gained(fields: object) {
  return Object.entries(fields).map(([path, after]) => ({ path, action: 'created', before: null, after }))
}

function lost(fields: object) {
  return Object.entries(fields).map(([path, before]) => ({ path, action: 'deleted', before, after: null }))
}
