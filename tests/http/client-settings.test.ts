import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { runInNewContext } from 'node:vm'
import { fieldOf } from '../support/fields-of.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'

// How a project's settings appear to its clients. Source: docs/wire/evaluation.md 2.2, 2.5, 7.1, 7.6.

const project = '/api/projects/@current/'
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any

let front: RunningFront
let unset: Json

before(async () => {
  front = await startFront()
  unset = await front.api<Json>('GET', project)
})
after(() => front.close())
afterEach(async () => {
  const { id, uuid, organization, api_token, created_at, ...settings } = unset
  await front.api('PATCH', project, settings)
})

async function json(path: string, init: RequestInit = {}): Promise<Json> {
  const response = await fetch(front.url + path, init)
  assert.equal(response.status, 200)
  return response.json()
}

const remoteConfig = (headers: Record<string, string> = {}) => json(`/array/${testProjectKey}/config`, { headers })
const evaluate = (path: string, headers: Record<string, string> = {}) =>
  json(path, { method: 'POST', headers, body: JSON.stringify({ token: testProjectKey, distinct_id: 'ada' }) })

describe('client settings', () => {
  it('are unset in a new project, and returned as they were set', async () => {
    assert.deepEqual(
      [unset.heatmaps_opt_in, unset.session_recording_opt_in, unset.recording_domains, unset.survey_config],
      [null, false, null, null],
    )
    const sent = { heatmaps_opt_in: true, session_recording_sample_rate: '0.5', survey_config: { appearance: {} } }
    const set = await front.api<Json>('PATCH', project, sent)
    assert.deepEqual({ ...unset, ...sent, session_recording_sample_rate: '0.50' }, set)
    const next = await front.api<Json>('PATCH', project, { heatmaps_opt_in: null, name: unset.name })
    assert.deepEqual([next.heatmaps_opt_in, next.survey_config], [null, { appearance: {} }], 'others stay')
  })

  it('are rejected if clients would be unable to read them', async () => {
    const patch = async (body: string) => {
      const response = await fetch(front.url + project, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${testPersonalKey}` },
        body,
      })
      return { status: response.status, ...((await response.json()) as Json) }
    }
    for (const [body, attr] of [
      ['{"heatmaps_opt_in":"yes"}', 'heatmaps_opt_in'],
      ['{"survey_config":[]}', 'survey_config'],
      ['{"session_recording_sample_rate":1.01}', 'session_recording_sample_rate'],
      ['{"session_recording_sample_rate":"half"}', 'session_recording_sample_rate'],
      ['{"session_recording_minimum_duration_milliseconds":30001}', 'session_recording_minimum_duration_milliseconds'],
      ['{"session_recording_linked_flag":{"id":1}}', 'session_recording_linked_flag'],
      ['{"session_recording_trigger_match_type_config":"some"}', 'session_recording_trigger_match_type_config'],
      ['{"recording_domains":["https://ok.example","https://"]}', 'recording_domains'],
      ['{"heatmap_opt_in":true}', 'heatmap_opt_in'],
    ] as const) {
      const refused = await patch(body)
      assert.deepEqual([refused.status, refused.attr], [400, attr], JSON.stringify(refused))
    }
    assert.equal((await patch('{"session_recording_sample_rate":0.50}')).session_recording_sample_rate, '0.50')
  })

  it('are not sent to clients if they are for PostHog’s web app', async () => {
    await front.api('PATCH', project, { app_urls: ['https://hidden.example'], extra_settings: { hidden: true } })
    const answers = [await remoteConfig(), await evaluate('/flags?v=2&config=true'), await evaluate('/decide?v=3')]
    for (const answer of answers) assert.doesNotMatch(JSON.stringify(answer), /hidden/)
  })

  it('reach remote config, /flags and /decide', async () => {
    await front.api('PATCH', project, {
      ...{ autocapture_opt_out: true, autocapture_exceptions_opt_in: true, heatmaps_opt_in: true },
      ...{ capture_dead_clicks: true, capture_performance_opt_in: true, autocapture_web_vitals_opt_in: true },
      ...{ autocapture_web_vitals_allowed_metrics: ['LCP', 'CLS'], flags_persistence_default: true },
    })
    const expected = {
      autocapture_opt_out: true,
      autocaptureExceptions: true,
      errorTracking: { autocaptureExceptions: true, suppressionRules: [] },
      heatmaps: true,
      captureDeadClicks: true,
      capturePerformance: { network_timing: true, web_vitals: true, web_vitals_allowed_metrics: ['LCP', 'CLS'] },
      sessionRecording: false,
    }
    for (const answer of [
      await remoteConfig(),
      await evaluate('/flags?v=2&config=true'),
      await evaluate('/decide?v=3'),
    ]) {
      assert.deepEqual({ ...answer, ...expected }, answer)
      assert.equal('survey_config' in answer, false)
    }
    assert.equal((await evaluate('/decide?v=3')).flagsPersistenceDefault, true)
    assert.equal('flagsPersistenceDefault' in (await evaluate('/flags?v=2&config=true')), false)
    assert.equal('heatmaps' in (await evaluate('/flags?v=2')), false, 'not without config')
  })

  it('invalidate a configuration that a page has cached', async () => {
    const path = `${front.url}/array/${testProjectKey}/config`
    const etag = (await fetch(path)).headers.get('etag')!
    await front.api('PATCH', project, { heatmaps_opt_in: true })
    assert.equal((await fetch(path, { headers: { 'if-none-match': etag } })).status, 200)
    await front.api('PATCH', project, { heatmaps_opt_in: false })
    assert.equal((await fetch(path, { headers: { 'if-none-match': etag } })).status, 304)
  })
})

describe('session recording in the configuration', () => {
  const on = { session_recording_opt_in: true }

  it('has all its settings when it is on', async () => {
    await front.api('PATCH', project, on)
    assert.deepEqual((await remoteConfig()).sessionRecording, {
      ...{ endpoint: '/s/', consoleLogRecordingEnabled: false, recorderVersion: 'v2', sampleRate: null },
      ...{ minimumDurationMilliseconds: null, linkedFlag: null, networkPayloadCapture: null, masking: null },
      ...{ urlTriggers: [], urlBlocklist: [], eventTriggers: [], triggerMatchType: null, scriptConfig: null },
    })
    const trigger = { url: '^/pay', matching: 'regex' }
    await front.api('PATCH', project, {
      ...{ capture_console_log_opt_in: true, session_recording_sample_rate: '0.25' },
      ...{
        session_recording_minimum_duration_milliseconds: 2000,
        session_recording_masking_config: { maskAllInputs: true },
      },
      ...{ session_recording_linked_flag: { id: 7, key: 'replay' }, session_replay_config: { record_canvas: true } },
      ...{ session_recording_url_trigger_config: [trigger], session_recording_event_trigger_config: ['paid'] },
      ...{ session_recording_trigger_match_type_config: 'any' },
      session_recording_network_payload_capture_config: { recordBody: true },
    })
    const expected = {
      ...{ endpoint: '/s/', consoleLogRecordingEnabled: true, recorderVersion: 'v2', sampleRate: '0.25' },
      ...{ minimumDurationMilliseconds: 2000, linkedFlag: 'replay', networkPayloadCapture: { recordBody: true } },
      ...{ masking: { maskAllInputs: true }, urlTriggers: [trigger], urlBlocklist: [], eventTriggers: ['paid'] },
      ...{ triggerMatchType: 'any', scriptConfig: null, recordCanvas: true, canvasFps: 3, canvasQuality: '0.4' },
    }
    assert.deepEqual((await remoteConfig()).sessionRecording, expected)
    assert.deepEqual((await evaluate('/decide?v=3')).sessionRecording, expected)
    await front.api('PATCH', project, {
      session_recording_sample_rate: 1,
      session_recording_linked_flag: { key: 'replay', variant: 'test' },
    })
    const { sampleRate, linkedFlag } = (await remoteConfig()).sessionRecording
    assert.deepEqual([sampleRate, linkedFlag], [null, { flag: 'replay', variant: 'test' }])
    await front.api('PATCH', project, { session_recording_sample_rate: 0 })
    assert.equal((await remoteConfig()).sessionRecording.sampleRate, '0.00', 'none is not all')
  })

  it('is false on pages of domains that the project does not record, and these domains are not disclosed', async () => {
    await front.api('PATCH', project, { ...on, recording_domains: ['https://shop.example', 'https://*.shop.example'] })
    const config = `/array/${testProjectKey}`
    for (const [headers, isRecorded] of [
      [{ origin: 'https://shop.example' }, true],
      [{ referer: 'http://www.shop.example:8080/basket' }, true],
      [{ origin: 'https://other.example' }, false],
      [{}, false],
    ] as const) {
      const scripts = await Promise.all(
        [`${config}/config.js`, `${config}/array.js`].map(path => fetch(front.url + path, { headers })),
      )
      const [script, bundle] = await Promise.all(scripts.map(response => response.text()))
      const set = (source: string) => {
        const window: Json = {}
        runInNewContext(source.slice(0, source.indexOf('\n')), { window })
        return JSON.parse(JSON.stringify(window._POSTHOG_REMOTE_CONFIG[testProjectKey].config))
      }
      for (const answer of [
        await remoteConfig(headers),
        set(script!),
        set(bundle!),
        await evaluate('/flags?v=2&config=true', headers),
        await evaluate('/decide?v=3', headers),
      ]) {
        assert.equal(answer.sessionRecording !== false, isRecorded, JSON.stringify(headers))
        assert.equal(JSON.stringify(answer).includes('shop.example'), false)
      }
    }
    const tags = await Promise.all(
      ['https://shop.example', 'https://other.example'].map(async origin => {
        const response = await fetch(`${front.url}${config}/config`, { headers: { origin } })
        assert.match(response.headers.get('vary') ?? '', /Origin, Referer/)
        return response.headers.get('etag')
      }),
    )
    assert.notEqual(tags[0], tags[1])
  })

  it('is false and listed as limited when its quota is used up', async () => {
    await front.api('PATCH', project, { ...on, quotas: { recordings: 0 } })
    for (const answer of [await remoteConfig(), await evaluate('/flags?v=2&config=true')]) {
      assert.deepEqual([answer.sessionRecording, answer.quotaLimited], [false, ['recordings']])
    }
    await front.api('PATCH', project, { quotas: { feature_flag_requests: 0 } })
    assert.deepEqual((await evaluate('/decide?v=3')).quotaLimited, ['feature_flags', 'recordings'])
    assert.deepEqual((await evaluate('/flags?v=2')).quotaLimited, ['feature_flags'])
  })
})

describe('surveys in the configuration', () => {
  it('are the running surveys, or false if none runs or the project has surveys off', async () => {
    const surveys = '/api/projects/@current/surveys/'
    const running = {
      name: 'Runs',
      type: 'popover',
      questions: [{ type: 'open', question: 'Why?' }],
      start_date: '2026-01-01',
    }
    const { id } = await front.api<Json>('POST', surveys, running)
    await front.api('POST', surveys, { ...running, name: 'Draft', start_date: null })
    await front.api('POST', surveys, { ...running, name: 'Ended', end_date: '2026-02-01' })
    for (const answer of [await remoteConfig(), await evaluate('/decide?v=3')]) {
      assert.deepEqual(fieldOf(answer.surveys, 'name'), ['Runs'])
    }
    await front.api('PATCH', project, { surveys_opt_in: false, survey_config: { appearance: { whiteLabel: true } } })
    const off = await remoteConfig()
    assert.deepEqual([off.surveys, off.survey_config], [false, { appearance: { whiteLabel: true } }])
    await front.api('PATCH', project, { surveys_opt_in: true })
    assert.equal((await remoteConfig()).surveys.length, 1)
    await front.api('PATCH', `${surveys}${id}/`, { end_date: '2026-03-01' })
    assert.equal((await remoteConfig()).surveys, false)
  })
})

describe('minimal flag-called events', () => {
  it('are requested in V2 answers and in definitions only if the project turned them on', async () => {
    const definitions = () =>
      json(`/flags/definitions?token=${testProjectKey}`, { headers: { authorization: `Bearer ${testPersonalKey}` } })
    const v2 = ['/flags?v=2', '/flags', '/decide?v=4']
    for (const path of v2) assert.equal('minimalFlagCalledEvents' in (await evaluate(path)), false)
    assert.notEqual((await definitions()).minimal_flag_called_events, true)
    await front.api('PATCH', project, { minimal_flag_called_events: true })
    for (const path of v2) assert.equal((await evaluate(path)).minimalFlagCalledEvents, true, path)
    for (const path of ['/flags?v=1', '/decide?v=3', '/decide'])
      assert.equal('minimalFlagCalledEvents' in (await evaluate(path)), false, path)
    assert.equal((await definitions()).minimal_flag_called_events, true)
  })
})

describe('definitions for local evaluation', () => {
  it('leave out the flags that belong to surveys', async () => {
    await front.api('POST', '/api/projects/@current/feature_flags/', { key: 'plain' })
    await front.api('POST', '/api/projects/@current/surveys/', {
      ...{ name: 'Asks', type: 'popover', questions: [{ type: 'open', question: 'Why?' }], start_date: '2026-01-01' },
      targeting_flag_filters: { groups: [{ properties: [], rollout_percentage: 10 }] },
    })
    const { flags } = await json(`/flags/definitions?token=${testProjectKey}`, {
      headers: { authorization: `Bearer ${testPersonalKey}` },
    })
    assert.deepEqual(fieldOf(flags, 'key'), ['plain'])
  })
})
