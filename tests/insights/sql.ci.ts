// SQL over HTTP, on the real engine: what a caller sends and gets.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { parseJson } from '#core/json.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { endpointByUrl, eventStoreForTests } from '../support/event-store-for-tests.ts'
import { startManagement } from '../support/management-api.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const held = eventStoreForTests()
const uuid = (n: number) => `0192a4b0-0000-7000-8000-${String(n).padStart(12, '0')}`
let projectCount = 1

/** A new project, and a way to ask it with SQL. */
async function startSql(t: TestContext, events: EventStore = held.store) {
  const api = await startManagement(t, { events })
  let project = await api.call('POST', '/api/projects/', { body: { name: 'SQL' } })
  // The event store is shared by the tests of this file, the ids of projects are not.
  while (project.body.id <= projectCount) project = await api.call('POST', '/api/projects/', { body: { name: 'SQL' } })
  projectCount = project.body.id
  const projectId = projectCount
  const call = (query: unknown, values?: unknown) =>
    api.call('POST', `/api/projects/${projectId}/query/`, {
      body: { query: { kind: 'HogQLQuery', query, ...(values !== undefined && { values }) } },
    })
  return {
    api,
    projectId,
    call,
    async results(query: string, values?: unknown) {
      const { status, text, body } = await call(query, values)
      assert.equal(status, 200, text)
      return body.results
    },
    async refusal(query: unknown, values?: unknown) {
      const { status, body } = await call(query, values)
      return `${status} ${body.code} ${body.attr ?? ''}: ${body.detail}`
    },
    insert: (...rows: Partial<StoredEvent>[]) =>
      held.insert({ events: rows.map(event => aStoredEvent({ projectId, ...event })) }),
  }
}

