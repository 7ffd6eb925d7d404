// The tools that PostHog instructs agents to call first. The contracts of the event store test what these read
// (`tests/ports/event-names.contract.ts`).

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { err, ok } from '#core/result.ts'
import type { EventNameQuery, PropertyValueQuery } from '#ports/events/event-queries.ts'
import type { SqlQuery } from '#ports/events/sql-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { startManagement } from '../support/management-api.ts'

const seen = { firstCapturedAtMs: 0, lastSeenMs: 0 }

async function start(t: TestContext, over: Parameters<typeof startManagement>[1] = {}) {
  const api = await startManagement(t, over)
  const tool = async (name: string, args: object) => {
    const { status, body } = await api.call('POST', `/api/environments/1/mcp_tools/${name}/`, { body: { args } })
    return { status, ...body }
  }
  return { api, tool }
}

describe('execute_sql', () => {
  it('returns a table whose cells are escaped unambiguously', async t => {
    let asked: SqlQuery | undefined
    const rows = [
      '["a|b",12345678901234567890,null]',
      '["line\\nbreak",1.0,"(null)"]',
      `["plain",true,${JSON.stringify(JSON.stringify({ long: 'x'.repeat(600) }))}]`,
    ]
    const { tool } = await start(t, {
      events: {
        runSql: async query => {
          asked = query
          return ok({ columns: ['event', 'n', 'p'], types: [], rows, rowCountMax: 100, hasMore: true })
        },
      },
    })
    const { status, success, content, structured_content } = await tool('execute_sql', {
      query: 'SELECT 1',
      truncate: true,
    })
    assert.deepEqual([status, success], [200, true])
    const counts = { defaultRowCount: 100, rowCountMax: 50_000 }
    assert.deepEqual(asked, { projectId: 1, sql: 'SELECT 1', values: {}, ...counts, closedTables: [] })
    const lines = content.split('\n')
    assert.deepEqual(lines.slice(0, 3), [
      'event|n|p',
      '"a|b"|12345678901234567890|(null)',
      '"line\\nbreak"|1.0|"(null)"',
    ])
    assert.match(lines[3], /^plain\|true\|\{"long":"x+\.\.\.truncated$/)
    assert.match(content, /Only the first 100 rows are shown/)
    assert.match(content, /1 values were cut/)
    assert.deepEqual(structured_content, {
      ...{ query: { kind: 'HogQLQuery', query: 'SELECT 1' }, hasMore: true, limit: 100, complete: true },
    })
    const whole = await tool('execute_sql', { query: 'SELECT 1', truncate: false })
    assert.match(whole.content, /x{600}/)
  })

  it('rejects a result whose row is too large to format', async t => {
    const rows = [JSON.stringify(['x'.repeat(1024 * 1024)])]
    const { tool } = await start(t, {
      events: { runSql: async () => ok({ columns: ['p'], types: [], rows, rowCountMax: 100, hasMore: false }) },
    })
    const { status, code, success } = await tool('execute_sql', { query: 'SELECT 1' })
    assert.deepEqual([status, code, success], [400, 'query_too_large', false])
  })

  it('fails with the errors of /query/, in the format that PostHog’s tools expect', async t => {
    const failures = [
      [{ kind: 'refused', detail: 'Unknown function', at: 7 }, 400, 'invalid_input', 'args.query'],
      [{ kind: 'failed', detail: "Unknown identifier 'properties.plan'" }, 400, 'invalid_query', 'args.query'],
      [{ kind: 'forbidden' }, 403, 'permission_denied', null],
    ] as const
    let failure: (typeof failures)[number][0] | null = null
    const { tool } = await start(t, {
      events: {
        runSql: async () => {
          if (failure === null) throw new PortError('event-store', 'full', new Error('x'))
          return err(failure)
        },
      },
    })
    for (const [what, status, code, attr] of failures) {
      failure = what
      const told = await tool('execute_sql', { query: 'SELECT nothing' })
      assert.deepEqual([told.status, told.code, told.attr, told.success], [status, code, attr, false])
      assert.equal(told.content, `Tool failed: ${told.detail}`)
      if (what.kind === 'failed') assert.match(told.detail, /JSONExtractString\(properties, 'plan'\)/)
    }
    failure = null
    const busy = await tool('execute_sql', { query: 'SELECT 1' })
    assert.deepEqual([busy.status, busy.code, busy.success], [503, 'event_store_busy', false])
  })

  it('rejects missing arguments, unsupported options and unknown tools', async t => {
    const { tool } = await start(t)
    const refused: [object, string, string][] = [
      [{}, 'required', 'args.query'],
      [{ query: 'SELECT 1', connectionId: 'pg' }, 'invalid_input', 'args.connectionId'],
      [{ query: 'SELECT 1', sendRawQuery: true }, 'invalid_input', 'args.sendRawQuery'],
      [{ query: 'SELECT 1', variables: {} }, 'invalid_input', 'args.variables'],
    ]
    for (const [args, code, attr] of refused) {
      const told = await tool('execute_sql', args)
      assert.deepEqual([told.status, told.code, told.attr], [400, code, attr], JSON.stringify(args))
    }
    assert.equal(
      (await tool('execute_sql', { query: 'SELECT 1', connectionId: null, sendRawQuery: false })).status,
      200,
    )
    assert.equal((await tool('docs_search', {})).status, 404)
  })
})

describe('read_taxonomy', () => {
  const property = (name: string, type: 'String' | null) => ({ name, type, isSeenOnEvents: true })

  it('lists events by frequency, and the properties of an event and their values', async t => {
    let listed: EventNameQuery | undefined
    const valuesAsked: PropertyValueQuery[] = []
    const { api, tool } = await start(t, {
      events: {
        listEventNames: async query => {
          listed = query
          return {
            count: 3,
            results: [
              { name: 'paid', ...seen },
              { name: 'odd\n- `x`', ...seen },
            ],
          }
        },
        listPropertyNames: async ({ kind, events, names }) => {
          const all = typeof kind === 'object' ? ['seats'] : kind === 'person' ? ['email'] : ['plan', 'mixed']
          const known = all.filter(name => names?.includes(name) ?? true)
          const found = events?.includes('none') ? [] : known
          return { count: found.length, results: found.map(name => property(name, name === 'mixed' ? null : 'String')) }
        },
        listPropertyValues: async query => {
          valuesAsked.push(query)
          const results =
            query.name === 'no'
              ? []
              : [
                  { valueJson: '"pro"', count: 3 },
                  { valueJson: '1.50', count: 1 },
                ]
          return { results, valueCount: results.length * 2, isSample: true }
        },
      },
    })
    await api.commit({ groupTypes: [{ projectId: 1, name: 'company', index: 2 }] })
    const read = async (query: object) => {
      const told = await tool('read_taxonomy', { query })
      return told.status === 200 ? told.content : [told.status, told.code, told.attr]
    }
    const lesserKey = await api.addKey(['query:read'])
    for (const [entity, lacking] of [
      ['person', 'person:read'],
      ['company', 'group:read'],
    ]) {
      const query = { kind: 'entity_property_values', entity, property_name: 'seats' }
      const path = '/api/environments/1/mcp_tools/read_taxonomy/'
      const { status, body } = await api.call('POST', path, { key: lesserKey, body: { args: { query } } })
      assert.deepEqual([status, body.detail], [403, `This personal API key lacks the scope '${lacking}'.`])
    }
    assert.equal(
      await read({ kind: 'events', limit: 2 }),
      'events:\n- `paid`\n- "odd\\n- `x`"\n\nMore events are available: use offset 2.',
    )
    assert.deepEqual(listed, { projectId: 1, limit: 2, offset: 0, order: { by: 'count', isDescending: true } })
    const properties = await read({ kind: 'event_properties', event_name: 'paid' })
    assert.match(properties, /^properties:\n- `plan` \(String\)\n- `mixed` \(several types/)
    assert.match(await read({ kind: 'entity_properties', entity: 'persons' }), /`email`/)
    assert.match(await read({ kind: 'entity_properties', entity: 'companies' }), /`seats`/)
    const values = await read({ kind: 'event_property_values', event_name: 'paid', property_name: 'plan' })
    assert.match(values, /^"pro", 1\.50 and 2 more distinct values\n\nOnly the newest 2,000 events were examined/)
    await read({ kind: 'entity_property_values', entity: 'person', property_name: 'email' })
    await read({ kind: 'entity_property_values', entity: 'company', property_name: 'seats' })
    assert.deepEqual(valuesAsked, [
      { projectId: 1, of: { event: 'paid' }, name: 'plan', limit: 25 },
      { projectId: 1, of: 'person', name: 'email', limit: 25 },
      { projectId: 1, of: { groupTypeIndex: 2 }, name: 'seats', limit: 25 },
    ])
    const refused: [object, number, string, string | null][] = [
      [{}, 400, 'required', 'args.query.kind'],
      [{ kind: 'toString' }, 400, 'invalid_input', 'args.query.kind'],
      [{ kind: 'events', limit: 501 }, 400, 'invalid_input', 'args.query.limit'],
      [{ kind: 'events', search: 'p' }, 400, 'invalid_input', 'args.query.search'],
      [{ kind: 'event_properties' }, 400, 'required', 'args.query.event_name'],
      [{ kind: 'event_properties', event_name: 7 }, 400, 'invalid', 'args.query.event_name'],
      [{ kind: 'event_properties', event_name: 'none' }, 404, 'not_found', null],
      [{ kind: 'event_property_values', event_name: 'paid', property_name: 'no' }, 404, 'not_found', null],
      [{ kind: 'entity_properties', entity: 'sessions' }, 400, 'invalid_input', 'args.query.entity'],
      [{ kind: 'entity_properties', entity: 'team' }, 400, 'invalid_input', 'args.query.entity'],
      [{ kind: 'action_properties', action_id: 1 }, 404, 'not_found', null],
    ]
    for (const [query, ...error] of refused) assert.deepEqual(await read(query), error, JSON.stringify(query))
  })
})
