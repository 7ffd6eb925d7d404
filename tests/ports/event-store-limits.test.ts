// What the embedded engine and its client guarantee besides the port's contract: permissions, and how failures end.

import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import {
  createClickHouseClients,
  longReadSettings,
  parseEndpointUrl,
} from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { eventually } from '../support/eventually.ts'
import { aStoredEvent } from '../support/values.ts'

/**
 * The engine and its clients use the same limits, since a read-only user may only repeat its own. Long enough for a
 * busy machine.
 */
const queryTimeoutSeconds = 60
const endless = 'SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 0'
const nothing = { events: [], pendingEvents: [], overrides: [], recordings: [], rejected: [] }

describe('the embedded engine and its client', () => {
  const held = eventStoreForTests({
    limits: { queryTimeoutSeconds },
    begin: () => held.insert({ events: Array.from({ length: 200 }, () => aStoredEvent()) }),
  })
  const readText = (query: string) =>
    held.clients.read(async (client, signal) =>
      (await client.query({ query, format: 'TabSeparated', abort_signal: signal })).text(),
    )
  const writeText = (query: string) =>
    held.clients.write(async client => (await client.query({ query, format: 'TabSeparated' })).text())
  /** Sends a query over HTTP as `user`. @returns status and text. */
  const ask = async (query: string, user: { username: string; password: string } | null, search = '') => {
    const token = user && Buffer.from(`${user.username}:${user.password}`).toString('base64')
    const response = await fetch(`${held.engine.endpoint().url}/${search}`, {
      method: 'POST',
      body: query,
      headers: token === null ? {} : { authorization: `Basic ${token}` },
    })
    return { status: response.status, text: await response.text() }
  }

  it('allow the reading user to read events and nothing else', async () => {
    const { reader } = held.engine.endpoint()
    assert.equal((await ask('SELECT count() FROM pennon.events', reader)).text, '200\n')
    const answered = await Promise.all(
      ['SELECT 1', `SELECT 1 SETTINGS max_execution_time = ${queryTimeoutSeconds}`].map(
        async query => (await ask(query, reader)).text,
      ),
    )
    assert.deepEqual(answered, ['1\n', '1\n'])
    for (const query of [
      'INSERT INTO pennon.person_distinct_id_overrides (project_id) VALUES (1)',
      'ALTER TABLE pennon.events DELETE WHERE 1',
      'DROP TABLE pennon.events',
      'TRUNCATE TABLE pennon.events',
      'CREATE TABLE pennon.x (a UInt8) ENGINE = Memory',
      'CREATE TEMPORARY TABLE x (a UInt8)',
      `SELECT * FROM file('/etc/hostname', 'LineAsString')`,
      `SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString', 'line String')`,
      `SELECT * FROM s3('http://127.0.0.1:1/bucket/key', 'TSV', 'a String')`,
      `SELECT * FROM remote('127.0.0.1', 'system', 'one')`,
      `SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')`,
      `SELECT * FROM executable('id', 'TSV', 'a String')`,
      'SELECT * FROM system.users',
      'SELECT * FROM system.processes',
      'SYSTEM SHUTDOWN',
      'SET max_execution_time = 100',
      'SELECT 1 SETTINGS max_memory_usage = 0',
    ]) {
      const { status, text } = await ask(query, reader)
      assert.notEqual(status, 200, query)
      assert.match(text, /ACCESS_DENIED|READONLY/, query)
    }
  })

  it('reject every login without the passwords, even of the engine’s default user', async () => {
    const { reader, writer } = held.engine.endpoint()
    const strangers = [
      null,
      { username: 'default', password: '' },
      { ...reader, password: 'wrong' },
      { ...writer, password: reader.password },
    ]
    for (const user of strangers) {
      for (const search of ['', '?user=default', '?user=default&password=']) {
        const { status, text } = await ask(`SELECT file('/etc/hostname')`, user, search)
        assert.equal(status, 404, JSON.stringify([user, search]))
        assert.match(text, /^There is no handle/)
      }
    }
    const wrong = { ...held.engine.endpoint(), reader: { ...reader, password: 'wrong' } }
    const stranger = createClickHouseEventStore({
      endpoint: () => wrong,
      queryTimeoutSeconds,
      clock: { nowMs: Date.now },
    })
    await assert.rejects(stranger.countRejected({ projectId: 1 }), { code: 'unavailable' })
    await stranger.close()
  })

  it('keep their files private', () => {
    const folder = join(held.engine.dataFolder, 'events')
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o077, 0, name)
  })

  it('make every part durable before an insert is answered', async () => {
    const values = await writeText(`SELECT name, value FROM system.merge_tree_settings WHERE name IN
      ('fsync_after_insert', 'fsync_part_directory', 'min_rows_to_fsync_after_merge') ORDER BY name`)
    assert.equal(values, 'fsync_after_insert\t1\nfsync_part_directory\t1\nmin_rows_to_fsync_after_merge\t1\n')
  })

  it('find the rows that the engine rejects, and store all other rows', async t => {
    const rule = "ADD CONSTRAINT no_poison CHECK event != 'poison'"
    await held.clients.write((client, database) => client.command({ query: `ALTER TABLE ${database}.events ${rule}` }))
    t.after(() =>
      held.clients.write((client, database) =>
        client.command({ query: `ALTER TABLE ${database}.events DROP CONSTRAINT no_poison` }),
      ),
    )
    const events = Array.from({ length: 100 }, (_, n) =>
      aStoredEvent({ projectId: 5, event: n % 33 === 7 ? 'poison' : 'ok' }),
    )
    const { refused } = await held.insert({ events })
    assert.deepEqual(
      refused.map(({ list, index }) => [list, index]),
      [7, 40, 73].map(index => ['events', index]),
    )
    assert.match(refused[0]!.message, /no_poison/)
    const page = await held.store.listEvents({ projectId: 5, descending: true, limit: 1000 })
    assert.equal(page.events.length, 97)
  })

  it('answer `full` beyond the limits of one read', async () => {
    await assert.rejects(readText('SELECT number FROM numbers(200000)'), { code: 'full' })
    await assert.rejects(readText('SELECT length(groupArray(number)) FROM numbers(200000000)'), { code: 'full' })
  })

  it('reconnect to the engine at another port with other passwords, and report `unavailable` while it is down', async () => {
    const before = held.engine.endpoint()
    await held.engine.kill()
    await assert.rejects(held.store.countRejected({ projectId: 1 }), { code: 'unavailable' })
    await assert.rejects(held.insert({ events: [aStoredEvent()] }), { code: 'unavailable' })
    await held.engine.restart()
    assert.notEqual(held.engine.endpoint().writer.password, before.writer.password)
    await held.insert({ events: [aStoredEvent({ projectId: 9 })] })
    assert.equal((await held.store.listEvents({ projectId: 9, descending: true, limit: 10 })).events.length, 1)
  })

  it('report `unavailable` before the engine was first prepared, and when another server answers at its port', async t => {
    const none = createClickHouseEventStore({ endpoint: () => null, queryTimeoutSeconds, clock: { nowMs: Date.now } })
    await assert.rejects(none.countRejected({ projectId: 1 }), { code: 'unavailable' })
    const other = createServer((_, response) => response.writeHead(404).end('not here'))
    t.after(() => other.close())
    await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const wrong = createClickHouseEventStore({
      endpoint: () => ({ ...held.engine.endpoint(), url }),
      queryTimeoutSeconds,
      clock: { nowMs: Date.now },
    })
    await assert.rejects(wrong.countRejected({ projectId: 1 }), { code: 'unavailable' })
    await wrong.close()
  })

  it('work with one URL that contains the user and, as its path, the database', async () => {
    const { url, writer } = held.engine.endpoint()
    const text = url.replace('http://', `http://${writer.username}:${encodeURIComponent(writer.password)}@`)
    const byUrl = createClickHouseEventStore({
      endpoint: () => parseEndpointUrl(`${text}/pennon`),
      queryTimeoutSeconds,
      clock: { nowMs: Date.now },
    })
    await byUrl.migrate()
    await byUrl.insert({ ...nothing, events: [aStoredEvent({ projectId: 11 })] })
    assert.equal((await byUrl.listEvents({ projectId: 11, descending: true, limit: 10 })).events.length, 1)
    await byUrl.close()
    assert.equal(parseEndpointUrl('https://u:p%40@h:8443').database, 'default')
    assert.equal(parseEndpointUrl('https://u:p%40@h:8443').writer.password, 'p@')
    assert.throws(() => parseEndpointUrl('http://h:8123/a;drop'), /CLICKHOUSE_URL/)
  })

  it('answer `timeout` after the query limit', async t => {
    const short = { queryTimeoutSeconds: 1 }
    await held.engine.restart(short)
    const hasty = createClickHouseClients({ endpoint: held.engine.endpoint, ...short })
    t.after(() => hasty.close())
    const query = hasty.read(async (client, signal) =>
      (await client.query({ query: endless, format: 'TabSeparated', abort_signal: signal })).text(),
    )
    await assert.rejects(query, { code: 'timeout' })
  })

  it('let a background count run longer than the query limit, until it is stopped', async t => {
    const short = { queryTimeoutSeconds: 0.001 }
    await held.engine.restart(short)
    const options = { endpoint: held.engine.endpoint, ...short }
    const hasty = createClickHouseEventStore({ ...options, clock: { nowMs: Date.now } })
    const counting = createClickHouseClients(options)
    t.after(() => Promise.all([hasty.close(), counting.close()]))
    await writeText(`INSERT INTO pennon.events (project_id, uuid, event, distinct_id, timestamp, captured_at, charged_at, flag_called,
        flag_response)
      SELECT 12, generateUUIDv4(), '$feature_flag_called', toString(number), toDateTime64('2026-10-01 00:00:00', 6, 'UTC'),
        toDateTime64('2026-10-01 00:00:00', 3, 'UTC'), toDateTime64('2026-10-01 00:00:00', 3, 'UTC'),
        'f', 'true' FROM numbers(300000)`)
    const fromMs = Date.parse('2026-10-01')
    const usage = { projectId: 12, flagKey: 'f', buckets: { edges: [fromMs, fromMs + 86_400_000] } }
    const [day] = await hasty.countUsage(12, '2026-10-01', '2026-10-01')
    assert.equal(day?.eventsCharged, 300_000)
    assert.equal((await hasty.listBusyFlags(12, { fromMs, callsMin: 1, limit: 1 })).length, 1)
    assert.equal((await hasty.listDaysOfMovedIds(12, fromMs)).size, 0)
    await hasty.cacheUsage({ ...usage, nowMs: fromMs })
    assert.equal((await hasty.listCachedUsage(usage)).length, 1)
    const stop = new AbortController()
    const query = counting.count(
      (client, signal) => client.query({ query: endless, format: 'TabSeparated', abort_signal: signal }),
      stop.signal,
    )
    const outcome = assert.rejects(query, /the worker stops/)
    const others = `user = '${held.engine.endpoint().writer.username}' AND query NOT LIKE '%processes%'`
    const running = async () => Number(await writeText(`SELECT count() FROM system.processes WHERE ${others}`))
    await eventually(async () => (await running()) === 1, { what: 'The count' })
    stop.abort(new Error('the worker stops'))
    await outcome
    await eventually(async () => (await running()) === 0, { what: 'The end of the count' })
  })

  it('end a cancelled query on the server', async t => {
    // Far longer than this test waits, so it is not the limit that ends the query.
    const long = { queryTimeoutSeconds: 3_600 }
    await held.engine.restart(long)
    const patient = createClickHouseClients({ endpoint: held.engine.endpoint, ...long })
    t.after(() => patient.close())
    const running = async () =>
      Number(await writeText(`SELECT count() FROM system.processes WHERE user = 'pennon_reader'`))
    const cancel = new AbortController()
    const query = patient.read(async (client, signal) => {
      const result = await client.query({ query: endless, format: 'TabSeparated', abort_signal: signal })
      return result.text()
    }, cancel.signal)
    const outcome = assert.rejects(query, /the client went away/)
    await eventually(async () => (await running()) === 1, { what: 'The query' })
    cancel.abort(new Error('the client went away'))
    await outcome
    await eventually(async () => (await running()) === 0, { what: 'The end of the query' })
  })

  it('report the progress of a long read by the writing user, and end the read when the connection closes', async () => {
    const { url, writer } = held.engine.endpoint()
    const others = `user = '${writer.username}' AND query NOT LIKE '%processes%'`
    const running = async () => Number(await writeText(`SELECT count() FROM system.processes WHERE ${others}`))
    const settings = Object.entries({ ...longReadSettings, http_headers_progress_interval_ms: '50' })
    const search = new URLSearchParams(settings.map(([name, value]) => [name, String(value)]))
    const auth = `${writer.username}:${writer.password}`
    const asking = request(`${url}/?${search}`, { method: 'POST', auth })
    asking.on('error', () => undefined) // it is cut off
    asking.end(endless)
    await eventually(() => (asking.socket?.bytesRead ?? 0) > 0, { what: 'Something of the answer' })
    assert.equal(await running(), 1)
    asking.destroy()
    await eventually(async () => (await running()) === 0, { what: 'The end of the query' })
  })
})
