// The activity log of the private API. The route table is walked, so that no request that changes something is added
// without its entry.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { JsonChange } from '#core/json-diff.ts'
import { PortError } from '#ports/port-error.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { type ManagementApi, type Reply, startManagement } from '../support/management-api.ts'
import { aSignedInUser } from '../support/people.ts'
import { aMapping, aPerson, created } from '../support/values.ts'

const project = '/api/projects/1/'
const instanceLog = '/api/activity_log/'

type Id = string | number

/** A request that changes something, and its entry. */
interface Sample {
  /** Activity and scope of the entry, such as `created FeatureFlag`. */
  readonly entry: string
  /** Makes what the request is about. Its id is in the path. */
  readonly of?: (api: ManagementApi, senderId: string) => Promise<Id>
  readonly body?: object | ((id: Id) => object)
  /** Returns the id of the item that the entry is about. By default it is the id in the path, or that of the created item. */
  readonly item?: (body: Reply['body']) => Id
}

async function send(api: ManagementApi, method: string, path: string, body?: object): Promise<Reply['body']> {
  const reply = await api.call(method, path, body && { body })
  assert.ok(reply.status < 300, `${method} ${path}: ${reply.text}`)
  return reply.body
}

/** Creates something in project 1, sends these actions to it (`launch`, or `ship_variant` with a body), and gives its id. */
function made(path: string, body: () => object, ...actions: readonly string[]) {
  return async (api: ManagementApi): Promise<Id> => {
    const { id } = await send(api, 'POST', `${project}${path}/`, body())
    for (const action of actions) await send(api, 'POST', `${project}${path}/${id}/${action}/`)
    return id
  }
}

let count = 0
const unique = (name: string) => `${name}-${++count}`
const flag = (over: object = {}) => made('feature_flags', () => ({ key: unique('flag'), ...over }))
const partialFlag = flag({ filters: { groups: [{ rollout_percentage: 5 }] } })
const archivedFlag = made('feature_flags', () => ({ key: unique('flag') }), 'archive')
const newCohort = { name: 'People', is_static: true }
const cohort = (over: object = {}) => made('cohorts', () => ({ ...newCohort, ...over }))
const feature = made('early_access_feature', () => ({ name: unique('Feature'), stage: 'beta' }))
const newSurvey = { name: 'Why', type: 'popover', questions: [{ type: 'open', question: 'Why?' }] }
const survey = (...actions: readonly string[]) => made('surveys', () => newSurvey, ...actions)
const experiment = (...actions: readonly string[]) =>
  made('experiments', () => ({ name: 'Button', feature_flag_key: unique('button') }), ...actions)
const importJob = async (api: ManagementApi): Promise<Id> =>
  (await send(api, 'POST', `${project}import_jobs/`, { source: 'test' })).number

/** A user with a session. */
const user = async (api: ManagementApi): Promise<Id> =>
  (await aSignedInUser(api, 'viewer', { email: `${unique('viewer')}@x.example` })).id
const otherProject = async (api: ManagementApi): Promise<Id> =>
  (await send(api, 'POST', '/api/projects/', { name: 'Other' })).id
const projectWithSecretKeys = async (api: ManagementApi) => {
  const id = await otherProject(api)
  for (const _time of [1, 2]) await send(api, 'PATCH', `/api/projects/${id}/rotate_secret_token/`)
  return id
}
const personalKey = async (api: ManagementApi): Promise<Id> =>
  (await send(api, 'POST', '/api/personal_api_keys/', { label: 'other', scopes: ['*'] })).id
