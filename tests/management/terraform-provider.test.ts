// The requests of PostHog's Terraform provider, and the answers that it compares with them. The provider itself is not
// available from a registry. Source: observed, terraform-provider-posthog.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { keptSettings } from '#core/client-settings.ts'
import { createRawNumber } from '#core/json.ts'
import { postHogProjectFields } from '#wire/management/posthog-fields.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'

describe('an organization', () => {
  it('is found by its slug in a list with one entry', async t => {
    const api = await startManagement(t)
    const body = await api.get('/api/organizations/')
    assert.deepEqual([body.count, body.next, body.previous], [1, null, null])
    const found = body.results.find(({ slug }: { slug: string }) => slug === 'pennon')
    assert.deepEqual(found, await api.get('/api/organizations/@current/'))
    assert.equal((await api.get(`/api/organizations/${found.id}/projects/`)).count, 1)
    assert.deepEqual((await api.get('/api/organizations/?offset=1')).results, [])
    await api.post('/api/projects/', { name: 'Second' })
    const limited = await api.addKey(['organization:read'], [2])
    const [seen] = (await api.get('/api/organizations/', limited)).results
    assert.deepEqual(fieldOf(seen.projects, 'id'), [2])
  })
})

describe('project settings that the Terraform provider sends', () => {
  const path = '/api/environments/1/'
  const sent = {
    ...{ app_urls: ['https://b.example', 'https://a.example'], is_demo: true },
    ...{ test_account_filters: [{ key: 'id', type: 'cohort', value: 1, operator: 'in' }], week_start_day: 1 },
    ...{ test_account_filters_default_checked: false, path_cleaning_filters: [{ regex: '/\\d+', alias: '/:id' }] },
    ...{ data_attributes: ['data-test'], person_display_name_properties: ['email'], base_currency: 'EUR' },
    ...{ live_events_columns: ['event'], correlation_config: { a: 1 }, logs_settings: { b: 2 } },
    ...{ autocapture_exceptions_errors_to_ignore: ['ResizeObserver'], extra_settings: {}, inject_web_apps: false },
    ...{ session_recording_trigger_groups: { version: 2 }, human_friendly_comparison_periods: true },
    ...{ completed_snippet_onboarding: true, has_completed_onboarding_for: { x: true }, onboarding_tasks: {} },
    ...{ feature_flag_confirmation_enabled: true, feature_flag_confirmation_message: 'Sure?' },
    ...{ business_model: 'b2b', product_description: 'Shoes' },
  }

  it('are stored and returned unchanged, and null restores the default', async t => {
    const api = await startManagement(t)
    assert.deepEqual(Object.keys(sent).sort(), Object.keys(keptSettings).sort())
    const before = await api.get(path)
    assert.deepEqual([before.app_urls, before.week_start_day], [[], null])
    const patched = await api.patch(path, sent)
    assert.deepEqual(patched, { ...before, ...sent })
    assert.deepEqual(await api.get(path), patched)
    const zero = { app_urls: [], heatmaps_opt_in: false }
    assert.deepEqual(await api.patch(path, zero), { ...patched, ...zero })
    const unset = Object.fromEntries(Object.keys(sent).map(name => [name, null]))
    assert.deepEqual(await api.patch(path, unset), { ...before, heatmaps_opt_in: false })
    const created = await api.post('/api/projects/', { name: 'New', app_urls: ['https://new.example'] })
    assert.deepEqual(created.app_urls, ['https://new.example'])
  })

  it('cause 400 if they cannot be stored, and then nothing of the request is written', async t => {
    const api = await startManagement(t)
    const before = await api.get(path)
    const refused: [body: object, attr: string][] = [
      [{ cookieless_server_hash_mode: 3 }, 'cookieless_server_hash_mode'],
      [{ cookieless_server_hash_mode: 'on' }, 'cookieless_server_hash_mode'],
      [{ app_urls: 'https://a.example' }, 'app_urls'],
      [{ app_url: ['https://a.example'] }, 'app_url'],
      // For a validator, a number with a kept literal is an object.
      [{ correlation_config: createRawNumber('1.0') }, 'correlation_config'],
      [{ test_account_filters: [createRawNumber('1.0')] }, 'test_account_filters.0'],
      [{ extra_settings: { a: 'x'.repeat(16_384) } }, 'extra_settings'],
      ...postHogProjectFields.onlyOff.map((name): [object, string] => [{ [name]: { on: true } }, name]),
    ]
    for (const [body, attr] of refused) await api.refuses('PATCH', path, [{ ...body, name: 'Renamed' }, attr])
    const off = { session_recording_retention_period: null, conversations_enabled: false, modifiers: {} }
    await api.patch(path, off)
    assert.deepEqual(await api.get(path), before)
  })
})

describe('a survey', () => {
  const path = '/api/projects/1/surveys/'
  /** Null when Terraform's configuration does not set it. */
  const plain = {
    ...{ name: 'Why', type: 'popover', questions: [{ type: 'open', question: 'Why?' }], linked_flag_id: null },
    ...{ linked_insight_id: null, responses_limit: null, iteration_count: null, iteration_frequency_days: null },
    ...{ response_sampling_interval: null, response_sampling_limit: null },
  }

  it('has PostHog’s default schedule unless another one is sent', async t => {
    const api = await startManagement(t)
    const body = await api.post(path, plain)
    assert.deepEqual([body.schedule, body.response_sampling_interval_type], ['once', 'week'])
    const recurring = {
      ...{ schedule: 'recurring', iteration_count: 2, iteration_frequency_days: 7, enable_partial_responses: true },
      ...{ response_sampling_start_date: '2026-04-22T00:00:00Z', response_sampling_interval_type: 'day' },
      ...{ response_sampling_interval: 2, response_sampling_limit: 20, enable_iframe_embedding: true },
      ...{ response_sampling_daily_limits: { monday: 5 }, form_content: { submitButtonText: 'Send' } },
    }
    const put = await api.call('PUT', `${path}${body.id}/`, { body: { ...plain, ...recurring } })
    assert.equal(put.status, 200, put.text)
    for (const [name, value] of Object.entries(recurring)) assert.deepEqual(put.body[name], value, name)
    assert.deepEqual(await api.get(`${path}${body.id}/`), put.body)
    const { name: _name, ...nameless } = plain
    await api.refuses('PUT', `${path}${body.id}/`, [nameless, 'name'])
    assert.equal((await api.call('PUT', `${path}00000000-0000-4000-8000-000000000099/`, { body: plain })).status, 404)
  })

  it('keeps its targeting flag if the request contains that flag’s id, and rejects the id of another flag', async t => {
    const api = await startManagement(t)
    const filters = { groups: [{ properties: [], rollout_percentage: 50 }] }
    const body = await api.post(path, { ...plain, targeting_flag_filters: filters })
    const own = body.targeting_flag.id
    const put = await api.call('PUT', `${path}${body.id}/`, { body: { ...plain, targeting_flag_id: own } })
    assert.deepEqual([put.status, put.body.targeting_flag.id], [200, own])
    const flag = await api.post('/api/projects/1/feature_flags/', { key: 'other' })
    await api.refuses(
      'PATCH',
      `${path}${body.id}/`,
      [{ targeting_flag_id: flag.id }, 'targeting_flag_id'],
      [{ linked_insight_id: 1 }, 'linked_insight_id'],
    )
    const gone = await api.call('PUT', `${path}${body.id}/`, { body: { ...plain, remove_targeting_flag: true } })
    assert.deepEqual([gone.status, gone.body.targeting_flag], [200, null])
  })
})
