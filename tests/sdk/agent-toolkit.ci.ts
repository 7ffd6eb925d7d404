// PostHog's published tools for agents (MCP), unmodified, against a running instance. Each tool checks the shape of
// every answer with its own schema.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { npmFolderWith } from '../support/npm-environment.ts'
import { type Pennon, startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of a hundred shapes
type Json = any
interface Tool {
  readonly name: string
  handler(context: object, params: object): Promise<{ content: readonly { readonly text: string }[] }>
}

let pennon: Pennon
let toolkitPath: string

before(async () => {
  const folder = npmFolderWith('@posthog/agent-toolkit@0.2.4')
  toolkitPath = pathToFileURL(
    createRequire(join(folder, 'x')).resolve('@posthog/agent-toolkit').replace(/\.js$/, '.mjs'),
  ).href
  pennon = await startPennon()
  await pennon.post('/batch/', {
    api_key: testProjectKey,
    batch: [
      { event: 'order placed', distinct_id: 'ada', properties: { price: 1499, gift: true, $set: { plan: 'pro' } } },
      { event: 'signed up', distinct_id: 'bob', properties: { at: '2026-05-01T10:00:00Z' } },
    ],
  })
  await pennon.caughtUp()
})
after(async () => pennon?.stop())

/** Calls tools by name, with what the key may; JSON comes back. */
async function openTools(key = testPersonalKey) {
  const { PostHogAgentToolkit, getToolsFromContext } = (await import(toolkitPath)) as Json
  const context = new PostHogAgentToolkit({ posthogApiToken: key, posthogApiBaseUrl: pennon.url }).getContext()
  const tools: readonly Tool[] = await getToolsFromContext(context)
  return {
    names: tools.map(({ name }) => name),
    call: async (name: string, params: object = {}): Promise<Json> => {
      const tool = tools.find(known => known.name === name)
      assert.ok(tool, `no tool ${name}`)
      const { content } = await tool.handler(context, params)
      return JSON.parse(content[0]!.text)
    },
  }
}

describe('@posthog/agent-toolkit 0.2.4', () => {
  it('finds organizations and projects', async () => {
    const { call } = await openTools()
    const [organization] = await call('organizations-get')
    assert.equal(organization.name, 'Pennon')
    assert.equal((await call('organization-details-get')).id, organization.id)
    const [project] = await call('projects-get')
    assert.deepEqual([project.id, project.organization], [1, organization.id])
  })

  it('lists events and properties', async () => {
    const { call } = await openTools()
    const events = await call('event-definitions-list', {})
    assert.deepEqual(
      events.map(({ name }: Json) => name),
      ['order placed', 'signed up'],
    )
    assert.equal((await call('event-definitions-list', { q: 'sign' })).length, 1)
    const properties = await call('properties-list', { type: 'event', eventName: 'order placed' })
    assert.deepEqual(properties, [
      { name: 'gift', property_type: 'Boolean' },
      { name: 'price', property_type: 'Numeric' },
    ])
    assert.deepEqual(await call('properties-list', { type: 'person' }), [{ name: 'plan', property_type: 'String' }])
  })

  it('creates, reads, changes and deletes a flag and an experiment', async () => {
    const { call } = await openTools()
    const groups = [{ properties: [], rollout_percentage: 50 }]
    const created = await call('create-feature-flag', {
      ...{ key: 'beta', name: 'Beta', description: 'Beta', active: true, filters: { groups } },
    })
    assert.equal(created.key, 'beta')
    assert.ok((await call('feature-flag-get-all')).some(({ key }: Json) => key === 'beta'))
    const off = await call('update-feature-flag', { flagKey: 'beta', data: { active: false } })
    assert.equal(off.active, false)
    assert.equal((await call('feature-flag-get-definition', { flagKey: 'beta' })).key, 'beta')
    await call('delete-feature-flag', { flagKey: 'beta' })
    const experiment = await call('experiment-create', {
      ...{ name: 'Button', feature_flag_key: 'button', type: 'product', draft: true },
      ...{ primary_metrics: [], secondary_metrics: [], variants: [], minimum_detectable_effect: 30 },
    })
    const { id } = experiment
    assert.ok((await call('experiment-get-all')).some((one: Json) => one.id === id))
    assert.equal((await call('experiment-get', { experimentId: id })).feature_flag_key, 'button')
    const launched = await call('experiment-update', { experimentId: id, data: { launch: true } })
    assert.match(launched.start_date, /^\d{4}-/)
    await call('experiment-delete', { experimentId: id })
  })

  it('creates a survey, reads its statistics, and archives it', async () => {
    const { call } = await openTools()
    const created = await call('survey-create', {
      ...{ name: 'Why', description: '', type: 'popover', start_date: '2026-05-01T00:00:00Z' },
      questions: [{ type: 'open', question: 'What is missing?' }],
      targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
    })
    const { id } = created
    assert.equal((await call('survey-get', { surveyId: id })).created_by.email, '')
    assert.deepEqual(
      (await call('surveys-get-all', { search: 'wh' })).results.map((one: Json) => one.id),
      [id],
    )
    const seen = ['shown', 'shown', 'sent'].map((what, index) => ({
      ...{ event: `survey ${what}`, distinct_id: index === 1 ? 'bob' : 'ada', properties: { $survey_id: id } },
    }))
    await pennon.post('/batch/', { api_key: testProjectKey, batch: seen })
    await pennon.caughtUp()
    const one = await call('survey-stats', { survey_id: id })
    assert.deepEqual([one.survey_id, one.start_date], [id, '2026-05-01T00:00:00.000Z'])
    assert.deepEqual(
      [one.stats['survey shown'].total_count, one.stats['survey sent'].unique_persons, one.rates.response_rate],
      [2, 1, 50],
    )
    assert.deepEqual((await call('surveys-global-stats', {})).stats, one.stats)
    const changed = await call('survey-update', { surveyId: id, schedule: 'always', name: 'Why not' })
    assert.deepEqual([changed.name, changed.schedule], ['Why not', 'always'])
    assert.equal((await call('survey-delete', { surveyId: id })).success, true)
    assert.equal((await call('survey-get', { surveyId: id })).archived, true)
  })

  it('offers only the tools that the scopes of a key allow, and these tools work', async () => {
    const { value } = await pennon.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      ...{ label: 'reader', scopes: ['survey:read', 'event_definition:read', 'project:read', 'user:read'] },
    })
    const { names, call } = await openTools(value)
    assert.ok(names.includes('surveys-get-all') && names.includes('event-definitions-list'), names.join())
    assert.ok(!names.includes('survey-create') && !names.includes('properties-list'), names.join())
    await call('surveys-get-all', {})
    await call('event-definitions-list', {})
  })
})
