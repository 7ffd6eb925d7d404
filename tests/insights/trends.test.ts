// Trends over HTTP, on the real engine: what a caller sends and gets.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Value } from 'typebox/value'
import { trendsAnswerSchema } from '#wire/insights/trends-results.ts'
import { eventually } from '../support/eventually.ts'
import { startManagement } from '../support/management-api.ts'
import { aStoredEvent, imported } from '../support/values.ts'
import { ada, bob, events, noon, today, trendsForTests, withFlag } from './trends-for-tests.ts'

const { held, startTrends } = trendsForTests()
const at = (text: string) => Date.parse(text)

describe('POST …/query/ with a TrendsQuery', () => {
  it('counts events per day in the project’s time zone, in PostHog’s format', async () => {
    const trends = await startTrends()
    await trends.insert(
      { event: 'paid', timestampMs: at('2026-04-28T21:59:59.999Z') },
      { event: 'paid', timestampMs: at('2026-04-28T22:00:00.000Z') },
      { event: 'seen', timestampMs: at('2026-04-29T12:00:00.000Z') },
      { event: 'paid', timestampMs: at('2026-05-01T21:59:59.999Z') },
      { event: 'paid', timestampMs: at('2026-05-01T22:00:00.000Z') },
    )
    const dateRange = { date_from: '-3d' }
    const [paid, all] = await trends.results({
      dateRange,
      series: [events('paid', { custom_name: 'Sales' }), events(null)],
    })
    assert.deepEqual(paid, {
      label: 'paid',
      count: 3,
      data: [1, 1, 0, 1],
      days: ['2026-04-28', '2026-04-29', '2026-04-30', '2026-05-01'],
      labels: ['28-Apr-2026', '29-Apr-2026', '30-Apr-2026', '1-May-2026'],
      action: {
        id: 'paid',
        type: 'events',
        order: 0,
        name: 'paid',
        custom_name: 'Sales',
        math: 'total',
        math_property: null,
        math_group_type_index: null,
        math_hogql: null,
        days: ['2026-04-28', '2026-04-29', '2026-04-30', '2026-05-01'],
        properties: {},
      },
    })
    assert.deepEqual([all.label, all.data, all.action.order], ['All events', [1, 2, 0, 1], 1])
    const { body } = await trends.call({
      kind: 'TrendsQuery',
      dateRange,
      series: [events('paid')],
      compareFilter: { compare: true },
    })
    assert.ok(Value.Check(trendsAnswerSchema, body), JSON.stringify([...Value.Errors(trendsAnswerSchema, body)]))
    const document = await trends.api.call('GET', '/api/schema/?format=json')
    const query = Object.entries<Record<string, unknown>>(document.body.paths).find(([path]) =>
      path.endsWith('/query/'),
    )
    for (const field of [/compare_label/, /hasMore/]) assert.match(JSON.stringify(query?.[1]), field)
  })

  it('counts each event identity once, imports included, and no pending events', async () => {
    const trends = await startTrends()
    const { projectId } = trends
    const event = aStoredEvent({ projectId, timestampMs: at('2026-05-01T10:00:00Z') })
    const moved = { ...event, timestampMs: at('2026-05-01T11:00:00Z') }
    const other = aStoredEvent({ projectId, timestampMs: at('2026-05-01T11:30:00Z') })
    await held.insert({ events: [event, imported(event, 1), imported(other, 1)] })
    await held.insert({ events: [moved], pendingEvents: [imported(aStoredEvent({ projectId }), 7)] })
    const [hours] = await trends.results({ interval: 'hour', dateRange: { date_from: '-2h' }, series: [events(null)] })
    assert.deepEqual(hours.data, [0, 2, 0])
    assert.deepEqual(hours.labels, ['1-May 12:00', '1-May 13:00', '1-May 14:00'])
  })

  it('accumulates figures for a cumulative display, as PostHog does', async () => {
    const trends = await startTrends()
    const days = ['2026-04-29', '2026-04-29', '2026-05-01']
    await trends.insert(...days.map(day => ({ timestampMs: at(`${day}T10:00:00Z`), propertiesJson: '{"price":2}' })))
    const query = { dateRange: { date_from: '-2d' }, trendsFilter: { display: 'ActionsLineGraphCumulative' } }
    const series = [events(null), events(null, { math: 'sum', math_property: 'price' })]
    const results = await trends.results({ ...query, series })
    assert.deepEqual(
      results.map(({ data, count }: { data: number[]; count: number }) => [data, count]),
      [
        [[2, 2, 3], 3],
        [[4, 4, 6], 6],
      ],
    )
    const { status, body } = await trends.call({
      kind: 'TrendsQuery',
      ...query,
      series: [events(null, { math: 'dau' })],
    })
    assert.deepEqual([status, body.attr], [400, 'query.trendsFilter.display'])
  })

  it('counts current persons and groups, and aggregates numbers', async () => {
    const trends = await startTrends()
    const { projectId } = trends
    const timestampMs = at('2026-05-01T10:00:00Z')
    const groupsOf = (key: string) => ['', key, '', '', ''] as const
    await trends.insert(
      { timestampMs, distinctId: 'a', personId: ada, groups: groupsOf('acme'), propertiesJson: '{"price":3}' },
      { timestampMs, distinctId: 'b', personId: bob, groups: groupsOf('acme'), propertiesJson: '{"price":"4.5"}' },
      { timestampMs, distinctId: 'b', personId: bob, groups: groupsOf(''), propertiesJson: '{"price":"free"}' },
      { timestampMs, distinctId: 'b', personId: bob, groups: groupsOf('wile'), propertiesJson: '{"price":null}' },
    )
    const dateRange = { date_from: 'dStart' }
    const today = async (more: object) => (await trends.results({ dateRange, series: [events(null, more)] }))[0].data
    assert.deepEqual(await today({ math: 'dau' }), [2])
    await held.insert({
      overrides: [{ projectId, distinctId: 'b', personId: ada, version: 2 }],
    })
    assert.deepEqual(await today({ math: 'dau' }), [1])
    assert.deepEqual(await today({ math: 'unique_group', math_group_type_index: 1 }), [2])
    const figures = { sum: 7.5, avg: 3.75, min: 3, max: 4.5, median: 3.75, p90: 4.35, p95: 4.425, p99: 4.485 }
    for (const [math, figure] of Object.entries(figures)) {
      const [data] = await today({ math, math_property: 'price' })
      assert.ok(Math.abs(data - figure) < 1e-9, `${math}: ${data}`)
    }
  })

  it('leaves out numbers too large to sum', async () => {
    const trends = await startTrends()
    const values = ['7', '5', '"1e999"', '1.7e308', '-1.7e308', '"1.7e308"', '1.6e308', '-0.0', '"9"']
    await trends.insert(
      ...values.map(value => ({ timestampMs: at('2026-05-01T10:00:00Z'), propertiesJson: `{"price":${value}}` })),
    )
    const figures = { sum: 21, avg: 5.25, min: 0, max: 9, median: 6 }
    const series = Object.keys(figures).map(math => events(null, { math, math_property: 'price' }))
    const results = await trends.results({ dateRange: { date_from: 'dStart' }, series })
    assert.deepEqual(
      results.map((line: { data: number[] }) => line.data.map(figure => figure + 0)),
      Object.values(figures).map(figure => [figure]),
    )
  })

  it('starts weeks on the project’s first weekday, and `all` with the first event', async () => {
    const trends = await startTrends({ week_start_day: 1 })
    const query = { interval: 'week', dateRange: { date_from: 'all' }, series: [events(null)] }
    assert.deepEqual((await trends.results(query))[0].data, [0])
    await trends.insert({ timestampMs: at('2026-04-19T21:00:00Z') }, { timestampMs: at('2026-04-19T22:00:00Z') })
    const [weeks] = await trends.results(query)
    assert.deepEqual(weeks.days, ['2026-04-13', '2026-04-20', '2026-04-27'])
    assert.deepEqual(weeks.data, [1, 1, 0])
    assert.deepEqual(weeks.labels, ['13–19 Apr', '20–26 Apr', '27-Apr – 1-May'])
  })

  it('shows zero for a day that the time zone skipped, and aligns weeks with the project’s first weekday', async () => {
    const trends = await startTrends({ timezone: 'Pacific/Apia', week_start_day: 1 })
    await trends.insert({ timestampMs: at('2011-12-30T09:59:59Z') }, { timestampMs: at('2011-12-30T10:00:00Z') })
    const daysOf = async (date_from: string, date_to: string) => {
      const query = { dateRange: { date_from, date_to }, series: [events(null)], compareFilter: { compare: true } }
      const [{ days, data }] = await trends.results(query)
      return Object.fromEntries(days.map((day: string, index: number) => [day, data[index]]))
    }
    assert.deepEqual(await daysOf('2011-12-29', '2011-12-31'), { '2011-12-29': 1, '2011-12-30': 0, '2011-12-31': 1 })
    assert.deepEqual(await daysOf('2011-12-30', '2011-12-30'), { '2011-12-30': 0 })
    // It is Saturday, the 2nd of May.
    const week = Object.keys(await daysOf('wStart', '-1d'))
    assert.deepEqual([week.at(0), week.at(-1)], ['2026-04-27', '2026-05-01'])
  })

  it('has a line for each series, even for ranges in which no events are possible', async () => {
    const trends = await startTrends()
    await trends.insert({ timestampMs: at('2026-04-30T12:00:00Z') })
    const ranges = [
      { date_from: 'all', date_to: '2026-04-29' },
      { date_from: '0001-01-01', date_to: '0001-01-02' },
      { date_from: '9000-01-01', date_to: '9000-01-02' },
    ]
    for (const dateRange of ranges) {
      const query = { dateRange, series: [events(null), events('paid')], compareFilter: { compare: true } }
      const results: { data: number[] }[] = await trends.results(query)
      assert.deepEqual(
        results.map(({ data }) => data),
        [[0], [0], [0], [0]],
        dateRange.date_from,
      )
    }
  })

  it('allows as many buckets as an answer may have data points', async () => {
    const trends = await startTrends()
    await trends.insert({ timestampMs: at('2025-03-11T00:30:00Z') }, { timestampMs: at('2026-05-01T12:00:00Z') })
    const [line] = await trends.results({
      interval: 'hour',
      dateRange: { date_from: '2025-03-11T00:30:00Z', date_to: '2026-05-01T12:00:00Z', explicitDate: true },
      series: [events(null)],
    })
    assert.deepEqual([line.data.length, line.data[0], line.data.at(-1), line.count], [9_997, 1, 1, 2])
  })

  it('applies filters of the query and of a series, in lists and in groups', async () => {
    const trends = await startTrends({
      test_account_filters: [{ key: 'email', type: 'person', operator: 'not_icontains', value: '@first.example' }],
    })
    await trends.insert(
      {
        timestampMs: noon,
        propertiesJson: '{"plan":"pro","seats":5}',
        personPropertiesJson: '{"email":"a@x.example"}',
      },
      { timestampMs: noon, propertiesJson: '{"plan":"pro","seats":[1]}' },
      { timestampMs: noon, propertiesJson: '{"plan":"free"}', personPropertiesJson: '{"email":"me@first.example"}' },
      { ...withFlag('true'), propertiesJson: '{"version":"1.10.0"}' },
    )
    const count = async (query: object, series: object = {}) =>
      (await trends.results({ dateRange: today, series: [events(null, series)], ...query }))[0].count
    const pro = { key: 'plan', value: 'PRO', type: 'event' }
    const many = { key: 'seats', value: 3, operator: 'gt', type: 'event' }
    assert.equal(await count({ properties: [pro] }), 2)
    assert.equal(await count({ properties: [pro] }, { properties: [many] }), 1)
    assert.equal(
      await count({
        properties: {
          type: 'OR',
          values: [
            { type: 'AND', values: [pro, many] },
            { key: 'plan', value: 'free' },
          ],
        },
      }),
      2,
    )
    assert.equal(await count({ properties: [{ ...pro, operator: 'is_not' }] }), 2)
    assert.equal(await count({ properties: [{ key: 'seats', value: '[1]', type: 'event' }] }), 1)
    assert.equal(await count({ properties: [{ key: 'version', value: '1.9.9', operator: 'semver_gt' }] }), 1)
    assert.equal(await count({ properties: [{ key: '$feature/new-nav', value: ['true'], operator: 'exact' }] }), 1)
    assert.equal(await count({ properties: [{ key: 'email', operator: 'is_set', type: 'person' }] }), 2)
    assert.equal(await count({ filterTestAccounts: true }), 3)
    assert.equal(await count({ properties: [{ key: 'plan', value: "pro'; DROP TABLE events; --{a:String}" }] }), 0)
  })

  it('compares strings that spell a boolean as text, with either version of property matching', async () => {
    for (const version of [1, 2]) {
      const trends = await startTrends({ property_matching_version: version })
      const values = ['null', '0', '"banana"', '"RED"', 'false', '"false"', '"FALSE"', 'true', '"True"', '1']
      await trends.insert(...values.map(value => ({ timestampMs: noon, propertiesJson: `{"paid":${value}}` })))
      const counts: [operator: string, value: unknown, count: number][] = [
        ['exact', false, 3],
        ['exact', 'false', 3],
        ['exact', ['false'], 3],
        ['exact', ['true', 'false'], 5],
        ['is_not', 'false', 7],
        ['exact', true, 2],
        ['is_not', true, 8],
      ]
      for (const [operator, value, count] of counts) {
        const properties = [{ key: 'paid', operator, value }]
        const [line] = await trends.results({ dateRange: today, series: [events(null)], properties })
        assert.equal(line.count, count, `${operator} ${JSON.stringify(value)} in version ${version}`)
      }
    }
  })

  it('cancels the query in the store when the caller disconnects', async t => {
    const signals: AbortSignal[] = []
    const api = await startManagement(t, {
      events: {
        countTrend: (_, signal) =>
          new Promise((_, reject) => {
            signals.push(signal!)
            signal!.addEventListener('abort', () => reject(signal!.reason))
          }),
      },
    })
    const caller = new AbortController()
    const body = { query: { kind: 'TrendsQuery', series: [events(null)] } }
    const call = assert.rejects(api.call('POST', '/api/projects/1/query/', { body, signal: caller.signal }))
    await eventually(() => signals.length === 1)
    caller.abort()
    await call
    await eventually(() => signals[0]!.aborted)
  })

  it('supports many filters, and reports when there are too many for the store', async () => {
    const trends = await startTrends()
    await trends.insert({ timestampMs: noon, propertiesJson: '{"p7":"2020-01-01"}' })
    const asked = (count: number) => ({
      kind: 'TrendsQuery',
      dateRange: today,
      series: [events(null)],
      properties: {
        type: 'OR',
        values: Array.from({ length: count }, (_, n) => ({ key: `p${n}`, operator: 'is_date_before', value: '-7d' })),
      },
    })
    assert.deepEqual((await trends.call(asked(20))).body.results[0].data, [1])
    const { status, body } = await trends.call(asked(100))
    assert.deepEqual([status, body.attr], [400, 'query.properties'], body.detail)
  })

  it('rejects unsupported fields by name', async () => {
    const trends = await startTrends()
    const asked = { kind: 'TrendsQuery', series: [events(null)] }
    const refused: [query: object, attr: string][] = [
      [{ kind: 'FunnelsQuery' }, 'query.kind'],
      [{}, 'query.kind'],
      [{ kind: 'TrendsQuery' }, 'query.series'],
      [{ kind: 'TrendsQuery', series: [{ kind: 'ActionsNode', id: 1 }] }, 'query.series.0.kind'],
      [{ kind: 'TrendsQuery', series: [events('a', { math: 'wau' })] }, 'query.series.0.math'],
      [{ kind: 'TrendsQuery', series: [events('a', { math: 'sum' })] }, 'query.series.0.math_property'],
      [{ kind: 'TrendsQuery', series: [events('a', { propertie: [] })] }, 'query.series.0.propertie'],
      [{ kind: 'TrendsQuery', series: [events('a')], interval: 'minute' }, 'query.interval'],
      [{ kind: 'TrendsQuery', series: [events('a')], dateRange: { date_from: 'soon' } }, 'query.dateRange.date_from'],
      [
        { kind: 'TrendsQuery', series: [events('a')], interval: 'hour', dateRange: { date_from: '-9y' } },
        'query.dateRange',
      ],
      [{ kind: 'TrendsQuery', series: [events('a')], samplingFactor: 0.1 }, 'query.samplingFactor'],
      [{ ...asked, properties: [{ key: 'a', operator: 'like', value: 1 }] }, 'query.properties.0.operator'],
      [{ ...asked, properties: [{ key: 'a' }] }, 'query.properties.0.value'],
      [{ ...asked, properties: [{ key: 'a', value: { b: 1 } }] }, 'query.properties.0.value'],
      [{ ...asked, properties: [{ key: 'a', value: 'x'.repeat(2_001) }] }, 'query.properties.0.value'],
      [{ ...asked, properties: [{ key: 'a', value: 'b', type: 'hogql' }] }, 'query.properties.0.type'],
      [{ ...asked, properties: [{ key: 'a', value: 'b', type: 'group' }] }, 'query.properties.0.group_type_index'],
      [{ ...asked, properties: [{ type: 'cohort', key: 'id', value: 999 }] }, 'query.properties.0.value'],
      [{ ...asked, properties: { type: 'XOR', values: [] } }, 'query.properties.type'],
      [{ ...asked, properties: Array.from({ length: 101 }, () => ({ key: 'a', value: 'b' })) }, 'query.properties'],
      [
        { ...asked, breakdownFilter: { breakdown: 'a', breakdown_limit: 501 } },
        'query.breakdownFilter.breakdown_limit',
      ],
      [
        { ...asked, breakdownFilter: { breakdowns: [{ property: 'a' }, { property: 'b' }, { property: 'c' }] } },
        'query.breakdownFilter.breakdowns',
      ],
      [{ ...asked, breakdownFilter: { breakdown: [7], breakdown_type: 'cohort' } }, 'query.breakdownFilter.breakdown'],
      [{ ...asked, compareFilter: { compare: true, compare_to: 'then' } }, 'query.compareFilter.compare_to'],
      [{ ...asked, trendsFilter: { formula: 'A/B' } }, 'query.trendsFilter.formula'],
      [{ ...asked, series: Array.from({ length: 21 }, () => events(null)) }, 'query.series'],
    ]
    for (const [query, attr] of refused) {
      const { status, body, text } = await trends.call(query)
      assert.equal(status, 400, text)
      assert.equal(body.attr, attr, text)
    }
    assert.match((await trends.call({ kind: 'FunnelsQuery' })).body.detail, /TrendsQuery/)
  })
})