const renamedFlag = async (api: ManagementApi) => {
  const id = await flag()(api)
  await send(api, 'PATCH', `${project}feature_flags/${id}/`, { name: 'Renamed' })
  return id
}
const person = async (api: ManagementApi): Promise<string> => {
  const uuid = `11111111-1111-5111-8111-${String(++count).padStart(12, '0')}`
  const row = aPerson({ uuid })
  await api.commit({ persons: [created(row)], mappings: [created(aMapping(row, `id-of-${uuid}`))] })
  return uuid
}
const mergedPerson = async (api: ManagementApi): Promise<string> => {
  const uuid = await person(api)
  await api.commit({ mappings: [created(aMapping(aPerson({ uuid }), `other-id-of-${uuid}`))] })
  return uuid
}
const groupType = async (api: ManagementApi) => {
  await api.commit({ groupTypes: [{ projectId: 1, name: 'company', index: 0 }] })
  return 0
}

const samples: Readonly<Record<string, Sample>> = {
  projects_create: { entry: 'created Team', body: { name: 'New' } },
  projects_update: { entry: 'updated Team', of: otherProject, body: { timezone: 'Europe/Oslo' } },
  projects_destroy: { entry: 'deleted Team', of: otherProject },
  projects_reset_token: { entry: 'updated Team', of: otherProject },
  projects_rotate_secret_token: { entry: 'updated Team', of: otherProject },
  projects_delete_secret_token_backup: { entry: 'updated Team', of: projectWithSecretKeys },
  personal_api_keys_create: { entry: 'created PersonalAPIKey', body: { label: 'new', scopes: ['*'] } },
  personal_api_keys_destroy: { entry: 'deleted PersonalAPIKey', of: personalKey },
  personal_api_keys_current_destroy: { entry: 'deleted PersonalAPIKey', of: async (_api, senderId) => senderId },

  feature_flags_create: { entry: 'created FeatureFlag', body: { key: 'new' } },
  feature_flags_update: { entry: 'updated FeatureFlag', of: flag(), body: { name: 'Renamed' } },
  feature_flags_destroy: { entry: 'deleted FeatureFlag', of: flag() },
  feature_flags_bulk_delete: { entry: 'deleted FeatureFlag', of: flag(), body: id => ({ ids: [id] }) },
  feature_flags_bulk_archive: { entry: 'updated FeatureFlag', of: flag(), body: id => ({ ids: [id] }) },
  feature_flags_enable: { entry: 'updated FeatureFlag', of: flag({ active: false }) },
  feature_flags_disable: { entry: 'updated FeatureFlag', of: flag() },
  feature_flags_archive: { entry: 'updated FeatureFlag', of: flag() },
  feature_flags_unarchive: { entry: 'updated FeatureFlag', of: archivedFlag },
  feature_flags_set_release_condition_rollout: {
    ...{ entry: 'updated FeatureFlag', of: partialFlag },
    body: { version: 1, condition_index: 0, rollout_percentage: 50 },
  },
  feature_flags_roll_out_to_everyone: { entry: 'updated FeatureFlag', of: partialFlag, body: { version: 1 } },
  feature_flags_bulk_update_tags: {
    ...{ entry: 'updated FeatureFlag', of: flag() },
    body: id => ({ ids: [id], action: 'add', tags: ['new'] }),
  },
  feature_flags_versions_restore: { entry: 'updated FeatureFlag', of: renamedFlag },
  feature_flags_copy: {
    entry: 'created FeatureFlag',
    of: async api => {
      await send(api, 'POST', `${project}feature_flags/`, { key: 'copied' })
      return otherProject(api)
    },
    body: target => ({ feature_flag_key: 'copied', from_project: 1, target_project_ids: [target] }),
    item: ({ success }) => success[0].id,
  },

  cohorts_create: { entry: 'created Cohort', body: newCohort },
  cohorts_update: { entry: 'updated Cohort', of: cohort(), body: { name: 'Renamed' } },
  cohorts_destroy: { entry: 'deleted Cohort', of: cohort() },
  cohorts_add_persons_to_static_cohort: {
    ...{ entry: 'members_added Cohort', body: { distinct_ids: ['ada'] } },
    of: cohort(),
  },
  cohorts_remove_person_from_static_cohort: {
    ...{ entry: 'members_removed Cohort', body: { distinct_ids: ['ada'] } },
    of: cohort({ distinct_ids: ['ada'] }),
  },

  early_access_feature_create: { entry: 'created EarlyAccessFeature', body: { name: 'New', stage: 'beta' } },
  early_access_feature_partial_update: { entry: 'updated EarlyAccessFeature', of: feature, body: { name: 'Renamed' } },
  early_access_feature_destroy: { entry: 'deleted EarlyAccessFeature', of: feature },

  surveys_create: { entry: 'created Survey', body: newSurvey },
  surveys_partial_update: { entry: 'updated Survey', of: survey(), body: { name: 'Renamed' } },
  surveys_update: { entry: 'updated Survey', of: survey(), body: { ...newSurvey, name: 'Renamed' } },
  surveys_launch: { entry: 'updated Survey', of: survey() },
  surveys_stop: { entry: 'updated Survey', of: survey('launch') },
  surveys_destroy: { entry: 'deleted Survey', of: survey() },

  experiments_create: { entry: 'created Experiment', body: { name: 'New', feature_flag_key: 'new-button' } },
  experiments_partial_update: { entry: 'updated Experiment', of: experiment(), body: { name: 'Renamed' } },
  experiments_launch: { entry: 'updated Experiment', of: experiment() },
  experiments_end: { entry: 'updated Experiment', of: experiment('launch') },
  // Whether an experiment is paused is a field of its flag.
  experiments_pause: {
    ...{ entry: 'updated FeatureFlag', of: experiment('launch') },
    item: ({ feature_flag }) => feature_flag.id,
  },
  experiments_resume: {
    ...{ entry: 'updated FeatureFlag', of: experiment('launch', 'pause') },
    item: ({ feature_flag }) => feature_flag.id,
  },
  experiments_archive: { entry: 'updated Experiment', of: experiment('launch', 'end') },
  experiments_unarchive: { entry: 'updated Experiment', of: experiment('launch', 'end', 'archive') },
  experiments_reset: { entry: 'updated Experiment', of: experiment('launch') },
  experiments_ship_variant: {
    ...{ entry: 'updated Experiment', of: experiment('launch') },
    body: { variant_key: 'test', release_to_everyone: true },
  },
  experiments_duplicate: {
    ...{ entry: 'created Experiment', of: experiment(), body: { name: 'Copy' } },
    item: ({ id }) => id,
  },
  experiments_destroy: { entry: 'deleted Experiment', of: experiment() },

  persons_destroy: { entry: 'deleted Person', of: person, item: () => '' },
  persons_bulk_delete: { entry: 'deleted Person', of: person, body: uuid => ({ ids: [uuid] }), item: () => '' },
  persons_split: { entry: 'split_person Person', of: mergedPerson },
  persons_rebuild: { entry: 'rebuilt Person', body: { all: true, apply: true }, item: () => '' },
  groups_types_destroy: { entry: 'deleted GroupType', of: groupType },
  import_jobs_create: { entry: 'created ImportJob', body: { source: 'test' }, item: ({ number }) => number },
  import_jobs_update: { entry: 'updated ImportJob', of: importJob, body: { name: 'renamed' } },
  import_jobs_publish: { entry: 'updated ImportJob', of: importJob },
  import_jobs_discard: { entry: 'updated ImportJob', of: importJob },
  rejected_events_replay: { entry: 'replayed RejectedEvent', body: { filter: {} }, item: () => 1 },

  invitations_create: { entry: 'invited User', body: { role: 'viewer' } },
  invitations_destroy: {
    entry: 'invitation_deleted User',
    of: async api => (await send(api, 'POST', '/api/invitations/', { role: 'viewer' })).id,
  },
  users_partial_update: { entry: 'updated User', of: user, body: { role: 'editor' } },
  users_destroy: { entry: 'deleted User', of: user },
  users_reset_link_create: { entry: 'link_created User', of: user },
  users_sessions_destroy_all: { entry: 'session_ended User', of: user },
}

