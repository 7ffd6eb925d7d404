import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noQuotas } from '../project.ts'
import { eventResourceOf, quotaOf, quotaResourceOf } from './quota-resource.ts'

const no = () => false
const yes = () => true

test('exceptions, AI events and survey responses have separate quotas, and every other event counts as an event', () => {
  assert.equal(quotaResourceOf('$exception', no), 'exceptions')
  assert.equal(quotaResourceOf('$ai_generation', no), 'llm_events')
  assert.equal(quotaResourceOf('$ai_anything_new', no), 'llm_events')
  for (const name of ['survey sent', 'survey shown', 'survey dismissed'])
    assert.equal(quotaResourceOf(name, no), 'survey_responses')
  for (const name of ['$pageview', '$exceptions', '$exception ', '$ai', 'ai_generation', 'Survey sent', 'survey', ''])
    assert.equal(quotaResourceOf(name, no), 'events', name)
})

test('survey responses within a product tour count as ordinary events', () => {
  assert.equal(quotaResourceOf('survey sent', yes), 'events')
  assert.equal(quotaResourceOf('$exception', yes), 'exceptions')
})

test('a product tour is recognized in the text of the properties, which may be long and is not parsed', t => {
  const parses = t.mock.method(JSON, 'parse').mock
  assert.equal(eventResourceOf('survey sent', '{"pr\\u00e9nom":"Zo\\u00e9","$product_tour\\u005fid":null}'), 'events')
  assert.equal(eventResourceOf('survey sent', '{"pr\\u00e9nom":"$product_tour_id"}'), 'survey_responses')
  assert.ok(
    parses.calls.every(call => String(call.arguments[0]).length < 30),
    'only keys with escapes',
  )
})

test('a quota is listed under the name of its resource', () => {
  assert.equal(quotaOf({ ...noQuotas, llmEvents: 7 }, 'llm_events'), 7)
  assert.equal(quotaOf({ ...noQuotas, surveyResponses: 0 }, 'survey_responses'), 0)
  assert.equal(quotaOf({ ...noQuotas, surveyResponses: 0 }, 'recordings'), null)
})