describe('POST …/query/ with a HogQLQuery', () => {
  it('answers in PostHog’s format, each event once, with current persons', async t => {
    const { insert, call, results, projectId } = await startSql(t)
    const properties = { $browser: 'Firefox', id: 1 }
    const seen = { event: 'seen', uuid: uuid(1), distinctId: 'ada', propertiesJson: JSON.stringify(properties) }
    await insert(
      seen,
      { ...seen, ...imported },
      { event: 'paid', uuid: uuid(2), distinctId: 'anonymous', personId: uuid(22) },
    )
    await insert(seen)
    const override = { projectId, distinctId: 'anonymous', personId: uuid(11), version: 1 }
    await held.insert({ overrides: [override] })
    await held.insert({ pendingEvents: [aStoredEvent({ projectId, event: 'pending', importJobId: 7 })] })
    const { body } = await call(
      "SELECT event, count() AS n, any(JSONExtractString(properties, '$browser')) AS browser FROM events GROUP BY event ORDER BY event",
    )
    assert.deepEqual(body, {
      columns: ['event', 'n', 'browser'],
      types: [
        ['event', 'String'],
        ['n', 'UInt64'],
        ['browser', 'String'],
      ],
      hasMore: false,
      limit: 100,
      offset: 0,
      error: null,
      complete: true,
      results: [
        ['paid', 1, ''],
        ['seen', 1, 'Firefox'],
      ],
    })
    assert.deepEqual(await results("SELECT person_id FROM events WHERE event = 'paid'"), [[uuid(11)]])
  })

  it('has current persons and groups, once the mirror is filled', async t => {
    const { results, refusal, projectId } = await startSql(t)
    await held.store.beginMirrorFill('f', 1)
    assert.match(await refusal('SELECT * FROM persons'), /^503 persons_filling/)
    assert.match(await refusal('SELECT * FROM groups'), /^503 persons_filling/)
    assert.deepEqual(await results('SELECT count() FROM events'), [[0]])
    const person = { projectId, uuid: uuid(1), createdAtMs: 0, isIdentified: true, propertiesJson: '{"plan":"free"}' }
    const group = { projectId, typeIndex: 0, key: 'acme', createdAtMs: 0, propertiesJson: '{"size":7}' }
    await held.store.writeSubjects({ persons: [person], groups: [group] }, 2)
    const paying = { ...person, propertiesJson: '{"plan":"paid"}' }
    await held.store.writeSubjects({ persons: [paying, { ...person, projectId: projectId + 1 }] }, 3)
    await held.store.writeSubjects({ persons: [{ ...person, uuid: uuid(2) }] }, 3)
    await held.store.writeSubjects({ deletedPersons: [{ projectId, uuid: uuid(2) }] }, 4)
    await held.store.completeMirrorFill('f', 5)
    assert.deepEqual(await results('SELECT id, properties, is_identified FROM persons'), [
      [uuid(1), '{"plan":"paid"}', true],
    ])
    assert.deepEqual(
      await results("SELECT group_type_index, group_key, JSONExtractInt(properties, 'size') FROM groups"),
      [[0, 'acme', 7]],
    )
  })

  it('reads persons and groups only for keys with their scopes', async t => {
    const { api, projectId } = await startSql(t)
    const ask = async (key: string, query: string) => {
      const body = { query: { kind: 'HogQLQuery', query } }
      const { status, body: answered } = await api.call('POST', `/api/projects/${projectId}/query/`, { key, body })
      return status === 403 ? answered.detail : status
    }
    const onEvents = await api.addKey(['query:read'])
    const onAll = await api.addKey(['query:read', 'person:read', 'group:write'])
    for (const [query, scope] of [
      ['SELECT properties FROM persons', 'person:read'],
      ['SELECT e.uuid FROM events AS e LEFT JOIN `persons` AS p ON e.person_id = p.id', 'person:read'],
      ['SELECT 1 FROM events, persons', 'person:read'],
      ["WITH toUUID(event) AS id SELECT uuid FROM events WHERE (id, '', now(), true) IN persons", 'person:read'],
      ['SELECT * FROM (SELECT id FROM persons) UNION ALL SELECT id FROM "persons"', 'person:read'],
      ['SELECT group_key FROM groups', 'group:read'],
    ] as const) {
      assert.ok(String(await ask(onEvents, query)).includes(`lacks the scope '${scope}'`), query)
      assert.equal(await ask(onAll, query), 200, query)
    }
    assert.equal(await ask(onEvents, 'SELECT uniq(person_id) AS persons FROM events ORDER BY persons'), 200)
  })

  it('includes stored and deduplicated flag calls', async t => {
    const { insert, results, projectId } = await startSql(t)
    const called = { event: '$feature_flag_called', flagCalled: 'beta', flagResponse: 'true', distinctId: 'ada' }
    const timestampMs = Date.parse('2026-11-05T10:00:00Z')
    await insert({ ...called, uuid: uuid(1), personId: uuid(11), timestampMs } as Partial<StoredEvent>)
    const repeated = {
      projectId,
      distinctId: 'ada',
      event: '$feature_flag_called',
      timestampMs,
      chargedAtMs: timestampMs,
      flag: 'beta',
      response: 'true',
    }
    await held.insert({
      deduplicated: [
        { ...repeated, uuid: uuid(2) },
        { ...repeated, uuid: uuid(1) },
      ] as never,
    })
    assert.deepEqual(
      await results('SELECT flag_key, flag_response, person_id, is_thinned FROM flag_calls ORDER BY is_thinned'),
      [
        ['beta', 'true', uuid(11), false],
        ['beta', 'true', uuid(11), true],
      ],
    )
  })

  it('preserves the digits of 64-bit numbers, even in `values`', async t => {
    const { api, projectId, results } = await startSql(t)
    const body = `{"query":{"kind":"HogQLQuery","query":"SELECT {big}, toInt64(-9007199254740993), toDecimal128('1.10', 2), {t}, {l}, {none}","values":{"big":18446744073709551615,"t":"it's {big} \\\\ '","l":["a","b'"],"none":null}}}`
    const { text, body: answer } = await api.call('POST', `/api/projects/${projectId}/query/`, { body })
    assert.match(
      text,
      /"results":\[\[18446744073709551615, ?-9007199254740993, ?1\.1, ?"it's \{big\} \\\\ '", ?\["a","b'"\], ?null\]\]/,
    )
    assert.equal(answer.results.length, 1)
    assert.doesNotThrow(() => parseJson(text))
    assert.deepEqual(
      await results('SELECT {n} + {f}, {d} < toDateTime64({e}, 3), {b}', {
        n: 1,
        f: 0.5,
        d: '2026-01-01',
        e: '2026-01-02',
        b: false,
      }),
      [[1.5, 1, false]],
    )
    assert.deepEqual(await results('SELECT count() FROM numbers(10) WHERE number IN {ids}', { ids: [1, 2, 99] }), [[2]])
    const sent = (query: string, values: string) =>
      api.call('POST', `/api/projects/${projectId}/query/`, {
        body: `{"query":{"kind":"HogQLQuery","query":"${query}","values":${values}}}`,
      })
    const list = await sent('SELECT {ids}', '{"ids":[-1,18446744073709551615]}')
    assert.match(list.text, /"results":\[\[\[-1, ?18446744073709551615\]\]\]/)
    const found = await sent(
      'SELECT count() FROM (SELECT 18446744073709551614 AS x) WHERE x IN {ids} OR has({ids}, x)',
      '{"ids":[1,18446744073709551615]}',
    )
    assert.deepEqual(found.body.results, [[0]])
  })

  it('accepts long lists and long texts in `values`', async t => {
    const { results, refusal } = await startSql(t)
    const numbers = Array.from({ length: 30_000 }, (_, index) => index * 2)
    assert.deepEqual(
      await results('SELECT countIf(number IN {ids}), length({ids:Array(UInt32)}) FROM numbers(100000)', {
        ids: numbers,
      }),
      [[30_000, 30_000]],
    )
    const texts = numbers.map(number => `'id' \\ 😀 ${number}`)
    assert.deepEqual(
      await results(
        "SELECT countIf(concat('''id'' \\\\ 😀 ', toString(number)) IN {texts}), {texts_0} FROM numbers(100000)",
        {
          texts,
          texts_0: 'own',
        },
      ),
      [[30_000, 'own']],
    )
    const text = `${"\\'😀".repeat(60_000)}end`
    assert.deepEqual(await results('SELECT {text} = {text:String}, length({text}), right({text}, 3)', { text }), [
      [1, Buffer.byteLength(text), 'end'],
    ])
    assert.deepEqual(await results('SELECT {text}, {list}', { text: '', list: [] }), [['', []]])
    const long = (characters: number) => `SELECT {n} /*${'é'.repeat(characters)}*/`
    assert.deepEqual(await results(long(65_000), { n: 1 }), [[1]])
    assert.match(
      await refusal(long(66_000), { n: 1 }),
      /^400 invalid_input query.query: With its values, the query has/,
    )
  })

  it('returns 100 rows by default, and at most 50,000', async t => {
    const { call } = await startSql(t)
    const some = await call('SELECT number FROM numbers(1000000)')
    assert.deepEqual([some.body.results.length, some.body.hasMore, some.body.limit], [100, true, 100])
    const more = await call('SELECT number FROM numbers(1000000) LIMIT 300')
    assert.deepEqual([more.body.results.length, more.body.hasMore], [300, false])
    const most = await call('SELECT number FROM numbers(1000000) LIMIT 60000')
    assert.deepEqual([most.body.results.length, most.body.hasMore, most.body.limit], [50_000, true, 50_000])
    assert.deepEqual((await call('SELECT 1 WHERE 0')).body.results, [])
  })

  it('supports functions with special syntax in the engine’s parser', async t => {
    const { results, refusal } = await startSql(t)
    const day = "toDate('2026-01-31')"
    assert.deepEqual(
      await results(
        `SELECT EXTRACT(YEAR FROM ${day}), TRIM(BOTH 'a' FROM 'aba'), LTRIM(' x'), RTRIM('x '), DATE_ADD(DAY, 1, ${day}),
          dateSub(${day}, INTERVAL 1 MONTH), TIMESTAMPADD(YEAR, 1, ${day}), timestamp_sub(DAY, 1, ${day}), untuple((1, 2))`,
      ),
      [[2026, 'b', 'x', 'x', '2026-02-01', '2025-12-31', '2027-01-31', '2026-01-30', 1, 2]],
    )
    assert.match(await refusal("SELECT TRIM(BOTH file('x') FROM 'a')"), /^400 invalid_input query.query: file/)
  })

  it('supports the documented table functions that generate rows', async t => {
    const { results, refusal } = await startSql(t)
    assert.deepEqual(
      await results(
        'SELECT a.number, b.number, s.generate_series FROM numbers(1) a, numbers_mt(1) b, generate_series(7, 7) s',
      ),
      [[0, 0, 7]],
    )
    assert.match(await refusal('SELECT * FROM zeros(2)'), /^400 invalid_input query.query: zeros\(…\) is not allowed: /)
  })

  it('reports what is wrong with a query, and where, without revealing the tables behind the views', async t => {
    const { refusal } = await startSql(t)
    const said = await Promise.all([
      refusal('SELECT evnt FROM events'),
      refusal('SELEC 1'),
      refusal('SELECT 1,\n  ) x'),
      refusal('SELECT uniqIff(1, 1)'),
      refusal("SELECT toInt32('x')"),
      refusal('SELECT * FROM nowhere'),
      refusal('SELECT {x}', {}),
      refusal('SELECT 1 FORMAT CSV'),
      refusal('SELECT 1 SETTINGS max_threads = 8'),
      refusal('SELECT throwIf(number = 50) FROM numbers(100)'),
      refusal(7),
      refusal('SELECT 1', []),
    ])
    for (const text of said) {
      assert.match(text, /^400 /, text)
      assert.doesNotMatch(text, /pennon|__table|version|DB::|Stack|Code:/i, text)
    }
    assert.match(said[0]!, /invalid_query query.query: Unknown expression identifier `evnt`/)
    assert.match(said[1]!, /invalid_input query.query: Only queries are run here.*line 1, col 1/)
    assert.match(said[2]!, /invalid_query query.query: Syntax error: failed at position \d+ .*line 2/)
    assert.match(said[3]!, /uniqIff.*line 1, col 8/)
    assert.match(said[5]!, /nowhere/)
    assert.match(said[6]!, /Missing value for \{x\}.*line 1, col 8/)
    assert.match(said[10]!, /invalid query.query/)
    assert.match(await refusal("SELECT throwIf(1, 'PENNON: own')"), /^400 invalid_query query.query: PENNON: own/)
    const asInHogQL: [sql: string, expected: string][] = [
      ['SELECT sum(properties.price) FROM events', "JSONExtractFloat(properties, 'price')"],
      ['SELECT e.properties.`$os` FROM events e', "JSONExtractString(e.properties, '$os')"],
      ['SELECT properties.$os FROM events', "JSONExtractString(properties, '$os')"],
      ["SELECT properties['price'] FROM events", "JSONExtractString(properties, 'price')"],
      ['SELECT person.properties.email FROM events', "JSONExtractString(person_properties, 'email')"],
    ]
    for (const [sql, expected] of asInHogQL) assert.ok((await refusal(sql)).includes(expected), await refusal(sql))
  })

  it('reports an invalid aggregate state, whichever part of the engine detects it', async t => {
    const { refusal, results } = await startSql(t)
    const states: [bytes: string, type: string][] = [
      ["'garbage'", 'sum, UInt64'],
      ["unhex('ff')", 'uniq, String'],
      ["unhex('ffffffffffffffff7f')", 'groupArray, String'],
      ["repeat('a', 100)", 'quantilesGK(100, 0.5), Float64'],
      // A library within the engine, whose errors have a form of their own.
      ["unhex('010102030405')", 'groupBitmap, UInt32'],
    ]
    for (const [bytes, type] of states)
      assert.match(
        await refusal(`SELECT finalizeAggregation(CAST(${bytes}, 'AggregateFunction(${type})'))`),
        /^400 invalid_query query.query: /,
        type,
      )
    assert.deepEqual(await results("SELECT finalizeAggregation(initializeAggregation('sumState', 7))"), [[7]])
  })

  it('reports that the SQL is incomplete when a query ends too early', async t => {
    const { refusal, results } = await startSql(t)
    for (const sql of [
      'SELECT',
      'SELECT 1,',
      'SELECT * FROM',
      'SELECT event FROM events WHERE',
      'SELECT event FROM events ORDER BY',
      'SELECT event FROM events LIMIT',
      // The text that Pennon appends to a query would complete it.
      'WITH 1 AS FORMAT SELECT',
      'WITH FORMAT AS (SELECT 1) SELECT * FROM',
    ])
      assert.match(await refusal(sql), /^400 invalid_query query.query: The query is incomplete/, sql)
    assert.match(await refusal('SELECT FORMAT'), /Unknown expression identifier `FORMAT`/)
    assert.deepEqual(await results('SELECT 1 AS FORMAT, FORMAT'), [[1, 1]])
  })

  it('rejects the engine’s own tables, in every notation', async t => {
    const { refusal, results } = await startSql(t)
    for (const sql of [
      'SELECT create_table_query FROM system.tables',
      'SELECT data_path FROM system.databases',
      'SELECT * FROM `system`.columns',
      'SELECT * FROM "SYSTEM" . /* x */ "one"',
      'SELECT 1 WHERE 1 IN (SELECT 1 FROM system.one)',
      'WITH x AS (SELECT * FROM system.completions) SELECT * FROM x',
      'SELECT * FROM information_schema.tables',
    ])
      assert.match(await refusal(sql), /^403 permission_denied/, sql)
    assert.deepEqual(await results("SELECT 'system.tables', 1 AS system"), [['system.tables', 1]])
  })

  it('stops a query that takes too much time or memory, and reports it', async t => {
    const { refusal } = await startSql(t)
    await held.engine.restart({ queryTimeoutSeconds: 1, queryMemoryBytes: 60 * 1024 * 1024 })
    const short = createClickHouseEventStore({
      endpoint: held.engine.endpoint,
      clock: { nowMs: Date.now },
      queryTimeoutSeconds: 1,
    })
    t.after(async () => {
      await short.close()
      await held.engine.restart({})
    })
    const limited = await startSql(t, short)
    assert.match(await limited.refusal('SELECT sum(number) FROM numbers(1000000000000)'), /^503 event_store_timeout/)
    assert.match(await limited.refusal('SELECT uniqExact(number) FROM numbers(100000000)'), /^400 query_too_large/)
    assert.ok(refusal)
  })

  it('tells the operator of a separate ClickHouse server which setup SQL queries need', async t => {
    const theirs = createClickHouseEventStore({
      endpoint: () => endpointByUrl(held.engine),
      clock: { nowMs: Date.now },
    })
    t.after(() => theirs.close())
    const { refusal } = await startSql(t, theirs)
    assert.match(await refusal('SELECT 1'), /^503 sql_not_set_up : .*GRANT CREATE USER/)
  })
})
