import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { checkClock, checkOpenFiles } from '../../src/commands/doctor/check-machine.ts'
import { readConfig } from '../../src/config.ts'
import { acquireDataLock, type LockCommand } from '../../src/processes/data-lock.ts'
import { aCapturedEvent, encodedEvents } from '../support/captured-events.ts'
import { startFront } from '../support/front.ts'
import { openedWriter } from '../support/sqlite-log-files.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Result {
  readonly exitCode: number
  readonly output: string
}

/** `pennon doctor` as a process, with nothing of this one's settings. */
function doctor(settings: Record<string, string>): Promise<Result> {
  return new Promise(resolve => {
    const args = ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'doctor']
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', ...settings }
    execFile(process.execPath, args, { env }, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code), output: stdout + stderr })
    })
  })
}

/** A server that answers every request the same, on a port of its own. */
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

/** As `serve` does, whose folder this would be. */
async function holdLock(t: TestContext, folder: string, command: LockCommand = 'serve'): Promise<void> {
  const held = await acquireDataLock(folder, { command, waitMsMax: 0 })
  assert.ok(held.ok)
  t.after(() => held.value.release())
}

describe('pennon doctor', () => {
  it('takes a backup that has the folder for no instance', async t => {
    const folder = join(tempDir(t), 'data')
    await holdLock(t, folder, 'backup')
    const { exitCode, output } = await doctor({ PENNON_DATA: folder })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      new RegExp(`instance +not running; process ${process.pid} \\(pennon backup\\) has the data folder`),
    )
  })

  it('finds nothing to mend before a first start', async t => {
    const { exitCode, output } = await doctor({ PENNON_DATA: join(tempDir(t), 'data') })
    assert.equal(exitCode, 0, output)
    for (const what of [
      'node',
      'open files',
      'data folder',
      'disk',
      'instance',
      'port',
      'state and log',
      'event store',
      'geoip',
      'clock',
    ])
      assert.match(output, new RegExp(`^ok +${what} `, 'm'))
    assert.match(output, /Nothing to mend\.\n$/)
  })

  it('names a port in use, a folder that is a file, a store that is away and a file that is no database, each with a way out', async t => {
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
      ['data folder', 'is no folder', 'set PENNON_DATA'],
      ['port', 'EADDRINUSE', 'set PORT to a free port'],
      ['state', 'PostgreSQL at 127.0.0.1:9/state .*Is it running there', 'check DATABASE_URL and the network'],
      ['event store', 'ClickHouse at 127.0.0.1:9 does not answer', 'check CLICKHOUSE_URL and the network'],
      ['geoip', 'GEOIP_DATABASE', 'get GeoLite2 City from MaxMind'],
    ])
      assert.match(output, new RegExp(`^MEND +${what} .*${found}.*\\n +→ .*${remedy}`, 'm'))
    assert.match(output, /5 to mend\.\n$/)
    assert.doesNotMatch(output, /secret/)
    assert.deepEqual(away.requests, [])
  })

  it('asks ClickHouse with its user, and says when it refuses', async t => {
    const refusing = await listening(t, 516, 'Code: 516. Authentication failed')
    const url = `http://ann:secret@127.0.0.1:${refusing.port}/events`
    const { exitCode, output } = await doctor({ PENNON_DATA: tempDir(t), CLICKHOUSE_URL: url })
    assert.equal(exitCode, 1, output)
    assert.match(output, /^MEND +event store .*516 Code: 516\. Authentication failed\n +→ check user and password/m)
    assert.deepEqual(refusing.requests, ['ann:secret /?query=SELECT+version()'])
  })

  it('says of an instance, and of one that would be started, that it is for imports alone', async t => {
    const settings = { PENNON_DATA: tempDir(t), PENNON_IMPORT_ONLY: 'true' }
    const before = await doctor(settings)
    assert.match(before.output, /^ok +instance +not running; .*import-only \(PENNON_IMPORT_ONLY\)/m)

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

  it('names both limits that an instance without room may have met', async t => {
    const folder = tempDir(t)
    const { port } = await listening(t, 200, '{"flags": "ok", "capture": "log_or_disk_full", "processing": "ok"}')
    await holdLock(t, folder)
    const { exitCode, output } = await doctor({ PENNON_DATA: folder, PORT: String(port) })
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      /^MEND +instance .*capture: log_or_disk_full\n +→ .*lower PENNON_MIN_FREE_BYTES; .*PENNON_LOG_MAX_BYTES, raise that$/m,
    )
  })

  it('says that imports are refused for now, of an instance that takes live events', async t => {
    const folder = tempDir(t)
    const readiness = '{"flags": "ok", "capture": "ok", "processing": "ok", "imports_refused": "the share is taken"}'
    const { port } = await listening(t, 200, readiness)
    await holdLock(t, folder)
    const { exitCode, output } = await doctor({ PENNON_DATA: folder, PORT: String(port) })
    assert.equal(exitCode, 0, output)
    assert.match(
      output,
      /^ok +instance .*capture and processing are ok; imports are refused for now: the share is taken$/m,
    )
  })

  it('finds a state that is damaged, deep inside as well, and one that is missing, and names the file', async t => {
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
    assert.match(deep.output, new RegExp(`^MEND +state +${file} is damaged \\(.*\\)\\n +→ Restore .*PENNON_DATA`, 'm'))

    writeFileSync(file, 'this is a text, and a long one, but no database'.repeat(100))
    const text = await doctor({ PENNON_DATA: folder })
    assert.match(
      text.output,
      new RegExp(`^MEND +state +${file} is damaged \\(file is not a database\\)\\n +→ Restore`, 'm'),
    )

    rmSync(file)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('main', encodedEvents([aCapturedEvent(1)]))
    const missing = await doctor({ PENNON_DATA: folder })
    assert.match(
      missing.output,
      /^MEND +state +.*state\.db is missing, and log\/ .* another state\n +→ .*DATABASE_URL.*backup/m,
    )
    assert.equal(existsSync(file), false, 'doctor makes nothing')
  })

  it('opens every segment of the log, and names the damaged one', async t => {
    const folder = tempDir(t)
    await migrateSqlite(folder)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('main', encodedEvents([aCapturedEvent(1)]))
    assert.equal((await doctor({ PENNON_DATA: folder })).exitCode, 0)
    const damaged = join(folder, 'log/main/0000000000099999.db')
    writeFileSync(damaged, 'no segment'.repeat(1_000))
    const { exitCode, output } = await doctor({ PENNON_DATA: folder })
    assert.equal(exitCode, 1, output)
    assert.match(
      output,
      new RegExp(`^MEND +log +${damaged} is damaged \\(.+\\)\\n +→ What is whole in it .* backup`, 'm'),
    )
    assert.match(output, /1 to mend\.\n$/)
    renameSync(damaged, damaged.replace('.db', '.damaged.db'))
    assert.match(
      (await doctor({ PENNON_DATA: folder })).output,
      /^MEND +log +.*\.damaged\.db was damaged, and is set aside\n/m,
    )
  })

  it('tells an id of the log that is damaged from one that cannot be read', async t => {
    const folder = tempDir(t)
    await migrateSqlite(folder)
    const { writer } = await openedWriter(t, {}, join(folder, 'log'))
    await writer.append('main', encodedEvents([aCapturedEvent(1)]))
    const identity = join(folder, 'log/identity')
    writeFileSync(identity, 'no id\n')
    const damaged = await doctor({ PENNON_DATA: folder })
    assert.match(damaged.output, /^MEND +log +.*identity does not hold the id of a log\n +→ Restore .*backup/m)
    rmSync(identity)
    mkdirSync(identity)
    const unreadable = await doctor({ PENNON_DATA: folder })
    assert.equal(unreadable.exitCode, 1, unreadable.output)
    assert.match(
      unreadable.output,
      /^MEND +state and log +cannot be opened \(.*EISDIR.*\)\n +→ run doctor as the user/m,
    )
  })

  it('takes a clock that stands before the last write for wrong', t => {
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

  it('says how many connections the limit of open files leaves, and that it is low', () => {
    const enough = checkOpenFiles(65_536)
    assert.deepEqual([enough.isGood, enough.found], [true, 'at most 65536; 16384 connections for each front'])
    const few = checkOpenFiles(700)
    assert.deepEqual([few.isGood, few.found], [false, 'at most 700; 444 connections for each front'])
    assert.match(few.remedy!, /ulimit -n 65536.*LimitNOFILE=65536.*--ulimit nofile=65536/)
    assert.equal(checkOpenFiles(null).isGood, true)
  })
})
