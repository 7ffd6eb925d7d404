// Breakdowns and comparisons of trends over HTTP, on the real engine.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ada, bob, events, lines, noon, today, trendsForTests, withFlag } from './trends-for-tests.ts'

const { held, startTrends } = trendsForTests()

describe('a TrendsQuery with a breakdown', () => {
  it('breaks down by a flag, most frequent first, with other and missing values at the end', async () => {
    const trends = await startTrends()
    const values = ['c', 'b', 'b', 'a', 'a', 'a', 'd', 'control&=%é']
    await trends.insert(...values.map(withFlag), { timestampMs: noon })
    const query = { dateRange: today, series: [events(null)] }
    const breakdown = (limit: number, more: object = {}) =>
      trends.results({
        ...query,
        breakdownFilter: { breakdown: '$feature/new-nav', breakdown_type: 'event', breakdown_limit: limit, ...more },
      })
    const none = 'None (i.e. no value)'
    const other = 'Other (i.e. all remaining values)'
    assert.deepEqual(lines(await breakdown(3)), [
      ['a', 3],
      ['b', 2],
      ['c', 1],
      [none, 1],
      [other, 2],
    ])
    assert.deepEqual(
      (await breakdown(1)).map(({ breakdown_value }: { breakdown_value: string }) => breakdown_value),
      ['a', '$$_posthog_breakdown_null_$$', '$$_posthog_breakdown_other_$$'],
    )
    assert.deepEqual(
      lines(await breakdown(25)).map(([label]) => label),
      ['a', 'b', 'c', 'control&=%é', 'd', none],
    )
    assert.deepEqual(lines(await breakdown(1, { breakdown_hide_other_aggregation: true })), [
      ['a', 3],
      [none, 1],
    ])
  })

  const byPlan = (math: object, breakdownFilter: object = {}) => ({
    dateRange: { date_from: '-1d' },
    series: [events('paid', { math_property: 'price', math_group_type_index: 0, ...math })],
    breakdownFilter: { breakdown: 'plan', breakdown_limit: 2, ...breakdownFilter },
  })
  const valuesOf = (results: { breakdown_value: string }[]) => results.map(one => one.breakdown_value)

  it('ranks values by the total of the series over its buckets', async () => {
    const trends = await startTrends()
    const paid = (plan: string | null, price: number | string, person: string, group: string, timestampMs = noon) => ({
      ...{ event: 'paid', timestampMs, distinctId: person, personId: person },
      ...{ groups: [group, '', '', '', ''] as const, propertiesJson: JSON.stringify({ plan, price }) },
    })
    const yesterday = noon - 86_400_000
    await trends.insert(
      // The most events, of one person, for nothing.
      ...[1, 1, 1, 1, 'free'].map(price => paid('many', price, ada, '')),
      paid('large', 900, ada, ''),
      paid('people', 2, ada, 'acme'),
      paid('people', 2, bob, ''),
      paid('twice', 50, ada, 'acme'),
      paid('twice', 50, ada, 'wile', yesterday),
      paid('twice', 50, bob, 'acme', yesterday),
      paid(null, 1e6, ada, 'acme'),
      ...[-5, -6].map(price => paid('refunds', price, bob, '')),
    )
    const ranks: [math: string, first: string, second: string][] = [
      ['total', 'many', 'twice'],
      ['dau', 'twice', 'people'],
      ['unique_group', 'twice', 'people'],
      ['sum', 'large', 'twice'],
      ...['avg', 'min', 'max', 'median', 'p90'].map(math => [math, 'large', 'twice'] as [string, string, string]),
    ]
    for (const [math, first, second] of ranks) {
      const shown = valuesOf(await trends.results(byPlan({ math })))
      assert.deepEqual(shown, [first, second, '$$_posthog_breakdown_null_$$', '$$_posthog_breakdown_other_$$'], math)
    }
    const all = valuesOf(await trends.results(byPlan({ math: 'sum' }, { breakdown_limit: 25 })))
    assert.deepEqual(all, ['large', 'twice', 'many', 'people', 'refunds', '$$_posthog_breakdown_null_$$'])
  })

  it('ranks in the engine when there are too many values to read into memory', async () => {
    const trends = await startTrends()
    const time = `fromUnixTimestamp64Milli(toInt64(${noon}), 'UTC')`
    await held.command(
      database => `INSERT INTO ${database}.events (project_id, uuid, event, distinct_id, timestamp, captured_at, properties)
        SELECT ${trends.projectId}, generateUUIDv4(), 'paid', toString(number), ${time}, ${time},
          concat('{"plan":"', toString(number % 20100), '","price":', toString(number % 20100 = 7 ? 5000 : 1), '}')
        FROM numbers(20103)`,
    )
    const ranks = { total: ['0', '1'], sum: ['7', '0'], avg: ['7', '0'], median: ['7', '0'] }
    for (const [math, first] of Object.entries(ranks)) {
      const shown = valuesOf(await trends.results(byPlan({ math })))
      assert.deepEqual(shown, [...first, '$$_posthog_breakdown_other_$$'], math)
    }
  })

  it('counts a person only once in the combined line of other values', async () => {
    const trends = await startTrends()
    await trends.insert(
      ...['a', 'a', 'b', 'c'].map(value => ({ ...withFlag(value), personId: ada })),
      { ...withFlag('b'), personId: bob },
      { ...withFlag('a'), personId: bob },
    )
    const results = await trends.results({
      dateRange: today,
      series: [events(null, { math: 'dau' }), events(null)],
      breakdownFilter: { breakdown: '$feature/new-nav', breakdown_limit: 1 },
    })
    assert.deepEqual(lines(results), [
      ['All events - a', 2],
      ['All events - Other (i.e. all remaining values)', 2],
      ['All events - a', 3],
      ['All events - Other (i.e. all remaining values)', 3],
    ])
  })

  it('breaks down by two properties at once, of events, persons and groups', async () => {
    const trends = await startTrends()
    const groups = ['acme', '', '', '', ''] as const
    await trends.insert(
      { timestampMs: noon, propertiesJson: '{"plan":"pro"}', personPropertiesJson: '{"age":1.0}', groups },
      { timestampMs: noon, propertiesJson: '{"plan":"pro"}', personPropertiesJson: '{"age":1}' },
      { timestampMs: noon, propertiesJson: '{"plan":null}', personPropertiesJson: '{"age":[1,"x"]}' },
    )
    const query = { dateRange: today, series: [events(null)] }
    const both = await trends.results({
      ...query,
      breakdownFilter: {
        breakdowns: [
          { property: 'plan', type: 'event' },
          { property: 'age', type: 'person' },
        ],
      },
    })
    assert.deepEqual(
      both.map(({ label, breakdown_value, data }: { label: string; breakdown_value: string[]; data: number[] }) => ({
        label,
        breakdown_value,
        data,
      })),
      [
        { label: 'pro::1', breakdown_value: ['pro', '1'], data: [2] },
        {
          label: 'None (i.e. no value)::[1,"x"]',
          breakdown_value: ['$$_posthog_breakdown_null_$$', '[1,"x"]'],
          data: [1],
        },
      ],
    )
    // As a list also for one breakdown, and for all other values.
    const valuesOf = async (...breakdowns: object[]) =>
      (await trends.results({ ...query, breakdownFilter: { breakdowns, breakdown_limit: 1 } })).map(
        ({ breakdown_value }: { breakdown_value: string[] }) => breakdown_value,
      )
    const other = '$$_posthog_breakdown_other_$$'
    const plan = { property: 'plan', type: 'event' }
    assert.deepEqual(await valuesOf(plan), [['pro'], ['$$_posthog_breakdown_null_$$']])
    assert.deepEqual(await valuesOf(plan, { property: 'age', type: 'person' }), [
      ['pro', '1'],
      [other, other],
    ])
    const group = { breakdown: '$group_key', breakdown_type: 'group', breakdown_group_type_index: 0 }
    assert.deepEqual(lines(await trends.results({ ...query, breakdownFilter: group })), [
      ['acme', 1],
      ['None (i.e. no value)', 2],
    ])
    // Zeroes are one value, however they are written.
    const zeroes = ['0', '-0', '0.0', '-0.0', '0e1', '-0e0'].map(zero => ({
      ...{ timestampMs: noon, event: 'zero', propertiesJson: `{"n":${zero}}` },
    }))
    await trends.insert(...zeroes)
    const byNumber = { dateRange: today, series: [events('zero')], breakdownFilter: { breakdown: 'n' } }
    assert.deepEqual(lines(await trends.results(byNumber)), [['0', 6]])
  })

  it('compares each line with the previous period', async () => {
    const trends = await startTrends()
    const yesterday = noon - 86_400_000
    await trends.insert(
      ...['a', 'b', 'b'].map(withFlag),
      ...['a', 'a', 'c'].map(value => ({ ...withFlag(value), timestampMs: yesterday })),
    )
    const results = await trends.results({
      dateRange: today,
      series: [events(null)],
      compareFilter: { compare: true },
      breakdownFilter: { breakdown: '$feature/new-nav' },
    })
    const shown = results.map((one: { compare_label: string; label: string; data: number[]; days: string[] }) => [
      one.compare_label,
      one.label,
      ...one.data,
      ...one.days,
    ])
    assert.deepEqual(shown, [
      ['current', 'b', 2, '2026-05-01'],
      ['current', 'a', 1, '2026-05-01'],
      ['previous', 'a', 2, '2026-04-30'],
      ['previous', 'Other (i.e. all remaining values)', 1, '2026-04-30'],
    ])
    const week = await trends.results({
      dateRange: today,
      series: [events(null)],
      compareFilter: { compare: true, compare_to: '-1w' },
    })
    assert.deepEqual([week[1].compare_label, week[1].days, week[1].data], ['previous', ['2026-04-24'], [0]])
  })
})
