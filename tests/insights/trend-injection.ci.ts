// Texts that would break out of SQL, in every field of a TrendsQuery, on the real engine with events of two projects.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { startManagement } from '../support/management-api.ts'
import { aStoredEvent } from '../support/values.ts'

const world = eventStoreForTests()

const texts = [
  `\\' OR project_id > 0 -- ' OR 1=1 --`,
  `') UNION ALL SELECT uuid, 999, 999, 999, 0, 0 FROM events -- `,
  '{project:UInt32} OR {asked_string_0:String}',
  '`) FROM events; DROP TABLE events; --',
  'a\u0000b\\x00%00',
  '\ud800 \u2028 \\ud800 😀',
  '$feature/x&=%27 %(project)s $1 {{7*7}} \\N',
]

/** A query for each field that takes a text of the caller's; the text lands in that one. */
const fields: Record<string, (text: string) => object> = {
  'series.event': text => ({ series: [node({ event: text })] }),
  'series.name': text => ({ series: [node({ name: text, custom_name: text })] }),
  'series.math': text => ({ series: [node({ math: text })] }),
  'series.math_property': text => ({ series: [node({ math: 'sum', math_property: text })] }),
  'series.math_group_type_index': text => ({ series: [node({ math: 'unique_group', math_group_type_index: text })] }),
  'series.kind': text => ({ series: [{ kind: text }] }),
  interval: text => ({ interval: text }),
  'dateRange.date_from': text => ({ dateRange: { date_from: text } }),
  'dateRange.date_to': text => ({ dateRange: { date_to: text } }),
  'compareFilter.compare_to': text => ({ compareFilter: { compare: true, compare_to: text } }),
  ...Object.fromEntries(
    ['event', 'person', 'group', 'feature'].flatMap(type => [
      [`key of a ${type}`, (text: string) => filtered({ type, key: text, value: 'x' })],
      [`value of a ${type}`, (text: string) => filtered({ type, key: 'plan', value: text })],
      [`values of a ${type}`, (text: string) => filtered({ type, key: 'plan', value: [text, text] })],
      [`pattern of a ${type}`, (text: string) => filtered({ type, key: 'plan', operator: 'regex', value: text })],
    ]),
  ),
  'number to compare with': text => filtered({ type: 'event', key: 'plan', operator: 'gt', value: text }),
  'date to compare with': text => filtered({ type: 'event', key: 'plan', operator: 'is_date_before', value: text }),
  'version to compare with': text => filtered({ type: 'event', key: 'plan', operator: 'semver_gt', value: text }),
  operator: text => filtered({ type: 'event', key: 'plan', operator: text, value: 'x' }),
  'type of a filter': text => filtered({ type: text, key: 'plan', value: 'x' }),
  'group_type_index of a filter': text => filtered({ type: 'group', key: 'plan', value: 'x', group_type_index: text }),
  cohort: text => filtered({ type: 'cohort', key: 'id', value: text }),
  'type of a list': text => ({ properties: { type: text, values: [{ type: 'event', key: 'plan', value: 'x' }] } }),
  ...Object.fromEntries(
    ['event', 'person', 'group', 'cohort'].map(type => [
      `breakdown of a ${type}`,
      (text: string) => ({
        breakdownFilter: { breakdown: text, breakdown_type: type, breakdown_group_type_index: 0 },
      }),
    ]),
  ),
  'breakdown by a flag': text => ({ breakdownFilter: { breakdown: `$feature/${text}` } }),
  'type of a breakdown': text => ({ breakdownFilter: { breakdown: 'plan', breakdown_type: text } }),
  'limit of a breakdown': text => ({ breakdownFilter: { breakdown: 'plan', breakdown_limit: text } }),
  'index of a breakdown': text => ({
    breakdownFilter: { breakdown: 'plan', breakdown_type: 'group', breakdown_group_type_index: text },
  }),
  'two breakdowns': text => ({
    breakdownFilter: {
      breakdowns: [
        { property: text, type: 'event' },
        { property: text, type: 'person' },
      ],
    },
  }),
}

function node(more: object): object {
  return { kind: 'EventsNode', event: null, ...more }
}

function filtered(filter: object): object {
  return { properties: [{ group_type_index: 0, ...filter }] }
}

describe('texts that try SQL injection', () => {
  it('are treated as data or rejected in every field of a TrendsQuery, and reveal no other project', async t => {
    const api = await startManagement(t, { events: world.store })
    const make = async () => (await api.call('POST', '/api/projects/', { body: { name: 'one' } })).body.id as number
    const [own, other] = [await make(), await make()]
    const timestampMs = Date.parse('2026-05-01T10:00:00Z')
    const events = [own, ...Array.from({ length: 40 }, () => other)].map(projectId =>
      aStoredEvent({
        projectId,
        timestampMs,
        event: projectId === own ? 'mine' : 'theirs',
        propertiesJson: '{"plan":"x"}',
      }),
    )
    await world.insert({ events })
    await world.store.completeMirrorFill('filled', 1)
    const ask = (query: object) => {
      const common = { kind: 'TrendsQuery', dateRange: { date_from: '2026-05-01' }, series: [node({})] }
      return api.call('POST', `/api/projects/${own}/query/`, { body: { query: { ...common, ...query } } })
    }
    const check = async (field: string, text: string) => {
      const { status, body, text: answer } = await ask(fields[field]!(text))
      const what = `${field}: ${JSON.stringify(text)}: ${answer}`
      assert.ok(status === 200 || status === 400, what)
      if (status === 400) {
        assert.equal(body.type, 'validation_error', what)
        assert.match(body.attr, /^query[.]/, what)
        return status
      }
      for (const { count, data } of body.results as { count: number; data: number[] }[])
        assert.ok(count <= 1 && data.every(figure => figure <= 1), what)
      return status
    }
    const answered = new Map<number, number>()
    const cases = Object.keys(fields).flatMap(field => texts.map(text => [field, text] as const))
    for (let start = 0; start < cases.length; start += 4) {
      const some = cases.slice(start, start + 4)
      for (const status of await Promise.all(some.map(([field, text]) => check(field, text))))
        answered.set(status, (answered.get(status) ?? 0) + 1)
    }
    t.diagnostic(JSON.stringify([...answered]))
    // Nothing was refused for its characters alone where any text may stand.
    assert.ok((answered.get(200) ?? 0) > cases.length / 2)
    const { body } = await ask({})
    assert.deepEqual([body.results[0].count, body.results.length], [1, 1])
  })
})
