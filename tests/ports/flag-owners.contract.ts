// The contract of every management store for early access features, surveys and experiments: each is written together
// with its flags or not at all.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { Item, ResourceName } from '#core/resources/resources.ts'
import type { FlagWrite } from '#ports/state/flag-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { FlagWrites, NewItem } from '#ports/state/resource-store.ts'
import { aChange, aCohort, aNewFlag, aNewProject } from '../support/values.ts'
import { change, type ManagementHarness, type OpenManagement, written } from './management-harness.ts'

const oddText = 'a\0b\ud800'
const storedOddText = 'a\ufffdb\ufffd'
const jsonText = '{"__proto__":{"x":1.0},"id":12345678901234567890}'
const json = parseJson(jsonText) as JsonObject

function aFeature(over: Partial<NewItem<'early_access_feature'>> = {}) {
  return {
    ...{ id: '00000000-0000-4000-8000-0000000000f1', projectId: 1, name: 'Search', description: '' },
    stage: 'beta' as const,
    ...{ documentationUrl: '', payload: {} },
    ...over,
  }
}

function aSurvey(over: Partial<NewItem<'survey'>> = {}) {
  return {
    ...{ id: '00000000-0000-4000-8000-0000000000d1', projectId: 1, name: 'Why', type: 'popover' as const },
    content: {} as JsonObject,
    ...{ linkedFlagId: null, startDateMs: 3, endDateMs: null, archived: false },
    ...over,
  }
}

function anExperiment(over: Partial<NewItem<'experiment'>> = {}) {
  return {
    ...{ projectId: 1, name: 'Button', content: {} as JsonObject, startDateMs: null, endDateMs: null, archived: false },
    ...over,
  }
}

const earlyAccess = 'early_access_feature'

const refused = (error: string) => ({ ok: false, error })
const made = { createdAtMs: aChange().atMs, createdBy: aChange().by }
const create = (key: string): FlagWrite => ({ kind: 'create', flag: aNewFlag({ key }) })
const switchOff = (flagId: number, expectedVersion: number): FlagWrite => ({
  ...{ kind: 'change', flagId, expectedVersion },
  patch: { active: false },
})

