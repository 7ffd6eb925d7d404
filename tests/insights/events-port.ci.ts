// The read-only port for dashboards on the real engine, asked by ClickHouse's own client and by the statements of Grafana's
// plugin, and attacked.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { listenOnPort } from '#compose/front/servers.ts'
import { Connections } from '#http/connections.ts'
import { createEventsServer } from '#http/events-port/events-server.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { pythonWithPackages } from '../sdk/python-environment.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { jarMissing, mavenJar } from '../support/maven-jar.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aStoredEvent } from '../support/values.ts'

const password = 'a-password-of-a-dashboard'
const driver = 'com.clickhouse:clickhouse-jdbc:0.9.4:jar:all-dependencies'
const uuid = (n: number) => `0192a4b0-0000-7000-8000-${String(n).padStart(12, '0')}`

describe('the port for dashboards', () => {
  let url = ''
  const servers: ReturnType<typeof createEventsServer>[] = []

  const start = async (over: Partial<Parameters<typeof createEventsServer>[0]> = {}) => {
    const server = createEventsServer({
      events: held.store,
      password,
      hasProject: projectId => projectId <= 2,
      connections: new Connections(32, () => undefined),
      logger: createSilentLogger(),
      ...over,
    })
    servers.push(server)
    return listenOnPort(server, '127.0.0.1', 0)
  }

  const held = eventStoreForTests({
    begin: async () => {
      const rows = [1, 2].flatMap(projectId =>
        [1, 2, 3].map(n =>
          aStoredEvent({
            projectId,
            event: `of-${projectId}`,
            uuid: uuid(n),
            distinctId: `d${n}`,
            flags: new Map([['$feature/beta', 'control']]),
            timestampMs: Date.parse('2026-11-05T10:00:00Z'),
          }),
        ),
      )
      await held.insert({ events: rows })
      url = await start()
    },
    end: async () => {
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
    },
  })

  const basic = (user: string, pass = password) => ({
    Authorization: `Basic ${Buffer.from(`${user}:${pass}`).toString('base64')}`,
  })
  const post = async (sql: string, search = '', headers: Record<string, string> = basic('project_1'), base = url) => {
    const response = await fetch(`${base}/${search}`, { method: 'POST', body: sql, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('serves ClickHouse’s own client', async () => {
    const client = createClient({
      log: { level: ClickHouseLogLevel.OFF },
      url,
      username: 'project_1',
      password,
      compression: { response: true, request: false },
    })
    try {
      assert.equal((await client.ping()).success, true)
      const result = await client.query({
        query: 'SELECT event, count() AS n FROM events WHERE distinct_id IN {ids:Array(String)} GROUP BY event',
        query_params: { ids: ['d1', "d'2"] },
        format: 'JSON',
      })
      assert.deepEqual((await result.json<{ event: string }>()).data, [{ event: 'of-1', n: 1 }])
      const rows = await client.query({ query: 'SELECT number FROM numbers(200000)', format: 'JSONEachRow' })
      assert.equal((await rows.json()).length, 200_000)
      await assert.rejects(client.query({ query: 'SELECT nothing FROM events' }), /nothing/)
      await assert.rejects(client.command({ query: 'DROP VIEW events' }))
    } finally {
      await client.close()
    }
  })

  it('has the same property functions as the private API', async () => {
    const cases: [sql: string, hint: RegExp][] = [
      ['SELECT properties.price FROM events', /`properties\.price`\. .*JSONExtractString\(properties, 'price'\)/],
      ['SELECT properties.$browser FROM default.events', /JSONExtractString\(properties, '\$browser'\)/],
      ["SELECT properties['price'] FROM events", /JSONExtractString\(properties, 'price'\)/],
    ]
    for (const [sql, hint] of cases) {
      const { status, text } = await post(sql)
      assert.equal(status, 400)
      assert.match(text, hint)
    }
  })

  it('answers the queries of Grafana’s plugin, for the project’s tables only', async () => {
    const lines = async (sql: string, search = '') => {
      const { status, text } = await post(sql, search)
      assert.equal(status, 200, `${sql}: ${text}`)
      return text.trim().split('\n')
    }
    assert.deepEqual(await lines('SELECT 1'), ['1'])
    assert.match(
      (await lines('SELECT displayName(), version(), revision(), timezone()'))[0]!,
      /^pennon\t2\d\.[\d.]+\t\d+\tUTC$/,
    )
    const databases = ['INFORMATION_SCHEMA', 'information_schema', 'pennon_sql', 'system']
    assert.deepEqual(await lines('SHOW DATABASES'), databases)
    assert.deepEqual(await lines('SELECT name FROM system.databases ORDER BY name'), databases)
    const tables = ['events', 'flag_calls', 'groups', 'persons']
    assert.deepEqual(await lines('SHOW TABLES FROM "pennon_sql"'), tables)
    assert.deepEqual(await lines("SELECT name FROM system.tables WHERE database = 'pennon_sql' ORDER BY name;"), tables)
    assert.match((await lines('DESC TABLE "pennon_sql"."events"')).join(), /event\tString/)
    assert.deepEqual(await lines('DESCRIBE (SELECT 1 AS a)'), ['a\tUInt8'])
    assert.match((await lines("SHOW SETTINGS LIKE 'max_threads'")).join(), /^max_threads\t/)
    const columns = await lines(
      "SELECT name, type FROM system.columns WHERE database = 'pennon_sql' AND table = 'groups'",
    )
    assert.deepEqual(columns[1], 'group_key\tString')
    const series = `SELECT toStartOfInterval(toDateTime(timestamp), INTERVAL 60 second) AS time, count() AS events
      FROM "pennon_sql"."events" WHERE (timestamp >= toDateTime(1793836800) AND timestamp <= toDateTime(1794441600))
      GROUP BY time ORDER BY time ASC LIMIT 1000`
    assert.deepEqual(await lines(series, '?max_execution_time=60&default_format=TabSeparated'), [
      '2026-11-05 10:00:00\t3',
    ])
    // Its driver takes ClickHouse's own binary format, in compressed blocks.
    const native = await fetch(
      `${url}/?default_format=Native&compress=1&client_protocol_version=54460&database=default`,
      {
        method: 'POST',
        body: 'SELECT event FROM events',
        headers: basic('project_1'),
      },
    )
    assert.equal(native.status, 200)
    assert.equal(Buffer.from(await native.arrayBuffer())[16], 0x82, 'a block of LZ4')
  })

  it('answers every query of the included dashboard', async () => {
    const { panels, templating } = JSON.parse(readFileSync('docs/grafana/pennon.json', 'utf8'))
    const queries: string[] = [templating.list[0].query, ...panels.map((panel: Panel) => panel.targets[0].rawSql)]
    assert.ok(queries.length >= 8)
    await held.store.beginMirrorFill('d', 1)
    await held.store.completeMirrorFill('d', 2)
    for (const query of queries) {
      // As the plugin replaces its macros and variables.
      const sql = query
        .replaceAll(/\$__timeFilter\((\w+)\)/g, '$1 >= toDateTime(1793836800) AND $1 <= toDateTime(1794441600)')
        .replaceAll(/\$__timeInterval\((\w+)\)/g, 'toStartOfInterval(toDateTime($1), INTERVAL 60 second)')
        .replaceAll('$flag', 'beta')
      const { status, text } = await post(sql)
      assert.equal(status, 200, `${sql}\n${text}`)
      if (sql.includes('flags[')) assert.match(text, /\tcontrol\t3\n/, sql)
    }
  })

  it('works with clickhouse-connect', async () => {
    const python = pythonWithPackages('clickhouse-connect-1.12.0', ['clickhouse-connect==1.12.0'])
    const program = `
import clickhouse_connect, sys
client = clickhouse_connect.get_client(host='127.0.0.1', port=int(sys.argv[1]), username='project_1', password=sys.argv[2])
print(client.query('SELECT count(), any(event) FROM events WHERE distinct_id != {id:String}', parameters={'id': 'd3'}).result_rows)`
    const { stdout } = await promisify(execFile)(python, ['-c', program, new URL(url).port, password])
    assert.equal(stdout.trim(), "[(2, 'of-1')]")
  })

  it('accepts compressed bodies, GET, and credentials in every supported place, and can compress answers', async () => {
    const { status, text } = await post(gzipSync('SELECT 2') as never, '', {
      ...basic('project_1'),
      'Content-Encoding': 'gzip',
    })
    assert.deepEqual([status, text], [200, '2\n'])
    const get = await fetch(`${url}/?query=SELECT%20count()%20FROM%20events&user=project_2&password=${password}`)
    assert.equal(await get.text(), '3\n')
    const keys = { 'X-ClickHouse-User': 'project_2', 'X-ClickHouse-Key': password }
    assert.equal((await post('SELECT any(event) FROM events', '', keys)).text, 'of-2\n')
    assert.equal((await post('SELECT {x:UInt8} + 1', '?param_x=4')).text, '5\n')
    assert.equal((await post('SELECT 1 AS a FORMAT JSONEachRow')).text, '{"a":1}\n')
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(
      `GET /?query=SELECT%20number%20FROM%20numbers(1000) HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\nAuthorization: ${basic('project_1').Authorization}\r\n\r\n`,
    )
    const parts: Buffer[] = []
    for await (const part of socket) parts.push(part as Buffer)
    assert.match(Buffer.concat(parts).toString('latin1'), /content-encoding: gzip/i)
  })

  it('rejects callers without the password, and callers of another project', async () => {
    const wrong = [
      basic('project_1', 'wrong'),
      basic('project_1', ''),
      basic('project_3'),
      basic('project_01'),
      basic('project_1; DROP'),
      basic('default', ''),
      basic('pennon_writer'),
      basic(held.engine.endpoint().analyst.username, held.engine.endpoint().analyst.password),
      { Authorization: 'Bearer x' },
      {},
    ] as Record<string, string>[]
    for (const headers of wrong) {
      const { status, text } = await post('SELECT 1', '', headers)
      assert.equal(status, 401, JSON.stringify(headers))
      assert.match(text, /^Code: 516\. DB::Exception/)
      assert.ok(!text.includes(password))
    }
    const attempts = [
      '?user=default',
      '?user=project_2',
      '?database=pennon',
      '?readonly=0',
      '?role=x',
      '?session_id=x',
      '?quota_key=x',
      '?stacktrace=1',
      '?max_execution_time=0',
      '?query_id=x',
      '?param_x=1',
      '?http_header_Pennon-Project=2',
      '?format_schema=/etc/passwd',
      '?send_progress_in_http_headers=0',
    ]
    for (const search of attempts)
      assert.equal((await post('SELECT groupUniqArray(event) FROM events', search)).text, "['of-1']\n", search)
    for (const name of [
      'Pennon-Project',
      'pennon-project',
      'X-ClickHouse-User',
      'X-ClickHouse-Key',
      'X-ClickHouse-Quota',
      'X-Forwarded-For',
    ])
      assert.equal(
        (await post('SELECT groupUniqArray(event) FROM events', '', { ...basic('project_1'), [name]: '2' })).text,
        "['of-1']\n",
        name,
      )
    for (const sql of [
      'SELECT * FROM pennon.events_pending',
      "SELECT file('/etc/passwd')",
      "INSERT INTO events (event) VALUES ('x')",
      'SELECT 1 SETTINGS readonly = [0]',
      "SELECT 1 INTO OUTFILE '/tmp/x'",
      'SELECT * FROM {t:Identifier}',
      'SELECT 1; SELECT 2',
      'SET readonly = 0',
      'SHOW CREATE USER pennon_writer',
      'SHOW PROCESSLIST',
      'SHOW USERS',
      'DESCRIBE pennon.events_pending',
      "DESCRIBE url('http://127.0.0.1:1')",
    ]) {
      const { status, text } = await post(sql, '?param_t=pennon.events')
      assert.ok(status >= 400, `${sql}: ${text}`)
      assert.match(text, /^Code: \d+\. DB::Exception: /)
    }
    for (const path of [
      '/play',
      '/dashboard',
      '/proof/00000000000000000000000000000000',
      '/replicas_status',
      '/x?query=SELECT%201',
    ]) {
      const response = await fetch(`${url}${path}`, { headers: basic('project_1') })
      assert.equal(response.status, 404, path)
      await response.text()
    }
    assert.equal((await fetch(url, { method: 'DELETE', headers: basic('project_1') })).status, 405)
  })

  it('accepts and strips the text that drivers add to a query', async () => {
    const counted = 'SELECT event, count() AS n FROM `pennon`.`events` GROUP BY event SETTINGS readonly = 0'
    const named = { ...basic('project_1'), 'X-ClickHouse-Format': 'JSONEachRow', 'X-ClickHouse-Database': 'default' }
    assert.equal((await post(counted, '?default_format=CSV', named)).text, '{"event":"of-1","n":3}\n')
    assert.equal((await post(`${counted} FORMAT CSV`, '', named)).text, '"of-1",3\n')
    assert.match((await post('EXPLAIN SELECT 1')).text, /^Plans are not shown here/)
    const { headers, text } = await post('SELECT number FROM numbers(300000)', '?wait_end_of_query=1')
    assert.equal(text.length, 1_988_890)
    const summary = JSON.parse(headers.get('x-clickhouse-summary')!)
    assert.deepEqual(
      [Object.keys(summary).sort(), summary.result_rows],
      [['elapsed_ns', 'result_bytes', 'result_rows'], '300000'],
    )
  })

  it('describes its four views in INFORMATION_SCHEMA, but not the tables behind them', async () => {
    const schemas = "table_schema NOT IN ('INFORMATION_SCHEMA', 'information_schema', 'system')"
    const tables = await post(
      `SELECT DISTINCT table_name FROM INFORMATION_SCHEMA.TABLES WHERE ${schemas} ORDER BY table_name`,
    )
    assert.equal(tables.text, 'events\nflag_calls\ngroups\npersons\n')
    const columns = await post("SELECT column_name FROM information_schema.columns WHERE table_name = 'persons'")
    assert.match(columns.text, /^properties$/m)
    for (const table of ['system.parts', 'information_schema.statistics'])
      assert.equal((await post(`SELECT * FROM ${table}`)).text, '', table)
    assert.equal((await post('SELECT * FROM system.parts_columns')).status, 403)
  })

  it('works with ClickHouse’s Java driver and its Java client', { skip: jarMissing(driver, 'javac') }, async t => {
    const jar = mavenJar(driver)
    const folder = tempDir(t)
    await promisify(execFile)('javac', ['-cp', jar, '-d', folder, 'tests/sdk/jdbc/ReadThePort.java'])
    const args = ['-XX:TieredStopAtLevel=1', '-cp', `${jar}:${folder}`, 'ReadThePort', new URL(url).port, password]
    const { stdout } = await promisify(execFile)('java', args)
    const answers = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(/ (.*)/)),
    )
    assert.match(answers.columns, /properties/)
    assert.deepEqual(
      { ...answers, columns: '' },
      {
        ...{ valid: 'true', product: 'ClickHouse', tables: '[events, flag_calls, groups, persons]', columns: '' },
        ...{ types: 'true', keys: '[]', counted: '[of-1]', settings: '[3]', plan: '1', prepared: '[d1, d2, d3]' },
        ...{ information_schema: '[events, flag_calls]', client: '3', many: '200000' },
      },
    )
  })

  it('answers 404 at malformed paths, not an internal error', async () => {
    for (const path of ['//', '///', '//@', 'http://', 'http://[', '*']) {
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      const parts: Buffer[] = []
      for await (const part of socket) parts.push(part as Buffer)
      assert.match(Buffer.concat(parts).toString(), /^HTTP\/1\.1 404 /, path)
    }
  })

  it('limits the size of bodies, however they are compressed', async () => {
    const long = await post(`SELECT '${'x'.repeat(900_000)}'`)
    assert.equal(long.status, 400)
    const bomb = gzipSync(Buffer.alloc(50_000_000, 32))
    const { status, text } = await post(bomb as never, '', { ...basic('project_1'), 'Content-Encoding': 'gzip' })
    assert.equal(status, 400)
    assert.match(text, /the decompressed query is too long/)
  })

  it('aborts a download that fails or that the client does not read, instead of ending it cleanly', async () => {
    // The engine fails after a million rows: the answer has begun by then.
    const broken = post('SELECT throwIf(number = 3000000), number FROM numbers(10000000) FORMAT TSV')
    const result = await broken.catch((error: Error) => error)
    assert.ok(result instanceof Error || /exception/i.test(result.text), 'the failure is seen')

    const slow = await start({ timeouts: { stalledMs: 300 } })
    const sockets = [1, 2].map(() => {
      const socket = connect(Number(new URL(slow).port), '127.0.0.1')
      socket.write(
        `GET /?query=SELECT%20*%20FROM%20numbers(1000000000) HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('project_1').Authorization}\r\n\r\n`,
      )
      return socket
    })
    await Promise.all(sockets.map(socket => once(socket, 'readable')))
    // Both places of the project are taken until its downloads are broken off.
    assert.equal((await post('SELECT 1', '', basic('project_1'), slow)).text, '1\n')
    for (const socket of sockets) socket.destroy()
    // Whoever leaves at any moment leaves no place taken.
    for (let delayMs = 0; delayMs < 24; delayMs++) {
      const socket = connect(Number(new URL(slow).port), '127.0.0.1')
      socket.write(
        `GET /?query=SELECT%201 HTTP/1.1\r\nHost: x\r\nAuthorization: ${basic('project_1').Authorization}\r\n\r\n`,
      )
      await new Promise(resolve => setTimeout(resolve, delayMs))
      socket.destroy()
    }
    assert.equal((await post('SELECT 1', '', basic('project_1'), slow)).text, '1\n')
  })

  it('reports that persons are still being copied', async () => {
    await held.store.beginMirrorFill('f', 3)
    const { status, text } = await post('SELECT * FROM persons')
    assert.equal(status, 503)
    assert.match(text, /being copied/)
  })
})

interface Panel {
  readonly targets: readonly [{ readonly rawSql: string }]
}

it('the instance serves the port for dashboards, with the persons of its events', async t => {
  const eventsPort = String(await freePort())
  const settings = { PENNON_EVENTS_PORT: eventsPort, PENNON_EVENTS_PASSWORD: password }
  const pennon = await startPennonFor(t, { settings })
  const ask = async (sql: string) => {
    const headers = { Authorization: `Basic ${Buffer.from(`project_1:${password}`).toString('base64')}` }
    const response = await fetch(`http://127.0.0.1:${eventsPort}/`, { method: 'POST', body: sql, headers })
    return (await response.text()).trim()
  }
  const properties = { $set: { plan: 'paid' }, $groups: { company: 'acme' } }
  await pennon.post('/capture/', { api_key: testProjectKey, event: '$identify', distinct_id: 'ada', properties })
  await pennon.caughtUp()
  assert.equal(await ask('SELECT event, distinct_id FROM events'), '$identify\tada')
  const paying =
    "SELECT count() FROM events AS e JOIN persons AS p ON e.person_id = p.id WHERE JSONExtractString(p.properties, 'plan') = 'paid'"
  await eventually(async () => (await ask(paying)) === '1', { what: 'the person of today' })
  const { results } = await pennon.api<{ results: unknown[][] }>('POST', '/api/projects/1/query/', {
    query: { kind: 'HogQLQuery', query: 'SELECT id FROM persons' },
  })
  assert.equal(results.length, 1)
  assert.ok(!pennon.output().includes(password))
})
