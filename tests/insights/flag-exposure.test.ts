// Exposure over HTTP, on the real engine: what a caller sends and gets.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { type ACall, startFlagServer } from './flag-calls-server.ts'

const events = eventStoreForTests()
const at = (text: string) => Date.parse(text)
const range = '?date_from=2026-03-28&date_to=2026-03-30'
const personId = (index: number) => `0192a4b0-0000-7000-8000-${String(index).padStart(12, '0')}`

const halves = {
  filters: {
    groups: [{ properties: [], rollout_percentage: 100 }],
    multivariate: {
      variants: [
        { key: 'control', rollout_percentage: 50 },
        { key: 'test', rollout_percentage: 50 },
      ],
    },
  },
}
const seen = (person: number, time: string, response: unknown): ACall => ({
  ...{ distinctId: `id-${person}`, personId: personId(person), timestampMs: at(time), response },
})

describe('GET …/feature_flags/:id/exposure/', () => {
  it('counts each person once, by the first variant, and separately the persons who saw several variants', async t => {
    const { insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    await insert(
      seen(1, '2026-03-28T12:00:00Z', 'control'),
      seen(1, '2026-03-30T12:00:00Z', 'control'),
      seen(2, '2026-03-29T12:00:00Z', 'test'),
      seen(3, '2026-03-29T21:59:00Z', 'test'),
      seen(4, '2026-03-29T22:00:00Z', 'test'),
      seen(5, '2026-03-28T12:00:00Z', 'control'),
      seen(5, '2026-03-29T12:00:00Z', 'test'),
      seen(6, '2026-03-29T12:00:00Z', false),
      seen(7, '2026-03-29T12:00:00Z', 'removed'),
      seen(8, '2026-03-29T12:00:00Z', 'holdout-1'),
      seen(9, '2026-03-27T12:00:00Z', 'control'),
      { ...seen(10, '2026-03-29T12:00:00Z', 'control'), flag: 'other' },
    )
    assert.deepEqual(await answer('exposure', range), {
      variants: [
        { variant: 'control', persons: 1, expected_share: 0.5 },
        { variant: 'test', persons: 3, expected_share: 0.5 },
      ],
      multiple: 1,
      buckets: ['2026-03-28T00:00:00+01:00', '2026-03-29T00:00:00+01:00', '2026-03-30T00:00:00+02:00'],
      cumulative: { control: [1, 1, 1], test: [0, 2, 3] },
      srm: null,
    })
  })

  it('counts imported calls only if their import job was created with the option for experiments', async t => {
    const { api, projectId, insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    await insert(seen(1, '2026-03-28T12:00:00Z', 'control'))
    for (const [person, options] of [
      [2, {}],
      [3, { experiments: true }],
    ] as const) {
      const body = { source: 'csv', options }
      const { number } = (await api.call('POST', `/api/projects/${projectId}/import_jobs/`, { body })).body
      const { response, ...call } = seen(person, '2026-03-29T12:00:00Z', 'control')
      const properties = { $feature_flag: 'beta', $feature_flag_response: response }
      const event = { ...call, projectId, event: '$feature_flag_called', propertiesJson: JSON.stringify(properties) }
      await events.insert({ pendingEvents: [imported(aStoredEvent(event), number)] })
      await events.store.publishJob(number)
    }
    assert.deepEqual((await answer('exposure', range)).cumulative.control, [1, 2, 2])
  })

  it('counts merged persons as one, even if they saw different variants', async t => {
    const { projectId, insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    await insert(
      seen(1, '2026-03-28T12:00:00Z', 'control'),
      seen(2, '2026-03-29T12:00:00Z', 'control'),
      seen(3, '2026-03-29T12:00:00Z', 'test'),
    )
    const merge = (from: number, into: number) =>
      events.insert({
        overrides: [{ projectId, distinctId: `id-${from}`, personId: personId(into), version: 1 }],
      })
    const persons = async () => {
      const { variants, multiple } = await answer('exposure', range)
      return [...variants.map((variant: { persons: number }) => variant.persons), multiple]
    }
    assert.deepEqual(await persons(), [2, 1, 0])
    await merge(2, 1)
    assert.deepEqual(await persons(), [1, 1, 0])
    await merge(3, 1)
    assert.deepEqual(await persons(), [0, 0, 1])
  })

  it('dates an exposure by a deduplicated call if that call was the first', async t => {
    const { projectId, insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    await insert(seen(1, '2026-03-29T12:00:00Z', 'test'))
    const timestampMs = at('2026-03-29T01:00:00Z')
    const call = {
      projectId,
      distinctId: 'id-1',
      timestampMs,
      chargedAtMs: timestampMs,
      flag: 'beta',
      response: 'test',
    }
    await events.insert({ deduplicated: [{ ...call, uuid: personId(77) }] })
    const { buckets, cumulative } = await answer('exposure', '?date_from=2026-03-29&date_to=2026-03-29&interval=hour')
    const first = cumulative.test.indexOf(1)
    assert.deepEqual([buckets[first], cumulative.test.at(-1)], ['2026-03-29T03:00:00+02:00', 1])
  })

  it('counts exposure events and calls together, each person once, by whichever came first', async t => {
    const { insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    const exposed = { event: '$experiment_exposure' }
    await insert(
      seen(1, '2026-03-28T12:00:00Z', 'control'),
      { ...seen(1, '2026-03-29T12:00:00Z', 'control'), ...exposed },
      { ...seen(2, '2026-03-28T12:00:00Z', 'control'), ...exposed },
      seen(2, '2026-03-29T12:00:00Z', 'control'),
      { ...seen(3, '2026-03-29T12:00:00Z', true), ...exposed, variant: 'test' },
      { ...seen(4, '2026-03-29T12:00:00Z', 'test'), ...exposed, flag: 'other' },
    )
    const { cumulative, multiple } = await answer('exposure', range)
    assert.deepEqual([cumulative, multiple], [{ control: [2, 2, 2], test: [0, 1, 1] }, 0])
  })

  it('uses the variant of a flag with rules if the event has one, and otherwise the flag’s value', async t => {
    const variants = [
      { key: 'control', weight: 40, value: 'blue' },
      { key: 'test', weight: 60, value: 'blue' },
    ]
    const rules = [{ rule_type: 'experiment', variants }]
    const { insert, answer } = await startFlagServer(t, events.store, { flag: { filters: { version: 2, rules } } })
    await insert(
      { ...seen(1, '2026-03-28T12:00:00Z', 'blue'), variant: 'control' },
      { ...seen(1, '2026-03-29T12:00:00Z', 'blue'), variant: 'control', event: '$experiment_exposure' },
      { ...seen(2, '2026-03-29T12:00:00Z', 'blue'), variant: 'test' },
      seen(3, '2026-03-29T12:00:00Z', 'test'),
      seen(4, '2026-03-29T12:00:00Z', 'blue'),
    )
    const { variants: shown, multiple } = await answer('exposure', range)
    assert.deepEqual(shown, [
      { variant: 'control', persons: 1, expected_share: 0.4 },
      { variant: 'test', persons: 2, expected_share: 0.6 },
    ])
    assert.equal(multiple, 0)
  })

  it('tests whether persons were split in the proportions of the flag', async t => {
    const { insert, answer } = await startFlagServer(t, events.store, { flag: halves })
    const calls = (count: number, from: number, response: string) =>
      Array.from({ length: count }, (_, index) => seen(from + index, '2026-03-29T12:00:00Z', response))
    await insert(...calls(120, 0, 'control'), ...calls(80, 200, 'test'))
    const { srm } = await answer('exposure', range)
    // (20² + 20²) / 100; P(χ²₁ > 8) = 0.00467773…
    assert.deepEqual([srm.chi_square, srm.degrees_of_freedom], [8, 1])
    assert.ok(Math.abs(srm.p_value - 0.0046777349810472645) < 1e-12, srm.p_value)
  })

  it('shows true and false for a flag without variants, without a test', async t => {
    const { insert, answer } = await startFlagServer(t, events.store)
    await insert(seen(1, '2026-03-28T12:00:00Z', true), seen(2, '2026-03-28T12:00:00Z', false))
    const { variants, srm } = await answer('exposure', range)
    assert.deepEqual(variants, [
      { variant: 'true', persons: 1, expected_share: null },
      { variant: 'false', persons: 1, expected_share: null },
    ])
    assert.equal(srm, null)
  })

  it('rejects an invalid request, and names the parameter at fault', async t => {
    const { call } = await startFlagServer(t, events.store)
    const refusal = async (query: string, flagId?: string) => {
      const { status, body } = await call('exposure', query, flagId)
      return [status, body.code, body.attr]
    }
    assert.deepEqual(await refusal('', "beta'--"), [404, 'not_found', null])
    assert.deepEqual(await refusal("?date_from='"), [400, 'invalid_input', 'date_from'])
    assert.deepEqual(await refusal('?date_from=-90d&interval=hour'), [400, 'invalid_input', 'date_from'])
  })
})