export function flagOwnersContract(adapter: string, open: OpenManagement): void {
  describe(`ManagementStore on ${adapter}: owners of flags`, () => {
    it('stores a feature and its new flag in one revision, with every field and number literal', async t => {
      const { store, revision } = await openWithProjects(open, t)
      const before = await revision()
      const input = aFeature({ name: oddText, payload: json, stage: 'general-availability' })
      const flag = aNewFlag({ key: 'search', name: oddText })
      const feature = await add(store, earlyAccess, input, { flagId: { kind: 'create', flag } })
      assert.equal(await revision(), before + 1)
      const found = await store.findResource(earlyAccess, 1, input.id)
      assert.deepEqual({ ...found, payload: 0 }, { ...feature, name: storedOddText, payload: 0 })
      assert.equal(JSON.stringify(found?.payload), jsonText)
      assert.equal(found?.flagId, (await store.findFlag(1, 'search'))?.id)
      assert.equal((await store.findFlag(1, 'search'))?.name, storedOddText)
      assert.equal(await store.findResource(earlyAccess, 2, input.id), null)
    })

    it('writes a feature and the change of its flag together, or writes neither', async t => {
      const { store, revision } = await openWithProjects(open, t)
      const { id } = aFeature()
      const { flagId } = await add(store, earlyAccess, aFeature(), { flagId: create('search') })
      const before = await revision()
      const stale = await store.updateResource(
        earlyAccess,
        1,
        id,
        { stage: 'archived' },
        { flagId: switchOff(flagId!, 7) },
        aChange(),
      )
      assert.deepEqual(stale, refused('flag_changed'))
      const other = aFeature({ id: '00000000-0000-4000-8000-0000000000f2' })
      assert.deepEqual(
        await store.createResource(earlyAccess, other, { flagId: create('search') }, aChange()),
        refused('key_taken'),
      )
      const shared = await store.createResource(earlyAccess, other, { flagId: switchOff(flagId!, 1) }, aChange())
      assert.deepEqual(shared, refused('flag_in_use'))
      assert.deepEqual(await store.deleteResource(earlyAccess, 2, id, {}, aChange()), refused('not_found'))
      assert.equal(await revision(), before, 'a refused write changes nothing')
      assert.equal((await store.findFlag(1, 'search'))?.active, true)
      assert.equal((await store.findResource(earlyAccess, 1, id))?.stage, 'beta')

      const patch = { stage: 'archived', description: 'over' } as const
      const updated = await update(store, earlyAccess, 1, id, patch, { flagId: switchOff(flagId!, 1) }, aChange('ci'))
      assert.deepEqual(updated, { ...aFeature(), ...made, flagId, flagIsOwn: true, ...patch })
      assert.equal((await store.findFlag(1, 'search'))?.active, false)
      assert.deepEqual((await store.findFlagVersion(1, flagId!, 2))?.changedBy, aChange('ci').by)
      await remove(store, earlyAccess, 1, id, {})
      assert.deepEqual(await store.listResources(earlyAccess, 1, { limit: 5, offset: 0 }), {
        count: 0,
        results: [],
      })
    })

    it('stores a survey with both flags, or nothing if the second flag is refused', async t => {
      const { store, revision } = await openWithProjects(open, t)
      await store.createFlag(aNewFlag({ key: 'taken' }), aChange())
      const before = await revision()
      const input = aSurvey({ name: oddText, content: json, linkedFlagId: 1, archived: true, endDateMs: 8 })
      const refusal = await store.createResource(
        'survey',
        input,
        { targetingFlagId: create('a'), internalTargetingFlagId: create('taken') },
        aChange(),
      )
      assert.deepEqual(refusal, refused('key_taken'))
      assert.equal(await store.findFlag(1, 'a'), null)
      assert.equal(await revision(), before)
      const survey = await add(store, 'survey', input, {
        targetingFlagId: create('a'),
        internalTargetingFlagId: create('b'),
      })
      assert.deepEqual([survey.targetingFlagId, survey.internalTargetingFlagId], [2, 3], 'no id was lost')
      const found = await store.findResource('survey', 1, input.id)
      assert.deepEqual({ ...found, content: 0 }, { ...survey, name: storedOddText, content: 0 })
      assert.equal(JSON.stringify(found?.content), jsonText)
    })

    it('changes a survey, adds and removes a flag, and deletes it with its flags', async t => {
      const { store } = await openWithProjects(open, t)
      const { id } = aSurvey()
      await add(store, 'survey', aSurvey(), { internalTargetingFlagId: create('internal') })
      const changed = await update(
        store,
        'survey',
        1,
        id,
        { endDateMs: 7 },
        { targetingFlagId: create('t') },
        aChange('Test', 9),
      )
      assert.deepEqual([changed.targetingFlagId, changed.endDateMs, changed.startDateMs], [2, 7, 3])
      const patch = { targetingFlagId: null, endDateMs: null }
      const freed = await update(store, 'survey', 1, id, patch, { targetingFlagId: switchOff(2, 1) })
      assert.deepEqual([freed.targetingFlagId, freed.internalTargetingFlagId, freed.endDateMs], [null, 1, null])
      assert.deepEqual(await store.deleteResource('survey', 2, id, {}, aChange()), refused('not_found'))
      const deletion = { ...switchOff(1, 1), patch: { deleted: true } } as FlagWrite
      await remove(store, 'survey', 1, id, { internalTargetingFlagId: deletion })
      assert.equal(await store.findResource('survey', 1, id), null)
      assert.equal((await store.findFlag(1, '1'))?.deleted, true)
    })

    it('lists surveys newest first, filtered by name and archived state', async t => {
      const { store } = await openWithProjects(open, t)
      const add = (n: number, over: Partial<NewItem<'survey'>>) =>
        store.createResource(
          'survey',
          aSurvey({ id: `00000000-0000-4000-8000-0000000000d${n}`, ...over }),
          {},
          aChange('Test', n),
        )
      await add(1, { name: 'Exit 100%' })
      await add(2, { name: 'entry' })
      await add(3, { name: 'EXIT poll', archived: true })
      await add(4, { name: 'other', projectId: 2 })
      const names = async (query: object) => {
        const { count, results } = await store.listResources('survey', 1, { limit: 2, offset: 0, ...query })
        return [count, ...results.map(({ name }) => name)]
      }
      assert.deepEqual(await names({}), [3, 'EXIT poll', 'entry'])
      assert.deepEqual(await names({ offset: 2 }), [3, 'Exit 100%'])
      assert.deepEqual(await names({ search: 'exit' }), [2, 'EXIT poll', 'Exit 100%'])
      assert.deepEqual(await names({ search: '0%' }), [1, 'Exit 100%'])
      assert.deepEqual(await names({ archived: false }), [2, 'entry', 'Exit 100%'])
    })

    it('ends pages of large surveys, features, experiments and cohorts early, but never empty', async t => {
      const { store } = await openWithProjects(open, t)
      const content = { note: 'x'.repeat(700_000) }
      for (const last of ['1', '2']) {
        const id = `00000000-0000-4000-8000-0000000000d${last}`
        await add(store, 'survey', aSurvey({ id, content }), {})
        await add(store, earlyAccess, aFeature({ id, payload: content }), { flagId: create(`f${last}`) })
        await add(store, 'experiment', anExperiment({ content }), { flagId: create(`x${last}`) })
        const { id: _, ...cohort } = aCohort({ filters: content })
        written(await store.createCohort(cohort, aChange(), {}))
      }
      const page = { limit: 10, offset: 0 }
      const lists = await Promise.all([
        store.listResources('survey', 1, page),
        store.listResources(earlyAccess, 1, page),
        store.listResources('experiment', 1, { ...page, archived: false, nowMs: 9 }),
        store.listCohorts(1, page),
      ])
      for (const { count, results } of lists) assert.deepEqual([count, results.length], [2, 1])
    })

    it('sets has_experiment of a flag until its last experiment is deleted, and never reuses an id', async t => {
      const { store } = await openWithProjects(open, t)
      const marked = { ...create('button'), hasExperiment: true } as FlagWrite
      const first = await add(store, 'experiment', anExperiment({ content: json }), { flagId: marked })
      const ids = { id: 1, flagId: 1, flagIsOwn: true, updatedAtMs: made.createdAtMs }
      assert.deepEqual({ ...first, content: 0 }, { ...anExperiment(), ...made, ...ids, content: 0 })
      const found = await store.findResource('experiment', 1, 1)
      assert.deepEqual({ ...found, content: 0 }, { ...first, content: 0 })
      assert.equal(JSON.stringify(found?.content), jsonText)
      const mark = { ...switchOff(1, 1), patch: { hasExperiment: true } } as FlagWrite
      assert.equal((await add(store, 'experiment', anExperiment({ name: 'Two' }), { flagId: mark })).id, 2)
      const isMarked = async () => (await store.findFlag(1, 'button'))?.hasExperiment
      await remove(store, 'experiment', 1, 1, {}, aChange('ci', 10))
      assert.equal(await isMarked(), true)
      assert.deepEqual(
        await store.deleteResource('experiment', 1, 1, {}, aChange('Test', 10), {}),
        refused('not_found'),
      )
      await remove(store, 'experiment', 1, 2, {}, aChange('ci', 11))
      assert.equal(await isMarked(), false)
      assert.equal(
        (await store.listResources('experiment', 1, { limit: 9, offset: 0, archived: false, nowMs: 9 })).count,
        0,
      )
      assert.equal((await add(store, 'experiment', anExperiment(), { flagId: create('next') })).id, 3)
    })

    it('changes an experiment together with its flag, and deletes an experiment whose flag no longer exists', async t => {
      const { store } = await openWithProjects(open, t)
      const input = anExperiment({ content: { description: 'Why', type: 'product' } })
      await add(store, 'experiment', input, { flagId: create('button') })
      const patch = { startDateMs: 4, archived: true, content: { type: null } }
      assert.deepEqual(
        await store.updateResource('experiment', 1, 1, patch, { flagId: switchOff(1, 5) }, aChange()),
        refused('flag_changed'),
      )
      assert.equal((await store.findResource('experiment', 1, 1))?.startDateMs, null)
      const updated = await update(store, 'experiment', 1, 1, patch, { flagId: switchOff(1, 1) })
      assert.deepEqual([updated.startDateMs, updated.archived, updated.name], [4, true, 'Button'])
      assert.deepEqual(updated.content, { description: 'Why', type: null }, 'other members are kept')
      await change(store, 1, 1, { deleted: true })
      await remove(store, 'experiment', 1, 1, {}, aChange('Test', 11))
      assert.equal(await store.findResource('experiment', 1, 1), null)
      assert.deepEqual(await store.updateResource('experiment', 1, 1, patch, {}, aChange()), refused('not_found'))
    })

    it('lists experiments, and deletes none to which flag rules may have begun to refer since the check', async t => {
      const { store } = await openWithProjects(open, t)
      await add(store, 'experiment', anExperiment(), { flagId: create('button') })
      const { revision: linksRevision, experimentIds } = await store.findLinks(1)
      assert.deepEqual(experimentIds, [1])
      const rules = [{ experiment_id: 1 }]
      assert.equal(
        (await store.createFlag(aNewFlag({ key: 'ruled', filters: { version: 2, rules } }), aChange())).ok,
        true,
      )
      assert.deepEqual(
        await store.deleteResource('experiment', 1, 1, {}, aChange(), { linksRevision }),
        refused('definitions_changed'),
      )
      const links = await store.findLinks(1)
      assert.deepEqual(
        links.flags.map(flag => flag.experimentIds),
        [[], [1]],
      )
      await remove(store, 'experiment', 1, 1, {}, aChange(), { linksRevision: links.revision })
      assert.deepEqual((await store.findLinks(1)).experimentIds, [])
    })

    it('stores whether a flag was created for its owner or linked', async t => {
      const { store } = await openWithProjects(open, t)
      const own = aFeature()
      await add(store, earlyAccess, own, { flagId: create('made') })
      written(await store.createFlag(aNewFlag({ key: 'taken' }), aChange()))
      const taking = aFeature({ id: own.id.replace('f1', 'f2') })
      await add(store, earlyAccess, taking, { flagId: switchOff(2, 1) })
      const featureIsOwn = async (id: string) => (await store.findResource(earlyAccess, 1, id))?.flagIsOwn
      await update(store, earlyAccess, 1, taking.id, { stage: 'alpha' }, { flagId: switchOff(2, 2) })
      assert.deepEqual([await featureIsOwn(own.id), await featureIsOwn(taking.id)], [true, false])
      await add(store, 'experiment', anExperiment(), { flagId: create('new') })
      await add(store, 'experiment', anExperiment(), { flagId: switchOff(2, 2) })
      const experimentIsOwn = async (id: number) => (await store.findResource('experiment', 1, id))?.flagIsOwn
      assert.deepEqual([await experimentIsOwn(1), await experimentIsOwn(2)], [true, false])
    })

    it('lists the owners of flags, in their own project only', async t => {
      const { store } = await openWithProjects(open, t)
      const { flagId } = await add(store, earlyAccess, aFeature(), { flagId: create('search') })
      await add(store, 'experiment', anExperiment(), { flagId: create('button') })
      await add(store, 'experiment', anExperiment(), { flagId: switchOff(2, 1) })
      const owners = await store.listFlagOwners(1, [1, 2, 99])
      assert.deepEqual(
        owners.toSorted((a, b) => a.flagId - b.flagId),
        [
          { flagId: 1, experimentIds: [], features: [{ ...aFeature(), ...made, flagId, flagIsOwn: true }] },
          { flagId: 2, experimentIds: [1, 2], features: [] },
        ],
      )
      assert.deepEqual(await store.listFlagOwners(2, [1, 2]), [])
      assert.deepEqual(await store.listFlagOwners(1, []), [])
    })

    it('lists owners that still need their flags, without those that have ended', async t => {
      const { store } = await openWithProjects(open, t)
      await store.createFlag(aNewFlag({ key: 'linked' }), aChange())
      await add(store, earlyAccess, aFeature(), { flagId: create('search') })
      await add(store, 'experiment', anExperiment({ name: 'Running', startDateMs: 5 }), { flagId: create('button') })
      await add(store, 'experiment', anExperiment({ name: 'Ending', endDateMs: 11 }), { flagId: switchOff(3, 1) })
      await add(store, 'experiment', anExperiment({ name: 'Ended', endDateMs: 10 }), { flagId: switchOff(3, 2) })
      await add(store, 'experiment', anExperiment({ name: 'Filed', archived: true }), { flagId: switchOff(3, 2) })
      await add(store, 'experiment', anExperiment({ name: 'Gone' }), { flagId: switchOff(3, 2) })
      await remove(store, 'experiment', 1, 5, {}, aChange('Test', 10))
      const survey = aSurvey({ name: 'Exit', linkedFlagId: 1 })
      await add(store, 'survey', survey, { internalTargetingFlagId: create('own') })
      const uses = async (projectId: number, ids: readonly number[]) =>
        (await store.listFlagUses(projectId, ids, 10)).map(({ flagId, kind, name }) => `${flagId} ${kind} ${name}`)
      assert.deepEqual((await uses(1, [1, 2, 3, 4, 99])).toSorted(), [
        '1 survey Exit',
        `2 early_access_feature ${aFeature().name}`,
        '3 experiment Ending',
        '3 experiment Running',
        '4 survey Exit',
      ])
      assert.deepEqual(await uses(1, [4]), ['4 survey Exit'])
      assert.deepEqual([await uses(2, [1, 2, 3, 4]), await uses(1, [])], [[], []])
      await update(store, 'survey', 1, survey.id, { archived: true }, {}, aChange('Test', 9))
      assert.deepEqual(await uses(1, [1, 4]), [])
    })

    it('refuses a change based on an outdated version of the owner, and writes nothing', async t => {
      const { store, revision } = await openWithProjects(open, t)
      const feature = await add(store, earlyAccess, aFeature({ payload: json }), { flagId: create('search') })
      const survey = await add(store, 'survey', aSurvey({ content: json }), { internalTargetingFlagId: create('own') })
      const experiment = await add(store, 'experiment', anExperiment({ content: json }), { flagId: create('button') })
      const changes: ((isCurrent: boolean) => Promise<{ ok: boolean; error?: unknown }>)[] = [
        based =>
          store.updateResource(earlyAccess, 1, feature.id, { name: 'A' }, {}, aChange(), based ? feature : undefined),
        based => store.updateResource('survey', 1, survey.id, { name: 'A' }, {}, aChange(), based ? survey : undefined),
        based => store.updateResource('experiment', 1, 1, { name: 'A' }, {}, aChange(), based ? experiment : undefined),
      ]
      for (const change of changes) assert.equal((await change(true)).ok, true)
      const before = await revision()
      const late = refused('flag_changed')
      for (const change of changes) assert.deepEqual(await change(true), late)
      assert.deepEqual(
        await store.deleteResource(earlyAccess, 1, feature.id, { flagId: switchOff(1, 1) }, aChange(), {
          basedOn: feature,
        }),
        late,
      )
      assert.deepEqual(
        await store.deleteResource('survey', 1, survey.id, { internalTargetingFlagId: switchOff(2, 1) }, aChange(), {
          basedOn: survey,
        }),
        late,
      )
      assert.equal(await revision(), before)
      assert.equal((await store.findFlag(1, 'own'))?.active, true)
      for (const change of changes) assert.equal((await change(false)).ok, true)
    })

    it('merges quotas name by name, also from two concurrent writes', async t => {
      const { store } = await openWithProjects(open, t)
      await Promise.all([
        store.updateProject(1, { quotas: { events: 3 } }, aChange()),
        store.updateProject(1, { quotas: { recordings: 0 } }, aChange()),
      ])
      await store.updateProject(1, { quotas: { recordings: null, exceptions: 7 } }, aChange())
      const { events, recordings, exceptions, llmEvents } = (await store.findProject(1))!.quotas
      assert.deepEqual([events, recordings, exceptions, llmEvents], [3, null, 7, null])
    })

    it('merges client settings name by name, also from two concurrent writes', async t => {
      const { store } = await openWithProjects(open, t)
      await Promise.all([
        store.updateProject(1, { clientSettings: { heatmaps_opt_in: true, survey_config: json } }, aChange()),
        store.updateProject(1, { clientSettings: { capture_dead_clicks: false } }, aChange()),
      ])
      await store.updateProject(1, { clientSettings: { heatmaps_opt_in: null }, name: 'Renamed' }, aChange())
      const { clientSettings, name } = (await store.findProject(1))!
      assert.deepEqual(
        [name, clientSettings.capture_dead_clicks, clientSettings.heatmaps_opt_in],
        ['Renamed', false, null],
      )
      assert.equal(JSON.stringify(clientSettings.survey_config), jsonText)
    })
  })
}

/** Projects 1 and 2. */
async function openWithProjects(open: OpenManagement, t: Parameters<OpenManagement>[0]): Promise<ManagementHarness> {
  const harness = await open(t)
  await harness.store.createProject(aNewProject(), aChange())
  await harness.store.createProject(aNewProject(), aChange())
  return harness
}

async function add<N extends ResourceName>(
  store: ManagementStore,
  name: N,
  input: NewItem<N>,
  flags: FlagWrites<N>,
  change = aChange(),
): Promise<Item<N>> {
  return written<Item<N>>(await store.createResource(name, input, flags, change))
}

async function update<N extends ResourceName>(
  store: ManagementStore,
  name: N,
  projectId: number,
  id: Item<N>['id'],
  patch: Partial<Item<N>>,
  flags: FlagWrites<N>,
  change = aChange(),
): Promise<Item<N>> {
  return written<Item<N>>(await store.updateResource(name, projectId, id, patch, flags, change))
}

async function remove<N extends ResourceName>(
  store: ManagementStore,
  name: N,
  projectId: number,
  id: Item<N>['id'],
  flags: FlagWrites<N>,
  change = aChange(),
  options = {},
): Promise<void> {
  written(await store.deleteResource(name, projectId, id, flags, change, options))
}