/** Requests of people who sign in or are signed in: `users.test.ts` looks for their entries. */
const ofPeople: Readonly<Record<string, string>> = {
  session_create: 'signs in with a password',
  session_link_create: 'signs in with a link',
  session_link_check: 'reads a link',
  session_destroy: 'ends the own session',
  session_user_update: 'changes the own user',
  users_me_sessions_destroy: 'ends an own session',
  users_me_sessions_destroy_others: 'ends the other own sessions',
  users_sessions_destroy: 'ends a session, by two ids',
}

/** Requests that change nothing that people manage, by what they do instead. */
const changesNothing: Readonly<Record<string, string>> = {
  feature_flags_bulk_keys: 'reads keys of flags',
  feature_flags_explain: 'evaluates a flag',
  feature_flags_test_evaluation: 'evaluates a flag',
  feature_flags_user_blast_radius: 'counts persons',
  feature_flags_reach: 'counts persons',
  query_create: 'reads events',
  mcp_tools_execute_sql: 'reads events',
  mcp_tools_read_taxonomy: 'reads names of events and properties',
  cohorts_recount: 'counts the members of a cohort, as the service does by itself',
}

const oneReplayed = {
  replay: async () => ({
    results: [{ rejectId: 'r', result: 'stored', reason: null, field: null, eventCount: 1, refusedCount: 0 } as const],
    ...{ next: null, remaining: 0 },
  }),
}

