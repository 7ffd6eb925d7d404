import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startFront } from '../support/front.ts'
import { testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

// The surveys and early access features that pages list. Source: docs/wire/evaluation.md 7.4, 7.5, 5.7.

const api = '/api/projects/@current'
const pageOrigin = 'https://shop.example'
const everyone = { groups: [{ properties: [], rollout_percentage: 100 }] }
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any

const front = startedForTests(startFront)

async function ask(path: string, init: RequestInit = {}): Promise<{ status: number; headers: Headers; json: Json }> {
  const response = await fetch(front.url + path, { redirect: 'manual', ...init, headers: { origin: pageOrigin } })
  const text = await response.text()
  return { status: response.status, headers: response.headers, json: text === '' ? null : JSON.parse(text) }
}

async function flagsOf(personProperties: object, path = '/flags?v=2'): Promise<Json> {
  const response = await fetch(front.url + path, {
    method: 'POST',
    body: JSON.stringify({ token: testProjectKey, distinct_id: 'ada', person_properties: personProperties }),
  })
  return response.json()
}

describe('GET /api/early_access_features/', () => {
  const path = `/api/early_access_features/?token=${testProjectKey}`

  it('lists features by stage, betas by default, but never drafts or archived features', async () => {
    assert.deepEqual((await ask(path)).json, { earlyAccessFeatures: [] })
    const stages = ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived']
    for (const stage of stages) await front.api('POST', `${api}/early_access_feature/`, { name: `In ${stage}`, stage })
    const listed = async (query: string) =>
      (await ask(path + query)).json.earlyAccessFeatures.map((feature: Json) => feature.stage)
    assert.deepEqual(await listed(''), ['beta'])
    assert.deepEqual(await listed('&stage=alpha'), ['alpha'])
    assert.deepEqual(await listed('&stage=general-availability&stage=concept'), ['concept', 'general-availability'])
    assert.deepEqual(await listed('&stage=draft&stage=archived&stage=nonsense'), [])
  })

  it('returns the display fields and the flag, to pages of every origin, with and without the trailing slash', async () => {
    const payload = { colour: 'red' }
    const description = 'Finds more'
    const made = await front.api<Json>('POST', `${api}/early_access_feature/`, {
      ...{ name: 'Search', description, stage: 'alpha', payload },
      documentation_url: 'https://docs.example/search',
    })
    for (const spelling of [path, path.replace('/?', '?')]) {
      const answer = await ask(`${spelling}&stage=alpha`)
      assert.equal(answer.headers.get('access-control-allow-origin'), pageOrigin)
      assert.equal(answer.headers.get('content-type'), 'application/json')
      const [first, second] = answer.json.earlyAccessFeatures
      assert.deepEqual(second, {
        ...{ id: made.id, name: 'Search', description, stage: 'alpha', payload, flagKey: 'search' },
        documentationUrl: 'https://docs.example/search',
      })
      assert.deepEqual([first.description, first.documentationUrl, first.payload], ['', null, {}])
    }
    await front.api('DELETE', `${api}/feature_flags/search/`)
    assert.equal((await ask(`${path}&stage=alpha`)).json.earlyAccessFeatures[1].flagKey, null)
  })

  it('lets a visitor’s choice decide the flag, with a payload for each choice', async () => {
    const { feature_flag } = await front.api<Json>('POST', `${api}/early_access_feature/`, {
      name: 'Try',
      stage: 'beta',
    })
    const filters = { ...feature_flag.filters, payloads: { true: '"hello"' } }
    await front.api('PATCH', `${api}/feature_flags/try/`, { filters })
    const detailFor = async (value?: string) =>
      (await flagsOf(value === undefined ? {} : { '$feature_enrollment/try': value })).flags.try
    assert.equal((await detailFor()).enabled, false)
    for (const [choice, enabled] of [
      ['true', true],
      ['false', false],
    ] as const) {
      const detail = await detailFor(choice)
      assert.equal(detail.enabled, enabled)
      assert.deepEqual([detail.reason.code, detail.reason.condition_index], ['super_condition_value', 0])
      assert.equal(detail.metadata.payload, '"hello"')
    }
  })
})

describe('GET /api/surveys/', () => {
  const path = `/api/surveys/?token=${testProjectKey}`
  const questions = [{ id: 'q1', type: 'open', question: 'How is it?' }]

  it('returns an empty list if the project has no surveys', async () => {
    for (const spelling of [path, path.replace('/?', '?')]) {
      const answer = await ask(spelling)
      assert.deepEqual(answer.json, { surveys: [], survey_config: null })
      assert.equal(answer.headers.get('access-control-allow-origin'), pageOrigin)
    }
  })

  it('returns the fields that a browser needs to decide which survey to show', async () => {
    const linked = await front.api<Json>('POST', `${api}/feature_flags/`, { key: 'linked', filters: everyone })
    const survey = await front.api<Json>('POST', `${api}/surveys/`, {
      ...{ name: 'Feedback', type: 'popover', questions, description: 'How we do' },
      ...{ conditions: { url: '/pay' }, appearance: { position: 'left' }, linked_flag_id: linked.id },
      ...{ start_date: '2026-04-30T10:00:00Z', targeting_flag_filters: everyone, enable_partial_responses: true },
    })
    await front.api('PATCH', `${api}/`, { survey_config: { appearance: { whiteLabel: true } } })
    const { json } = await ask(path)
    const [targeting, internal] = [survey.targeting_flag.key, survey.internal_targeting_flag.key]
    assert.deepEqual(json, {
      surveys: [
        {
          ...{ id: survey.id, name: 'Feedback', description: 'How we do', type: 'popover', questions },
          linked_flag_key: 'linked',
          targeting_flag_key: targeting,
          internal_targeting_flag_key: internal,
          feature_flag_keys: [
            { key: 'linked_flag_key', value: 'linked' },
            { key: 'targeting_flag_key', value: targeting },
            { key: 'internal_targeting_flag_key', value: internal },
          ],
          ...{ conditions: { url: '/pay' }, appearance: { position: 'left' }, translations: null },
          ...{ start_date: '2026-04-30T10:00:00.000Z', end_date: null, schedule: 'once' },
          ...{ current_iteration: null, current_iteration_start_date: null, enable_partial_responses: true },
        },
      ],
      survey_config: { appearance: { whiteLabel: true } },
    })
    const { flags } = await flagsOf({})
    assert.deepEqual([flags[targeting].enabled, flags[internal].enabled], [true, true])
    const answered = await flagsOf({ [`$survey_responded/${survey.id}`]: true })
    assert.equal(answered.flags[internal].enabled, false, 'whoever has answered is not asked again')
    const only = await flagsOf({}, '/flags?v=2&only_evaluate_survey_feature_flags=true')
    assert.deepEqual(Object.keys(only.flags).toSorted(), [targeting, internal].toSorted())

    await front.api('DELETE', `${api}/feature_flags/linked/`)
    assert.deepEqual((await ask(path)).json.surveys, [], 'without its flag it would be shown to everyone')
    await front.api('PATCH', `${api}/surveys/${survey.id}/`, { linked_flag_id: null })
    assert.equal((await ask(path)).json.surveys[0].linked_flag_key, null)
    await front.api('PATCH', `${api}/surveys/${survey.id}/`, { archived: true })
    assert.deepEqual((await ask(path)).json.surveys, [])
  })
})

describe('lists that pages request', () => {
  for (const path of ['/api/early_access_features', '/api/surveys/', '/api/web_experiments', '/api/product_tours/']) {
    it(`are refused at ${path} without a key or with an unknown key, in a format that pages can read`, async () => {
      for (const [query, code] of [
        ['', 'missing_api_key'],
        ['?token=', 'missing_api_key'],
        ['?token=phc_nobody', 'invalid_api_key'],
      ] as const) {
        const answer = await ask(path + query)
        assert.deepEqual([answer.status, answer.json.type, answer.json.code], [401, 'authentication_error', code])
        assert.equal(answer.headers.get('access-control-allow-origin'), pageOrigin)
      }
      assert.equal((await ask(`${path}?api_key=${testProjectKey}`)).status, 200)
      assert.equal((await ask(`${path}?token=${testProjectKey}`, { method: 'POST' })).status, 405)
      const preflight = await ask(path, { method: 'OPTIONS' })
      assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [200, pageOrigin])
    })
  }

  it('are empty for kinds that Pennon does not have', async () => {
    for (const [name, list] of [
      ['web_experiments', 'experiments'],
      ['product_tours', 'product_tours'],
    ] as const) {
      const { status, json } = await ask(`/api/${name}/?token=${testProjectKey}`)
      assert.deepEqual([status, json], [200, { [list]: [] }])
    }
  })
})
