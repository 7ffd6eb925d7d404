// Usage of flags over HTTP, on the real engine: what a caller sends and gets.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { startFlagServer, type UsageLine } from './flag-calls-server.ts'

const events = eventStoreForTests()
const at = (text: string) => Date.parse(text)

describe('GET …/feature_flags/:id/usage/', () => {
  it('counts calls and persons by value and day in the project’s time zone, the most called value first', async t => {
    const { insert, answer } = await startFlagServer(t, events.store)
    await insert(
      { timestampMs: at('2026-03-28T22:59:59.999Z'), response: 'test' },
      { timestampMs: at('2026-03-28T23:00:00Z'), response: 'test' },
      { timestampMs: at('2026-03-29T21:59:59.999Z'), response: 'test' },
      { timestampMs: at('2026-03-29T22:00:00Z') },
      { timestampMs: at('2026-03-29T12:00:00Z'), flag: 'other' },
      { timestampMs: at('2026-03-30T22:00:00Z') },
    )
    const buckets = ['2026-03-28T00:00:00+01:00', '2026-03-29T00:00:00+01:00', '2026-03-30T00:00:00+02:00']
    assert.deepEqual(await answer('usage', '?date_from=2026-03-28&date_to=2026-03-30'), {
      last_called_at: null,
      results: [
        { value: 'test', calls: [1, 2, 0], persons: [1, 1, 0], buckets },
        { value: 'true', calls: [0, 0, 1], persons: [0, 0, 1], buckets },
      ],
    })
  })

  it('covers the last 30 days and today, by day, by default', async t => {
    const { insert, answer } = await startFlagServer(t, events.store)
    await insert({ timestampMs: at('2026-05-01T10:00:00Z') }, { timestampMs: at('2026-03-31T22:00:00Z') })
    const [line] = (await answer('usage')).results
    assert.deepEqual([line.buckets[0], line.buckets.at(-1)], ['2026-04-01T00:00:00+02:00', '2026-05-01T00:00:00+02:00'])
    assert.deepEqual([line.calls[0], line.calls.at(-1), line.calls.length], [1, 1, 31])
    const hours = (await answer('usage', '?date_from=-24h&interval=hour')).results[0]
    assert.equal(
      hours.calls.reduce((sum: number, count: number) => sum + count),
      1,
    )
    assert.deepEqual((await answer('usage', '?date_from=all')).results[0].calls.length, 31)
  })

  it('lists the 25 most called values, and all other values combined', async t => {
    const { insert, answer } = await startFlagServer(t, events.store)
    const calls = Array.from({ length: 1_010 }, (_, index) => ({
      timestampMs: at('2026-04-10T12:00:00Z'),
      response: `v${String(index).padStart(4, '0')}`,
      distinctId: `id-${index}`,
    }))
    await insert(...calls, ...calls.slice(100, 125), { timestampMs: at('2026-04-10T12:00:00Z'), response: null })
    const { results } = await answer('usage', '?date_from=2026-04-10&date_to=2026-04-10')
    assert.deepEqual(
      results.map(({ value, calls }: UsageLine) => [value, calls[0]]),
      [
        ...calls.slice(100, 125).map(({ response }) => [response, 2]),
        ['$$_posthog_breakdown_other_$$', 1_010 - 25 + 1],
      ],
    )
  })

  it('rejects an invalid request, and names the parameter at fault', async t => {
    const { call } = await startFlagServer(t, events.store)
    const refusal = async (query: string, of?: string) => {
      const { status, body } = await call('usage', query, of)
      return [status, body.code, body.attr]
    }
    assert.deepEqual(await refusal('', '999999'), [404, 'not_found', null])
    assert.deepEqual(await refusal('', "1')%20OR%201=1--"), [404, 'not_found', null])
    assert.deepEqual(await refusal('?date_from=yesterday'), [400, 'invalid_input', 'date_from'])
    assert.deepEqual(await refusal("?date_to=2026-01-01'%20OR%20'1'='1"), [400, 'invalid_input', 'date_to'])
    assert.deepEqual(await refusal('?date_from=2026-04-30&date_to=2026-04-01'), [400, 'invalid_input', 'date_from'])
    assert.deepEqual(await refusal('?date_from=-90d&interval=hour'), [400, 'invalid_input', 'date_from'])
    assert.deepEqual(await refusal('?interval=week'), [400, 'invalid_input', 'interval'])
  })

  it('counts flag values that look like SQL as ordinary values', async t => {
    const { insert, answer } = await startFlagServer(t, events.store)
    const values = [`'; DROP TABLE events; --`, '{flag:String}', '\\', '$$_x_$$', 'ключ', '{"a":1}']
    await insert(...values.map(response => ({ timestampMs: at('2026-04-10T12:00:00Z'), response })))
    const { results } = await answer('usage', '?date_from=2026-04-10&date_to=2026-04-10')
    assert.deepEqual(results.map(({ value }: UsageLine) => value).sort(), [...values].sort())
  })
})