describe('the activity log', () => {
  it('has an entry for every request that changes something, with the key that sent the request', async t => {
    const api = await startManagement(t, { rejects: oneReplayed })
    const ada = aPerson()
    await api.commit({ persons: [created(ada)], mappings: [created(aMapping(ada, 'ada'))] })
    const other = await otherProject(api)
    const writing = api.routes.filter(({ method }) => method !== 'GET')
    const ids = [...new Set(writing.map(({ operation }) => operation.id))]
    const known = [samples, changesNothing, ofPeople].flatMap(Object.keys)
    assert.deepEqual(known.sort(), ids.toSorted())
    for (const [id, { entry, of, body, item }] of Object.entries(samples))
      await t.test(`${id}: ${entry}`, async () => {
        const sender = await api.addKey(['*'])
        const senderId: string = (await api.get('/api/personal_api_keys/@current/', sender)).id
        const inPath = (await of?.(api, senderId)) ?? 0
        const last = await newestId(api)

        const { method, path } = writing.find(({ operation }) => operation.id === id)!
        const projectId = id.startsWith('projects_') ? inPath : 1
        const values: Readonly<Record<string, Id>> = { projectId, version: 1 }
        const filled = path.replace(/:(\w+)/g, (_, name: string) => String(values[name] ?? inPath))
        const sent = typeof body === 'function' ? body(inPath) : body
        const ask = (address: string) => api.call(method, address, { key: sender, ...(sent && { body: sent }) })
        if (/^\/api\/projects\/1\/.*\/(\d|\w+-)/.test(filled)) {
          const elsewhere = await ask(`${filled.replace('/1/', `/${other}/`)}/`)
          assert.deepEqual([elsewhere.status, elsewhere.body.code], [404, 'not_found'], 'it is of one project only')
        }
        const reply = await ask(`${filled}/`)
        assert.ok(reply.status < 300, reply.text)

        const added = (await read(api, '?limit=1000')).filter(entry => Number(entry.id) > last)
        const itemId = item?.(reply.body) ?? (of === undefined ? reply.body.id : inPath)
        const shown = added.map(({ activity, scope, item_id }) => `${activity} ${scope} ${item_id}`)
        assert.ok(shown.includes(`${entry} ${itemId}`), `${itemId} not in: ${shown.join(', ')}`)
        for (const { user } of added) assert.deepEqual([user.uuid, user.first_name], [senderId, '*'])
      })
  })

  it('has an entry for every request that needs a write scope, except counts, and for no other request', async t => {
    const { routes } = await startManagement(t)
    const needWrite = routes.filter(({ scope, method }) => /:write|\*/.test(scope) && method !== 'GET')
    const ids = new Set(needWrite.map(({ operation }) => operation.id))
    const logged = new Set([...Object.keys(samples), 'cohorts_recount', 'users_sessions_destroy'])
    // Every key may delete itself.
    assert.deepEqual(ids.symmetricDifference(logged), new Set(['personal_api_keys_current_destroy']))
  })

  it('shows a key only what the key may read', async t => {
    const api = await startManagement(t)
    await flag()(api)
    await cohort()(api)
    await survey()(api)
    await groupType(api)
    await send(api, 'DELETE', `${project}groups_types/0/`)
    const seenWith = async (...scopes: readonly string[]) => {
      const key = await api.addKey(['activity_log:read', ...scopes])
      const body = await api.get(`${project}activity_log/`, key)
      return [...new Set<string>(body.results.map((entry: Entry) => entry.scope))].sort()
    }
    assert.deepEqual(await seenWith(), [])
    assert.deepEqual(await seenWith('feature_flag:read', 'cohort:write'), ['Cohort', 'FeatureFlag'])
    assert.deepEqual(await seenWith('group:read', 'project:read'), ['GroupType', 'Team'])
    assert.deepEqual(await seenWith('survey:read'), ['Survey'])
  })

  it('shows the whole instance only to a key with all scopes and all projects', async t => {
    const api = await startManagement(t)
    await personalKey(api)
    assert.ok((await read(api)).some(({ scope, project_id }) => scope === 'PersonalAPIKey' && project_id === null))
    const limited = await api.addKey(['*'], [1])
    const refused = await api.call('GET', instanceLog, { key: limited })
    assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
    const ofProject = await api.get(`${project}activity_log/`, limited)
    assert.deepEqual(fieldOf(ofProject.results, 'scope'), ['Team'])
    assert.equal((await api.call('GET', '/api/projects/2/activity_log/', { key: limited })).status, 403)
    const lesser = await api.addKey(['activity_log:read', 'feature_flag:read'])
    assert.equal((await api.call('GET', instanceLog, { key: lesser })).status, 403)
  })

  it('never shows keys or encrypted payloads of a flag', async t => {
    const api = await startManagement(t)
    const { value } = await send(api, 'POST', '/api/personal_api_keys/', { label: 'new', scopes: ['*'] })
    const { secret_api_token: secretKey } = await send(api, 'PATCH', `${project}rotate_secret_token/`)
    await send(api, 'PATCH', `${project}rotate_secret_token/`)
    const filters = (payload: string) => ({ groups: [{ rollout_percentage: 100 }], payloads: { true: payload } })
    const path = `${project}feature_flags/`
    // Its payload was readable before it was encrypted, and it changes afterwards.
    const { id } = await send(api, 'POST', path, { key: 'secret', filters: filters('"correct horse"') })
    const encrypted = { is_remote_configuration: true, has_encrypted_payloads: true }
    await send(api, 'PATCH', `${path}${id}/`, { ...encrypted, filters: filters('"battery staple"') })
    await send(api, 'PATCH', `${path}${id}/`, { filters: filters('"correct staple"') })
    await send(api, 'DELETE', `${path}${id}/`)
    const text = JSON.stringify(await read(api, '?limit=1000'))
    assert.match(text, /secret_api_token_backup/)
    assert.match(text, /has_encrypted_payloads/)
    const hashes = [value, secretKey].map(secret => createHash('sha256').update(secret).digest('hex'))
    for (const secret of [value, secretKey, ...hashes, 'correct', 'staple', 'enc:v1'])
      assert.ok(!text.includes(secret), `${secret} in ${text}`)
  })

  it('refuses an unknown scope in a filter, and suggests the one that was meant', async t => {
    const api = await startManagement(t)
    await api.refuses('GET', '/api/activity_log/', [
      'scopes=Survey,feature_flag',
      'scopes',
      'invalid_input',
      /^Unknown scope 'feature_flag'\. Did you mean FeatureFlag\?/,
    ])
  })

  it('lists for a new or deleted object only the fields that it has', async t => {
    const api = await startManagement(t)
    const survey = { name: 'Why', type: 'api', responses_limit: 5 }
    const { id } = await send(api, 'POST', `${project}surveys/`, survey)
    await send(api, 'DELETE', `${project}surveys/${id}/`)
    type Detailed = { readonly detail: { readonly changes: readonly Record<string, unknown>[] } }
    const [deleted, created] = (await read(api, '?scopes=Survey')) as unknown as [Detailed, Detailed]
    const shownIn = (entry: Detailed, side: 'before' | 'after') =>
      Object.fromEntries(entry.detail.changes.map(change => [change.path, change[side]]))
    const all = {
      ...survey,
      description: '',
      schedule: 'once',
      response_sampling_interval_type: 'week',
      archived: false,
    }
    assert.deepEqual(shownIn(created, 'after'), all)
    assert.deepEqual(shownIn(deleted, 'before'), all)
  })

  it('lists the same changes of a flag as the flag’s own activity', async t => {
    const api = await startManagement(t)
    const id = await renamedFlag(api)
    await send(api, 'PATCH', `${project}feature_flags/${id}/`, { active: false, tags: ['a'] })
    await send(api, 'DELETE', `${project}feature_flags/${id}/`)
    const ofFlag = await send(api, 'GET', `${project}feature_flags/${id}/activity/`)
    const logged = (await read(api, '?scopes=FeatureFlag')).map(
      ({ id: _id, project_id: _projectId, ...entry }) => entry,
    )
    assert.equal(logged.length, 4)
    assert.deepEqual(logged, ofFlag.results)
  })

  it('answers 503 if a replay cannot be recorded, and records no dry run of a replay', async t => {
    const recordActivity = () => Promise.reject(new PortError('management-store', 'unavailable'))
    const api = await startManagement(t, { rejects: oneReplayed, wrap: store => ({ ...store, recordActivity }) })
    const replay = (over: object) =>
      api.call('POST', `${project}rejected_events/replay/`, { body: { filter: {}, ...over } })
    const { status, body } = await replay({})
    assert.deepEqual([status, body.code], [503, 'state_unavailable'])
    assert.equal((await replay({ dry_run: true })).status, 200)
  })

  it('has no entry if a client sends an object back unchanged, and shows values as the API returns them', async t => {
    const api = await startManagement(t)
    const paths = ['/api/projects/1/']
    for (const [tag, make] of [
      ['surveys', survey()],
      ['experiments', experiment()],
      ['cohorts', cohort()],
      ['early_access_feature', feature],
    ] as const)
      paths.push(`${project}${tag}/${await make(api)}/`)
    const last = await newestId(api)
    for (const path of paths) {
      const before = await send(api, 'GET', path)
      await send(api, 'PATCH', path, before)
      assert.equal(await newestId(api), last, path)
    }
    await send(api, 'PATCH', '/api/projects/1/', { session_recording_opt_in: true, app_urls: null })
    const [newest] = await read(api, '?limit=1')
    assert.deepEqual(fieldsOf(newest!.detail.changes, 'path', 'action', 'before', 'after'), [
      ['session_recording_opt_in', 'changed', false, true],
    ])
  })

  it('has no entry for a replay that stored nothing', async t => {
    const refused = {
      rejectId: 'r',
      result: 'refused',
      reason: 'no',
      field: null,
      eventCount: 0,
      refusedCount: 0,
    } as const
    for (const results of [[], [refused]]) {
      const api = await startManagement(t, { rejects: { replay: async () => ({ results, next: null, remaining: 0 }) } })
      await send(api, 'POST', `${project}rejected_events/replay/`, { filter: {} })
      assert.deepEqual(await read(api, '?scopes=RejectedEvent'), [])
    }
  })

  it('is filtered by scopes, item and author', async t => {
    const api = await startManagement(t)
    const id = await flag()(api)
    await flag()(api)
    await cohort()(api)
    const key = await api.addKey(['*'])
    await api.patch(`${project}feature_flags/${id}/`, { name: 'Renamed' }, key)
    const user = (await api.get('/api/users/@me/', key)).id
    const shown = async (query: string) =>
      (await read(api, query)).map(({ activity, scope, item_id }) => `${activity} ${scope} ${item_id}`)
    assert.deepEqual(await shown(`?scopes=Cohort,Team`), ['created Cohort 1', 'created Team 1'])
    assert.deepEqual(await shown(`?scopes=FeatureFlag&item_id=${id}`), [
      `updated FeatureFlag ${id}`,
      `created FeatureFlag ${id}`,
    ])
    assert.deepEqual(await shown(`?user=${user}`), [`updated FeatureFlag ${id}`])
    assert.deepEqual(await shown('?user=7'), [])
    for (const query of ['?scopes=', '?item_id=', '?user=', '?user=ada', '?cursor=x'])
      assert.equal((await api.call('GET', `${instanceLog}${query}`)).status, 400, query)
  })

  it('is paged by `next` without repeating or omitting an entry, while changes arrive', async t => {
    const api = await startManagement(t)
    const flagIds: string[] = []
    for (let made = 0; made < 5; made++) flagIds.unshift(String(await flag()(api)))
    const seen: string[] = []
    for (let next: string | null = `${project}activity_log/?limit=2&scopes=FeatureFlag`; next !== null; ) {
      const page: { next: string | null; results: Entry[] } = await send(api, 'GET', next.replace(api.url, ''))
      assert.ok(page.results.length <= 2)
      seen.push(...page.results.map(entry => entry.item_id))
      next = page.next
      await flag()(api)
    }
    assert.deepEqual(seen, flagIds)
  })

  it('is searched until a page is full, but for no longer than a second', async t => {
    let searchMs = 0
    let calls = 0
    const api: ManagementApi = await startManagement(t, {
      wrap: store => ({
        ...store,
        listActivity: async query => {
          calls++
          api.clock.advance(searchMs)
          // As if the newest 50 ids had been looked at in vain, ten at a time.
          const belowId = query.belowId ?? 50
          return belowId > 10 ? { results: [], nextBelowId: belowId - 10 } : store.listActivity(query)
        },
      }),
    })
    const first = await api.get(instanceLog)
    assert.deepEqual([first.results.at(-1).scope, first.next, calls], ['PersonalAPIKey', null, 5])
    searchMs = 400
    const slow = await api.get(instanceLog)
    assert.deepEqual([slow.results, slow.next], [[], `${api.url}${instanceLog}?cursor=20`])
    const rest = await send(api, 'GET', slow.next.replace(api.url, ''))
    assert.deepEqual(rest, first)
  })
})

interface Entry {
  readonly id: string
  readonly user: { readonly uuid: string; readonly first_name: string }
  readonly activity: string
  readonly scope: string
  readonly item_id: string
  readonly project_id: number | null
  readonly detail: { readonly changes: readonly JsonChange[] }
}

/** The log of the instance, newest first. */
async function read(api: ManagementApi, query = ''): Promise<readonly Entry[]> {
  return (await send(api, 'GET', `${instanceLog}${query}`)).results
}

async function newestId(api: ManagementApi): Promise<number> {
  return Number((await read(api, '?limit=1'))[0]!.id)
}
