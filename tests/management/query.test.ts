// `POST …/query/` apart from what each kind counts: nodes around a query, and whether an answer is complete.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ok } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/query/'
const trend = { kind: 'TrendsQuery', series: [{ kind: 'EventsNode', event: null }] }
const sql = { kind: 'HogQLQuery', query: 'SELECT 1' }
const events = {
  countTrend: async () => [{ value: null, data: [1, 2, 3, 4, 5, 6, 7, 8] }],
  runSql: async () => ok({ columns: ['1'], types: ['UInt8'], rows: ['[1]'], rowCountMax: 100, hasMore: false }),
}

describe('a query', () => {
  it('gets the same response alone and inside a visualization node', async t => {
    const api = await startManagement(t, { events })
    const ask = async (query: object) => await api.post(path, { query })
    for (const source of [trend, sql])
      for (const kind of ['InsightVizNode', 'DataVisualizationNode', 'DataTableNode'])
        assert.deepEqual(await ask({ kind, source, full: true, chartSettings: {} }), await ask(source))
    const refused: [query: object, attr: string][] = [
      [{ kind: 'InsightVizNode', source: { kind: 'FunnelsQuery' } }, 'query.source.kind'],
      [{ kind: 'InsightVizNode', source: { ...trend, interval: 'minute' } }, 'query.source.interval'],
      [{ kind: 'DataVisualizationNode', source: { kind: 'HogQLQuery' } }, 'query.source.query'],
      [{ kind: 'InsightVizNode' }, 'query.kind'],
      [{ kind: 'InsightVizNode', source: { kind: 'InsightVizNode', source: trend } }, 'query.source.kind'],
      [{ kind: 'SavedInsightNode', source: trend }, 'query.kind'],
    ]
    for (const [query, attr] of refused) await api.refuses('POST', path, [{ query }, attr])
  })

  it('is rejected with a suggestion if a field is misplaced', async t => {
    const api = await startManagement(t, { events })
    const refused: [body: object, attr: string, detail: RegExp][] = [
      [trend, 'kind', /Did you mean query\.kind\?$/],
      [{ query: { ...trend, date_from: '-7d' } }, 'query.date_from', /Did you mean dateRange\.date_from\?$/],
      [{ query: { ...trend, breakdown: 'plan' } }, 'query.breakdown', /Did you mean breakdownFilter\.breakdown\?$/],
      [{ query: { ...trend, dateRange: { from: '-7d' } } }, 'query.dateRange.from', /Did you mean date_from\?$/],
      [{ query: { ...trend, colour: 1 } }, 'query.colour', /^Unknown field\. Known fields: kind, series, /],
    ]
    for (const [body, attr, detail] of refused) await api.refuses('POST', path, [body, attr, undefined, detail])
  })

  it('says whether the worker has processed all accepted events', async t => {
    let appendedAtMs: number | null = null
    const status = async () => ({ endOffset: 12, appendedAtMs })
    const api = await startManagement(t, { events, log: { readStreamStatus: status } })
    const answers = async () => {
      const asked = [trend, sql].map(query => api.call('POST', path, { body: { query } }))
      return (await Promise.all(asked)).map(({ body }) => body.complete)
    }
    assert.deepEqual(await answers(), [true, true])
    appendedAtMs = api.clock.nowMs() - 60_000
    assert.deepEqual(await answers(), [false, false])
  })

  it('is answered while the event log cannot be read, and reports that the result may be incomplete', async t => {
    const status = async () => {
      throw new PortError('event-log', 'corrupt')
    }
    const api = await startManagement(t, { events, log: { readStreamStatus: status } })
    for (const query of [trend, sql]) {
      const answer = await api.post(path, { query })
      assert.equal(answer.complete, false)
    }
  })

  it('accepts PostHog’s execution parameters in its URL and ignores them', async t => {
    const api = await startManagement(t, { events })
    const ask = (params: string) => api.call('POST', `${path}${params}`, { body: { query: sql } })
    const plain = await ask('')
    for (const params of [
      '?refresh=blocking',
      '?refresh=force_blocking&client_query_id=a',
      '?refresh=',
      '?async=true',
    ]) {
      const { status, body } = await ask(params)
      assert.deepEqual([status, body], [200, plain.body], params)
    }
  })
})
