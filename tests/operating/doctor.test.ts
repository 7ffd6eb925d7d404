import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteChunkStore } from '#adapters/sqlite/sqlite-chunk-store.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { openGeoip } from '#compose/stores/geoip.ts'
import { dayMs } from '#core/time.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { checkClock, checkOpenFiles } from '../../src/commands/doctor/check-machine.ts'
import { checkGeoip } from '../../src/commands/doctor/check-stores.ts'
import { readConfig } from '../../src/config.ts'
import { acquireDataLock, type DataLock, type LockCommand } from '../../src/processes/data-lock.ts'
import { startFront } from '../support/front.ts'
import { writeMmdb } from '../support/mmdb-writer.ts'
import { callCommand } from '../support/pennon-command.ts'
import { openedWriter, stateWithLog } from '../support/sqlite-log-files.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aCapturedEvent, aChange, aNewProject, chunkChanges, encodedEvents } from '../support/values.ts'

interface Result {
  readonly exitCode: number
  readonly output: string
}

async function doctor(settings: Record<string, string>): Promise<Result> {
  const { exitCode, stdout, stderr } = await callCommand({ PORT: '0', ...settings }, 'doctor')
  return { exitCode, output: stdout + stderr }
}

/** A server on a free port that gives every request the same answer. */
async function listening(
  t: { after: (done: () => void) => void },
  status: number,
  body: string,
): Promise<{ port: number; requests: string[] }> {
  const requests: string[] = []
  const server = createServer((request, answer) => {
    requests.push(`${request.headers['x-clickhouse-user']}:${request.headers['x-clickhouse-key']} ${request.url}`)
    answer.writeHead(status).end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => void server.close())
  return { port: (server.address() as AddressInfo).port, requests }
}

/** Locks the folder as a running `serve` does. */
async function holdLock(t: TestContext, folder: string, command: LockCommand = 'serve'): Promise<DataLock> {
  const held = await acquireDataLock(folder, { command, waitMsMax: 0 })
  assert.ok(held.ok)
  t.after(() => held.value.release())
  return held.value
}

describe('pennon doctor', () => {
  it('a backup that uses the data folder is not mistaken for an instance', async t => {
    const folder = join(tempDir(t), 'data')
    await holdLock(t, folder, 'backup')
    const { exitCode, output } = await doctor({ PENNON_DATA: folder })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      new RegExp(`instance +not running; process ${process.pid} \\(pennon backup\\) is using the data folder`),
    )
  })

  it('no problems are found before a first start', async t => {
    const { exitCode, output } = await doctor({ PENNON_DATA: join(tempDir(t), 'data') })
    assert.equal(exitCode, 0, output)
    for (const what of [
      'node',
      'optional packages',
      'open files',
      'data folder',
      'disk',
      'instance',
      'port',
      'state and log',
      'event store',
      'clock',
    ])
      assert.match(output, new RegExp(`^ok +${what} `, 'm'))
    // The installed data may be old by now, which the code cannot help.
    assert.match(output, /^(ok|WARN) +geoip /m)
    assert.match(output, /No problems found\.\n$/)
  })

  it('a port in use, a file in place of a folder, unreachable stores and an invalid database each have a remedy', async t => {
    const folder = tempDir(t)
    const file = join(folder, 'file')
    writeFileSync(file, 'text')
    const { port } = await listening(t, 200, '')
    const away = await listening(t, 200, '')
    const { exitCode, output } = await doctor({
      PORT: String(port),
      PENNON_DATA: file,
      CLICKHOUSE_URL: 'http://user:secret-1@127.0.0.1:9/events',
      DATABASE_URL: 'postgres://user:secret-2@127.0.0.1:9/state',
      GEOIP_DATABASE: file,
    })
    assert.equal(exitCode, 1, output)
    for (const [what, found, remedy] of [
      ['data folder', 'is not a folder', 'set PENNON_DATA'],
      ['port', 'EADDRINUSE', 'set PORT to a free port'],
      ['state', 'PostgreSQL at 127.0.0.1:9/state .*Check that it is running', 'check DATABASE_URL and the network'],
      ['event store', 'ClickHouse at 127.0.0.1:9 does not respond', 'check CLICKHOUSE_URL and the network'],
      ['geoip', 'GEOIP_DATABASE', 'get GeoLite2 City from MaxMind'],
    ])
      assert.match(output, new RegExp(`^FAIL +${what} .*${found}.*\\n +→ .*${remedy}`, 'm'))
    assert.match(output, /5 problems found\.\n$/)
    assert.doesNotMatch(output, /secret/)
    assert.deepEqual(away.requests, [])
  })

  it('an instance that uses the same port with another data folder is recognized', async t => {
    const readiness = '{"flags":"ok","capture":"ok","processing":"ok","events":"ok"}'
    const { port } = await listening(t, 200, readiness)
    const folder = tempDir(t)
    const { output } = await doctor({ PENNON_DATA: folder, PORT: String(port) })
    const [, found] = /^FAIL +port +another Pennon is serving on 127\.0\.0\.1:\d+: (.*)$/m.exec(output)!
    assert.equal(found, `its data folder is not ${folder}, or was removed or replaced`)
    assert.match(
      output,
      /^ +→ to check that instance, set PENNON_DATA to its folder .*; to start another, set PORT to a free/m,
    )
  })

  it('the build date of the bundled GeoIP data is shown with a way to replace it, but never as a warning', t => {
    const config = readConfig({ PENNON_DATA: tempDir(t) })
    assert.ok(config.ok)
    const opened = openGeoip(config.value, createSilentLogger())
    assert.ok(opened.ok && opened.value !== null)
    const { builtAtMs } = opened.value
    opened.value.close()
    const { isGood, found, remedy } = checkGeoip(config.value, builtAtMs + 400 * dayMs)
    assert.deepEqual([isGood, remedy], [true, undefined])
    assert.match(
      found,
      /^@ip-location-db\/geolite2-city-mmdb, built \d{4}-\d\d-\d\d; to update it, set GEOIP_DATABASE /,
    )
  })

  it("an operator's GeoIP database older than 60 days gives a warning", t => {
    const builtAtMs = Date.parse('2020-01-01')
    const file = join(tempDir(t), 'city.mmdb')
    writeFileSync(file, writeMmdb({ ipVersion: 4, buildEpoch: builtAtMs / 1000, networks: [[[81], 8, {}]] }))
    const config = readConfig({ PENNON_DATA: tempDir(t), GEOIP_DATABASE: file })
    assert.ok(config.ok)
    assert.equal(checkGeoip(config.value, builtAtMs + 60 * dayMs).remedy, undefined)
    const { isGood, found, remedy } = checkGeoip(config.value, builtAtMs + 61 * dayMs)
    assert.equal(isGood, true, 'a warning is no failure')
    assert.match(found, /city\.mmdb, built 2020-01-01, 61 days ago$/)
    assert.match(remedy!, /set GEOIP_DATABASE to a GeoLite2-City\.mmdb/)
  })

  it('a warning is printed with its remedy, and does not count as a problem', async t => {
    const geoipFile = join(tempDir(t), 'old-city.mmdb')
    writeFileSync(
      geoipFile,
      writeMmdb({ ipVersion: 4, buildEpoch: Date.parse('2020-01-01') / 1000, networks: [[[81], 8, {}]] }),
    )
    const { exitCode, output } = await doctor({ PENNON_DATA: join(tempDir(t), 'data'), GEOIP_DATABASE: geoipFile })
    assert.equal(exitCode, 0, output)
    assert.match(output, /^WARN +geoip +.*old-city\.mmdb, built 2020-01-01, \d+ days ago\n +→ set GEOIP_DATABASE/m)
    assert.match(output, /No problems found\.\n$/)
  })

  it('ClickHouse is queried as the configured user, and a refusal is reported', async t => {
    const refusing = await listening(t, 516, 'Code: 516. Authentication failed')
    const url = `http://ann:secret@127.0.0.1:${refusing.port}/events`
    const { exitCode, output } = await doctor({ PENNON_DATA: tempDir(t), CLICKHOUSE_URL: url })
    assert.equal(exitCode, 1, output)
    assert.match(output, /^FAIL +event store .*516 Code: 516\. Authentication failed\n +→ check user and password/m)
    assert.equal(refusing.requests.at(-1), 'ann:secret /?query=SELECT+version()')
  })

  it('an import-only instance is reported, both while it runs and before its start', async t => {
    const settings = { PENNON_DATA: tempDir(t), PENNON_IMPORT_ONLY: 'true' }
    const before = await doctor(settings)
    assert.match(before.output, /^ok +instance +not running; .*import-only \(PENNON_IMPORT_ONLY\)/m)

    await stateWithLog(settings.PENNON_DATA)
    const front = await startFront(settings)
    t.after(() => front.close())
    const readiness = await fetch(`${front.url}/_readiness?require=capture`)
    assert.deepEqual(
      [readiness.status, await readiness.json()],
      [200, { flags: 'ok', capture: 'import_only', processing: 'ok', events: 'ok' }],
    )
    await holdLock(t, settings.PENNON_DATA)
    const { PENNON_IMPORT_ONLY, ...others } = settings
    const { exitCode, output } = await doctor({ ...others, PORT: new URL(front.url).port })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      /^ok +instance +running as process \d+, import-only .*; flags, capture and processing are ok$/m,
    )
  })

  it('a running instance is found without its PORT', async t => {
    const folder = tempDir(t)
    const { port } = await listening(t, 200, '{"flags": "ok", "capture": "ok", "processing": "ok", "events": "ok"}')
    const lock = await holdLock(t, folder)
    lock.setUrl(`http://127.0.0.1:${port}`)
    const { exitCode, output } = await doctor({ PENNON_DATA: folder, PORT: '1' })
    assert.equal(exitCode, 0, output)
    assert.match(output, /^ok +instance +running as process \d+; flags, capture and processing are ok$/m)
  })

  it('for an instance whose log or disk is full, both limits that may be the cause are named', async t => {
    const folder = tempDir(t)
    const { port } = await listening(
      t,
      200,
      '{"flags": "ok", "capture": "log_or_disk_full", "processing": "ok", "events": "ok"}',
    )
    await holdLock(t, folder)
    const { exitCode, output } = await doctor({ PENNON_DATA: folder, PORT: String(port) })
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      /^FAIL +instance .*capture: log_or_disk_full\n +→ .*lower PENNON_MIN_FREE_BYTES; .*PENNON_LOG_MAX_BYTES, raise that$/m,
    )
  })

  it('refused imports are reported for an instance that accepts live events', async t => {
    const folder = tempDir(t)
    const readiness =
      '{"flags": "ok", "capture": "ok", "processing": "ok", "events": "ok", "imports_refused": "the share is taken"}'
    const { port } = await listening(t, 200, readiness)
    await holdLock(t, folder)
    const { exitCode, output } = await doctor({ PENNON_DATA: folder, PORT: String(port) })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      /^ok +instance .*capture and processing are ok; imports are currently refused: the share is taken$/m,
    )
  })

  it('a damaged state, even deep inside the file, and a missing state are found, and the file is named', async t => {
    const folder = tempDir(t)
    const file = join(folder, 'state.db')
    await migrateSqlite(folder)
    const whole = readFileSync(file)
    for (const state of ['state.db-wal', 'state.db-shm']) rmSync(join(folder, state), { force: true })

    const page = Buffer.from(whole)
    page.fill(0xaa, 4096, 5 * 4096)
    writeFileSync(file, page)
    const deep = await doctor({ PENNON_DATA: folder })
    assert.equal(deep.exitCode, 1, deep.output)
    assert.match(deep.output, new RegExp(`^FAIL +state +${file} is damaged \\(.*\\)\\n +→ Restore .*PENNON_DATA`, 'm'))

    writeFileSync(file, 'this is a text, and a long one, but no database'.repeat(100))
    const text = await doctor({ PENNON_DATA: folder })
    assert.match(
      text.output,
      new RegExp(`^FAIL +state +${file} is damaged \\(file is not a database\\)\\n +→ Restore`, 'm'),
    )

    rmSync(file)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    const missing = await doctor({ PENNON_DATA: folder })
    assert.match(
      missing.output,
      /^FAIL +state +.*state\.db is missing, and log\/ .* another state\n +→ .*DATABASE_URL.*backup/m,
    )
    assert.equal(existsSync(file), false, 'doctor creates no files')
  })

  it('every segment of the log is opened, and a damaged segment is named', async t => {
    const folder = tempDir(t)
    await stateWithLog(folder)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    assert.equal((await doctor({ PENNON_DATA: folder })).exitCode, 0)
    const damaged = join(folder, 'log/main/0000000000099999.db')
    writeFileSync(damaged, 'no segment'.repeat(1_000))
    const { exitCode, output } = await doctor({ PENNON_DATA: folder })
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      new RegExp(`^FAIL +log +${damaged} is damaged \\(.+\\)\\n +→ Its intact records .* backup`, 'm'),
    )
    assert.match(output, /1 problem found\.\n$/)
    renameSync(damaged, damaged.replace('.db', '.damaged.db'))
    assert.match(
      (await doctor({ PENNON_DATA: folder })).output,
      /^FAIL +log +.*\.damaged\.db was damaged and has been set aside\n/m,
    )
  })

  it('a state of a newer version and a log that belongs to another state are refused, as at a start', async t => {
    const [newer, foreign, own] = [tempDir(t), tempDir(t), tempDir(t)]
    await migrateSqlite(newer)
    const state = new Database(join(newer, 'state.db'))
    state.prepare('INSERT INTO schema_version (version, name) VALUES (9999, ?)').run('of tomorrow')
    state.close()
    const found = await doctor({ PENNON_DATA: newer })
    assert.equal(found.exitCode, 1, found.output)
    assert.match(
      found.output,
      /^FAIL +state +The state was written by a newer Pennon \(schema 9999;.*\)\n +→ Start that version/m,
    )

    await stateWithLog(own)
    const { writer } = await openedWriter(t, {}, join(own, 'log'))
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    assert.equal((await doctor({ PENNON_DATA: own })).exitCode, 0)
    writeFileSync(join(own, 'log/identity'), '0192a4b0-0000-7000-8000-000000000001\n')
    cpSync(join(own, 'log'), join(foreign, 'log'), { recursive: true })
    await migrateSqlite(foreign)
    const other = await doctor({ PENNON_DATA: foreign })
    assert.equal(other.exitCode, 1, other.output)
    assert.match(
      other.output,
      /^FAIL +log +The log in .* belongs to another state: .*\n +→ Restore .*backup.*PENNON_DATA/m,
    )
  })

  it('projects deferred in a stream are named, with their lag and its meaning', async t => {
    const folder = tempDir(t)
    await stateWithLog(folder)
    const management = openSqliteManagementStore({ dataFolder: folder, access: 'write' })
    const chunks = openSqliteChunkStore({ dataFolder: folder })
    t.after(() => Promise.all([management.close(), chunks.close()]))
    for (const name of ['Shop', 'Quiet', 'A "large" one'])
      assert.ok((await management.createProject(aNewProject({ name }), aChange())).ok)
    const { writer } = await openedWriter(t, { nowMs: () => Date.now() - 90_000 }, join(folder, 'log'))
    await writer.append('live', encodedEvents([1, 2, 3, 4, 5].map(n => aCapturedEvent(n))))
    assert.match((await doctor({ PENNON_DATA: folder })).output, /^ok +deferred projects +none$/m)

    // The second cursor stays at 1; the first one moves on to 4.
    const commit = { stream: 'main', ownerId: 'w', committedAtMs: 0 }
    for (const stream of ['main', 'main.deferred']) await chunks.claimPosition(stream, 'w')
    assert.equal(await chunks.commitChunk(chunkChanges(), { ...commit, fromOffset: 0, offset: 1 }), 'committed')
    for (const projectId of [1, 3]) assert.ok(await management.deferProject('main', 'w', projectId, 1))
    assert.equal(await chunks.commitChunk(chunkChanges(), { ...commit, fromOffset: 1, offset: 4 }), 'committed')
    const { exitCode, output } = await doctor({ PENNON_DATA: folder })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      /^WARN +deferred projects +main: project 1 \("Shop"\), project 3 \("A \\"large\\" one"\); up to 3 records behind the other projects, the oldest (9\d|1\d\d) s old\n +→ nothing is lost or refused: .*processed separately/m,
    )
    assert.doesNotMatch(output, /Quiet/)
  })

  it('a damaged log identity is distinguished from an unreadable log identity', async t => {
    const folder = tempDir(t)
    await migrateSqlite(folder)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    const identity = join(folder, 'log/identity')
    writeFileSync(identity, 'no id\n')
    const damaged = await doctor({ PENNON_DATA: folder })
    assert.match(damaged.output, /^FAIL +log +.*identity does not contain the id of a log\n +→ Restore .*backup/m)
    rmSync(identity)
    mkdirSync(identity)
    const unreadable = await doctor({ PENNON_DATA: folder })
    assert.equal(unreadable.exitCode, 1, unreadable.output)
    assert.match(
      unreadable.output,
      /^FAIL +state and log +cannot be opened \(.*EISDIR.*\)\n +→ run doctor as the user/m,
    )
  })

  it('a clock earlier than the last write is reported as wrong', t => {
    const folder = tempDir(t)
    const config = readConfig({ PENNON_DATA: folder })
    assert.ok(config.ok)
    const segment = join(folder, 'segment.db')
    writeFileSync(segment, '')
    const writtenAt = new Date('2027-03-01T12:00:00Z')
    utimesSync(segment, writtenAt, writtenAt)
    assert.equal(checkClock(config.value, new Date('2027-03-01T12:00:01Z')).isGood, true)
    const behind = checkClock(config.value, new Date('2027-03-01T11:58:59Z'))
    assert.equal(behind.isGood, false)
    assert.match(behind.found, /last written at 2027-03-01T12:00:00/)
    assert.equal(checkClock(config.value, new Date('2001-01-01T00:00:00Z')).isGood, false)
  })

  it('the number of connections that the limit of open files allows is shown, with a warning if it is low', () => {
    const enough = checkOpenFiles(65_536)
    assert.deepEqual([enough.isGood, enough.found], [true, 'at most 65536; 16384 connections for each front'])
    const few = checkOpenFiles(700)
    assert.deepEqual([few.isGood, few.found], [false, 'at most 700; 444 connections for each front'])
    assert.match(few.remedy!, /ulimit -n 65536.*LimitNOFILE=65536.*--ulimit nofile=65536/)
    assert.equal(checkOpenFiles(null).isGood, true)
  })
})
