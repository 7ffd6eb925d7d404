// SQL of users against the running engine: other projects' rows, files, the network, the server, writes, settings and
// floods, one by one. Whatever our own check refuses is also tried directly on the engine if its access rights should
// refuse it too.

import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { checkSql } from '#core/sql/check-sql.ts'
import { createClickHouseClients } from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import {
  buildSqlUserLogin,
  formatViewsDatabaseName,
  type SqlScope,
} from '../../src/adapters/clickhouse/connection/sql-users.ts'
import { createSqlSetUp } from '../../src/adapters/clickhouse/sql/set-up.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { type ManagementApi, startManagement } from '../support/management-api.ts'
import { aStoredEvent, imported } from '../support/values.ts'

const secret = 'the-other-projects-secret'
const uuid = (n: number) => `0192a4b0-0000-7000-8000-${String(n).padStart(12, '0')}`

describe('SQL written by users', () => {
  let api: ManagementApi
  let file: string
  let connections = 0
  const opened: (() => Promise<void>)[] = []
  const server = createServer(socket => {
    connections++
    socket.destroy()
  })
  let port = 0

  const held = eventStoreForTests({
    begin: async () => {
      const own = [1, 2, 3].map(n =>
        aStoredEvent({ projectId: 1, event: 'own', uuid: uuid(n), distinctId: `own-${n}` }),
      )
      const others = [1, 2, 3].map(n =>
        aStoredEvent({
          projectId: 2,
          event: secret,
          uuid: uuid(n),
          distinctId: secret,
          propertiesJson: `{"x":"${secret}"}`,
        }),
      )
      await held.insert({
        events: [...own, ...others],
        overrides: [{ projectId: 2, distinctId: 'own-1', personId: uuid(99), version: 9 }],
        deduplicated: [
          {
            projectId: 2,
            uuid: uuid(9),
            distinctId: secret,
            timestampMs: 0,
            chargedAtMs: 0,
            flag: secret,
            response: secret,
          },
        ],
      })
      await held.store.beginMirrorFill('f', 1)
      const theirs = { projectId: 2, createdAtMs: 0, isIdentified: true, propertiesJson: `{"x":"${secret}"}` }
      await held.store.writeSubjects(
        { persons: [{ ...theirs, uuid: uuid(9) }], groups: [{ ...theirs, typeIndex: 0, key: secret }] },
        2,
      )
      await held.store.completeMirrorFill('f', 3)
      api = await startManagement({ after: (done: () => Promise<void>) => opened.push(done) } as never, {
        events: held.store,
      })
      await api.call('POST', '/api/projects/', { body: { name: 'other' } })
      file = join(held.engine.dataFolder, 'secret.txt')
      writeFileSync(file, secret)
      await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
      port = (server.address() as { port: number }).port
    },
    end: async () => {
      server.close()
      for (const done of opened) await done()
    },
  })

  const ask = (query: string, values: object = {}, options: { key?: string; job?: number } = {}) =>
    api.call('POST', `/api/projects/1/query/${options.job === undefined ? '' : `?import_job=${options.job}`}`, {
      body: { query: { kind: 'HogQLQuery', query, values } },
      ...options,
    })

  /** Runs a query as an engine's user, bypassing our own check; only the headers determine the project and the job. */
  async function onEngine(
    sql: string,
    search = '',
    headers: Record<string, string> = { 'Pennon-Project': '1' },
    scope: SqlScope = 'visible',
  ) {
    const { url, analyst } = held.engine.endpoint()
    const { username, password } = buildSqlUserLogin(analyst, scope)
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const response = await fetch(`${url}/?database=${formatViewsDatabaseName('pennon', scope)}${search}`, {
      method: 'POST',
      body: sql,
      headers: { ...headers, Authorization: authorization },
    })
    return { status: response.status, text: await response.text() }
  }

  it('reads only rows of its project', async () => {
    const { body, text } = await ask('SELECT count() FROM events')
    assert.deepEqual(body.results, [[3]], text)
    const queries = [
      'SELECT * FROM events',
      'SELECT * FROM events UNION ALL SELECT * FROM events',
      'SELECT * FROM pennon_sql.events',
      'SELECT * FROM persons',
      'SELECT * FROM groups',
      'SELECT * FROM flag_calls',
      'SELECT person_id FROM events',
      'SELECT * FROM events AS a JOIN events AS b ON a.uuid = b.uuid',
      'WITH e AS (SELECT * FROM events) SELECT * FROM e',
      'SELECT * FROM events WHERE project_id = 2 OR 1 = 1',
      "SELECT * FROM events WHERE event = '' OR 1 = 1 -- ",
      "SELECT getSubcolumn(tuple(properties), '1') FROM events",
      'SELECT * REPLACE (1 AS event) FROM events',
      'SELECT arrayJoin(groupArray(properties)) FROM events',
      'SELECT * FROM events WHERE event IN (SELECT event FROM events)',
    ]
    for (const query of queries) {
      const answer = await ask(`${query}`)
      assert.ok([200, 400].includes(answer.status), `${query}: ${answer.text}`)
      assert.ok(!answer.text.includes(secret), query)
      assert.ok(!answer.text.includes(uuid(99)), query)
    }
  })

  it('learns nothing about other rows from errors and counts', async () => {
    // A condition that failed on a row of the other project would reveal its content.
    const conditions = [
      `throwIf(properties LIKE '%${secret}%') = 0`,
      `throwIf(event = '${secret}') = 0`,
      `toUInt8(if(distinct_id = '${secret}', 'x', '1')) = 1`,
    ]
    for (const condition of conditions) {
      const { status, body, text } = await ask(`SELECT count() FROM events WHERE ${condition}`)
      assert.equal(status, 200, text)
      assert.deepEqual(body.results, [[3]])
    }
    const { body } = await ask(`SELECT count() FROM flag_calls WHERE throwIf(flag_key = '${secret}') = 0`)
    assert.deepEqual(body.results, [[0]])
  })

  it('reads only the pending rows of the import job that the request names', async () => {
    const createJob = async (project: number): Promise<number> =>
      (await api.call('POST', `/api/projects/${project}/import_jobs/`, { body: { source: 'csv' } })).body.number
    const [job, otherJob, theirJob] = [await createJob(1), await createJob(1), await createJob(2)]
    const pending = (projectId: number, importJobId: number, text: string) =>
      imported(
        aStoredEvent({ projectId, event: text, distinctId: text, propertiesJson: `{"x":"${text}"}`, flagCalled: text }),
        importJobId,
      )
    const call = { ...pending(1, otherJob, secret), event: '$feature_flag_called' }
    await held.insert({
      pendingEvents: [pending(1, job, 'own'), pending(1, otherJob, secret), call, pending(2, theirJob, secret)],
    })
    const queries = [
      'SELECT * FROM events',
      'SELECT * FROM pennon_sql_job.events',
      'SELECT * FROM events AS a JOIN events AS b ON a.uuid != b.uuid',
      'SELECT arrayJoin(groupArray(properties)) FROM events',
      'SELECT * FROM events WHERE import_job_id > 0 OR 1 = 1',
      `SELECT * FROM events WHERE import_job_id = ${otherJob}`,
      'SELECT * FROM flag_calls',
      `SELECT count() FROM events WHERE throwIf(properties LIKE '%${secret}%') = 0`,
      `SELECT count() FROM events WHERE toUInt8(if(distinct_id = '${secret}', 'x', '1')) = 1`,
      `SELECT count() FROM flag_calls WHERE throwIf(flag_key = '${secret}') = 0`,
    ]
    for (const query of queries) {
      const { status, text } = await ask(query, {}, { job })
      assert.equal(status, 200, `${query}: ${text}`)
      assert.ok(!text.includes(secret), query)
    }
    assert.deepEqual((await ask('SELECT count() FROM events', {}, { job })).body.results, [[4]])
    assert.deepEqual((await ask('SELECT count() FROM events', {}, { job: otherJob })).body.results, [[5]])
    assert.equal((await ask('SELECT count() FROM events', {}, { job: theirJob })).status, 404)
    assert.deepEqual((await ask('SELECT count() FROM events')).body.results, [[3]])
    for (const [query, options] of [
      ['SELECT * FROM pennon_sql_job.events', {}],
      ['SELECT * FROM pennon.events_pending', {}],
      ['SELECT * FROM pennon_sql.events', { job }],
      ['SELECT * FROM pennon.events_pending', { job }],
      ['SELECT * FROM pennon.events', { job }],
      ['SELECT * FROM system.tables', { job }],
    ] as const)
      assert.equal((await ask(query, {}, options)).status, 403, query)

    const headers = { 'Pennon-Project': '1', 'Pennon-Import-Job': String(job) }
    const count = async (theirs: Record<string, string>, scope: SqlScope = 'job', sql = 'SELECT count() FROM events') =>
      onEngine(sql, '', theirs, scope)
    assert.match((await count(headers)).text, /^4\b/)
    assert.match((await count({ ...headers, 'Pennon-Project': '2' })).text, /^3\b/) // its visible rows only
    for (const name of ['', 'x', `${job} OR 1`, `${job},${otherJob}`, '-1'])
      assert.notEqual((await count({ ...headers, 'Pennon-Import-Job': name })).status, 200, name)
    assert.notEqual((await count({ 'Pennon-Project': '1' })).status, 200)
    for (const [scope, sql] of [
      ['visible', 'SELECT count() FROM pennon_sql_job.events'],
      ['visible', 'SELECT count() FROM pennon.events_pending'],
      ['job', 'SELECT count() FROM pennon_sql.events'],
      ['job', 'SELECT count() FROM pennon.events_pending'],
      ['job', 'SELECT count() FROM pennon.events'],
    ] as const)
      assert.match((await count(headers, scope, sql)).text, /ACCESS_DENIED/, sql)
  })

  it('reaches no tables, users or functions except the views and harmless system tables', async () => {
    const forbidden = [
      'SELECT * FROM pennon.events',
      'SELECT * FROM `pennon`.`events`',
      'SELECT * FROM "pennon"."persons"',
      'SELECT * FROM pennon.worker_marks',
      'SELECT * FROM default.`/etc/passwd`',
      `SELECT * FROM \`${'/etc/passwd'}\``,
      'SELECT * FROM system.users',
      'SELECT * FROM system.grants',
      'SELECT * FROM system.row_policies',
      'SELECT * FROM system.processes',
      'SELECT * FROM system.query_log',
      'SELECT * FROM system.server_settings',
      'SELECT * FROM system.errors',
      'SELECT * FROM system.disks',
      'SELECT * FROM system.dictionaries',
      'SELECT * FROM system.clusters',
      'SELECT * FROM system.stack_trace',
      'SELECT * FROM system.backups',
    ]
    for (const query of forbidden)
      for (const { status, text } of [await ask(query), await onEngine(query)]) {
        assert.ok(status >= 400, `${query}: ${status} ${text}`)
        assert.ok(!text.includes(secret) && !text.includes('root:'), query)
      }
    // Lists of what the user may read, which drivers need to read.
    const empty = ['system.parts', "information_schema.tables WHERE table_schema = 'pennon'"]
    for (const list of empty) {
      assert.ok((await ask(`SELECT * FROM ${list}`)).status >= 400, list)
      assert.deepEqual(
        await onEngine(`SELECT * FROM ${list}`).then(({ status, text }) => [status, text]),
        [200, ''],
        list,
      )
    }
  })

  it('can call no table function that reaches files, the network or other tables, or that runs text', async () => {
    const place = `127.0.0.1:${port}`
    const functions = [
      `file('${'secret.txt'}')`,
      `url('http://${place}/', CSV, 'a String')`,
      `urlCluster('default', 'http://${place}/', CSV)`,
      `s3('http://${place}/b/k', CSV, 'a String')`,
      `remote('${place}', 'pennon.events')`,
      `remoteSecure('${place}', 'pennon.events')`,
      `cluster('default', 'pennon.events')`,
      `clusterAllReplicas('default', 'pennon.events')`,
      `mysql('${place}', 'a', 'b', 'c', 'd')`,
      `postgresql('${place}', 'a', 'b', 'c', 'd')`,
      `mongodb('${place}', 'a', 'b', 'c', 'd', 'a String')`,
      `redis('${place}', 'key', 'key String')`,
      `sqlite('${file}', 'x')`,
      `executable('cat', CSV, 'a String')`,
      `hdfs('hdfs://${place}/x')`,
      `jdbc('${place}', 'x')`,
      `odbc('DSN=x', 'x')`,
      `iceberg('http://${place}/')`,
      `deltaLake('http://${place}/')`,
      `azureBlobStorage('http://${place}', 'a', 'b')`,
      `filesystem('/')`,
      `merge('pennon', 'events')`,
      `merge(REGEXP('pennon'), 'events')`,
      `dictionary('x')`,
      `loop('pennon', 'events')`,
      `view(SELECT 1)`,
      `viewIfPermitted(SELECT 1 ELSE null('a String'))`,
      `viewExplain('EXPLAIN', '', (SELECT 1))`,
      `input('a String')`,
      `format(CSV, '1')`,
      `fuzzJSON(x, '{}')`,
      `generateRandom('a String DEFAULT file(1)')`,
      `values('a String DEFAULT file(1)', 'x')`,
      `mergeTreeIndex('pennon', 'events')`,
      `mergeTreeProjection('pennon', 'events', 'x')`,
      `timeSeriesData('pennon', 'events')`,
      `eval('SELECT 1')`,
    ]
    for (const call of functions)
      for (const query of [
        `SELECT * FROM ${call}`,
        `SELECT * FROM \`${call.slice(0, call.indexOf('('))}\`${call.slice(call.indexOf('('))}`,
        `DESCRIBE ${call}`,
      ]) {
        const { status, text } = await ask(query)
        assert.ok(status === 400 || status === 403, `${query}: ${status} ${text}`)
      }
    assert.equal(connections, 0, 'no request reached the server')
  })

  it('reads no file, however a function name is written or passed on', async () => {
    const queries = [
      `SELECT file('${file}')`,
      `SELECT \`file\`('${file}')`,
      `SELECT "file"('${file}')`,
      `SELECT \`fi\\x6ce\`('${file}')`,
      `SELECT file /**/ ('${file}')`,
      `SELECT arrayMap(file, ['${file}'])`,
      `SELECT arrayMap(x -> file(x), ['${file}'])`,
      `SELECT * APPLY file FROM (SELECT '${file}')`,
      `SELECT * APPLY (file) FROM (SELECT '${file}')`,
      `SELECT x'\\', file('${file}') --'`,
      `SELECT $$'$$, file('${file}') --'`,
      `SELECT 1 /* /* */ , file('${file}') -- */ */`,
      `SELECT ‘, file('${file}') --’`,
      `SELECT '\\', file(' || '${file}') --'`,
      `SELECT * FROM events WHERE event = '' UNION ALL SELECT file('${file}')`,
      `WITH file AS f SELECT f('${file}')`,
      `WITH (x -> file(x)) AS f SELECT f('${file}')`,
    ]
    for (const query of queries) {
      const { status, text } = await ask(query)
      assert.equal(status, 400, `${query}: ${text}`)
      assert.ok(!text.includes(secret))
    }
    const { status, text } = await ask('SELECT {f:Identifier}({p})', { f: 'file', p: file })
    assert.ok(status === 400 && !text.includes(secret), text)
  })

  it('cannot use functions of the engine that look outside the query', async () => {
    const clients = createClickHouseClients({ endpoint: held.engine.endpoint, queryTimeoutSeconds: 8 })
    const functions = await createSqlSetUp(clients, 8).functions()
    const suspicious =
      /file|disk|dict|^ai[A-Z]|exec|host|server|env|macro|setting|keeper|dns|address|symbol|model|catboost|secret|certificate|transaction|zoo|thread|sleep|part$|connection|joinGet|region/i
    const harmless =
      /^(?:S2|s2|h3|geo|JSON|serverTime[zZ]one|partitionId|toTypeName|cutToFirstSignificantSubdomain|evalMLMethod|.*IPv?\d?|.*Address.*InRange|isIPAddressInRange|predict|neighbor|isConstant|.*[Ww]indow.*|arrayPart.*|.*[Pp]artial.*|runningConcurrency|.*Percentile.*)/
    const passed = [...functions.names].filter(
      name => suspicious.test(name) && checkSql(`SELECT ${name}(1)`, functions, 'query').ok && !harmless.test(name),
    )
    await clients.close()
    assert.deepEqual(passed, [])
  })

  it('can call no function that follows nested JSON until the engine crashes', async () => {
    const nested = (value: number) => `concat(repeat('{"a":', 200000), '${value}', repeat('}', 200000))`
    for (const name of ['JSONMergePatch', 'jsonMergePatch', '`JSONMergePatch`']) {
      const { status, text } = await ask(`SELECT length(${name}(${nested(1)}, ${nested(2)}))`)
      assert.equal(status, 400, `${name}: ${text}`)
    }
    assert.equal((await ask('SELECT 1')).status, 200)
  })

  it('writes nothing and changes no setting, not even directly on the engine', async () => {
    const statements = [
      "INSERT INTO events (event) VALUES ('x')",
      'INSERT INTO pennon.events (project_id) VALUES (1)',
      "INSERT INTO FUNCTION file('x.csv') SELECT 1",
      'CREATE TABLE t (a Int8) ENGINE = Memory',
      'CREATE TEMPORARY TABLE t (a Int8)',
      'CREATE VIEW v AS SELECT 1',
      'CREATE OR REPLACE VIEW pennon_sql.events AS SELECT 1',
      'CREATE FUNCTION f AS x -> x',
      'CREATE USER x',
      'CREATE ROW POLICY p ON pennon.events USING 1 TO ALL',
      "CREATE DICTIONARY d (a UInt64) PRIMARY KEY a SOURCE(FILE(path 'x' format 'CSV')) LAYOUT(FLAT()) LIFETIME(1)",
      'ALTER TABLE pennon.events DELETE WHERE 1',
      "ALTER USER pennon_analyst IDENTIFIED BY 'x'",
      'DROP VIEW events',
      'DROP DATABASE pennon_sql',
      'TRUNCATE TABLE pennon.events',
      'GRANT SELECT ON pennon.* TO pennon_analyst',
      'SET max_threads = 9',
      'SYSTEM SHUTDOWN',
      'KILL QUERY WHERE 1',
      'OPTIMIZE TABLE pennon.events',
      "ATTACH TABLE x FROM '/tmp' (a Int8) ENGINE = Memory",
      'DETACH TABLE pennon.events',
      'RENAME TABLE pennon.events TO pennon.e',
      "BACKUP TABLE pennon.events TO File('x')",
      'EXECUTE AS pennon_views SELECT 1',
      'BEGIN TRANSACTION',
      `SELECT 1 INTO OUTFILE '/tmp/pennon-sql-attack'`,
      'SELECT 1 SETTINGS max_threads = 9',
      'SELECT 1 SETTINGS readonly = 0',
      'SELECT * FROM (SELECT 1 SETTINGS max_execution_time = 0)',
      'SELECT 1; DROP VIEW events',
    ]
    // Settings inside a query are checked only by us: the engine accepts them.
    for (const statement of statements)
      for (const { status, text } of [
        await ask(statement),
        ...(statement.startsWith('SELECT * FROM (') ? [] : [await onEngine(statement)]),
      ])
        assert.ok(status >= 400, `${statement}: ${status} ${text}`)
    assert.ok(!existsSync('/tmp/pennon-sql-attack'))
    for (const search of [
      '&readonly=0',
      '&max_execution_time=0',
      '&allow_get_client_http_header=0',
      '&user=pennon_writer',
      '&role=x',
    ])
      assert.ok((await onEngine('SELECT 1', search)).status >= 400, search)
    assert.deepEqual((await ask('SELECT count() FROM events')).body.results, [[3]])
  })

  it('sees no project if the request names none', async () => {
    const cases = [{}, { 'Pennon-Project': '' }, { 'Pennon-Project': '1 OR 1' }, { 'Pennon-Project': '-1' }] as Record<
      string,
      string
    >[]
    for (const headers of cases) {
      const { status, text } = await onEngine('SELECT * FROM events', '', headers)
      assert.ok(status >= 400, JSON.stringify(headers))
      assert.ok(!text.includes(secret))
    }
    const { text } = await onEngine('SELECT count() FROM events', '', { 'Pennon-Project': '2' })
    assert.equal(text.trim(), '3', 'the header decides, so no text of a user may set one')
  })

  it('does not delay other projects if one project sends a flood of queries', async () => {
    const ended = new AbortController()
    const refused = new Map<string, number>()
    const flood = Array.from({ length: 60 }, async () => {
      const query = { kind: 'HogQLQuery', query: 'SELECT sum(sipHash64(number)) FROM numbers(3000000000)' }
      const options = { body: { query }, signal: ended.signal }
      const { status, body } = await api.call('POST', '/api/projects/1/query/', options)
      refused.set(`${status} ${body.code}`, (refused.get(`${status} ${body.code}`) ?? 0) + 1)
    })
    const other = await api.call('POST', '/api/projects/2/query/', {
      body: { query: { kind: 'HogQLQuery', query: 'SELECT count() FROM events' } },
    })
    assert.equal(other.status, 200, other.text)
    await eventually(() => refused.get('503 event_store_busy') === 42, { what: 'the refusal of all but 18' })
    ended.abort()
    await Promise.allSettled(flood)
    // A client that disconnects frees its place at once.
    await eventually(async () => (await ask('SELECT 1')).status === 200)
  })

  it('needs a key with query:read, for a project of that key', async () => {
    const sql = { query: { kind: 'HogQLQuery', query: 'SELECT count() FROM events' } }
    const post = async (projectId: number, key: string) =>
      (await api.call('POST', `/api/projects/${projectId}/query/`, { key, body: sql })).status
    assert.equal(await post(1, await api.addKey(['query:read'])), 200)
    assert.equal(await post(1, await api.addKey(['person:read', 'group:read', 'feature_flag:write'])), 403)
    const scoped = await api.addKey(['query:read'], [2])
    assert.equal(await post(2, scoped), 200)
    assert.equal(await post(1, scoped), 403)
    assert.equal(await post(1, 'phx_wrong'), 401)
  })
})
