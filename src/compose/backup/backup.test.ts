import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { unpackBackup } from '#adapters/backup-file/unpack-backup.ts'
import { openSaltFiles } from '#adapters/salt-files/salt-files.ts'
import { openStateWriter } from '#adapters/sqlite/state-writer-client.ts'
import { listSegments } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { StreamAppender } from '#adapters/sqlite-log/stream-appender.ts'
import { readStreamMark } from '#adapters/sqlite-log/stream-mark.ts'
import { readConfig } from '#config.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { distinctIds, readAll } from '../../../tests/ports/event-log.contract.ts'
import { searchFiles } from '../../../tests/support/search-files.ts'
import { openedReader } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/values.ts'
import { HeldSegments } from '../log/held-segments.ts'
import { backUpInstance } from './backup.ts'

describe('a backup', () => {
  it('records no log position beyond the records it contains, even if records are appended meanwhile', async t => {
    const { folder, file, backUpNow, appender } = await instance(t)
    append(appender, 0)
    let isFirst = true
    const done = await backUpNow(() => {
      // The segments are held already, and the first file is being written.
      if (isFirst) for (const n of [1, 2, 3]) append(appender, n)
      isFirst = false
    })
    assert.ok(done.ok, done.ok ? '' : done.error)
    const unpacked = join(folder, 'unpacked')
    mkdirSync(unpacked)
    await unpackBackup(file, unpacked)
    const streamFolder = join(unpacked, 'log', 'main')
    const { endOffset } = await openedReader(t, join(unpacked, 'log')).readStreamStatus('main', 0)
    assert.equal(listSegments(streamFolder).length, 1)
    assert.ok(readStreamMark(streamFolder) > 0 && readStreamMark(streamFolder) <= endOffset)
  })

  it('does not contain the salts of cookieless visitors', async t => {
    const { folder, file, backUpNow, appender } = await instance(t)
    append(appender, 0)
    await openSaltFiles(join(folder, 'data')).findOrCreateSalt('2026-11-28', Buffer.from('salt of that day'))
    assert.ok((await backUpNow()).ok)
    const unpacked = join(folder, 'unpacked')
    mkdirSync(unpacked)
    await unpackBackup(file, unpacked)
    const found = searchFiles(unpacked, ['person-0', 'salt of that day'])
    assert.deepEqual([...found.values()], [['log/main/0000000000000000.db'], []])
  })

  it('is made even if a killed backup left a draft whose name contains the id of a running process', async t => {
    const { file, backUpNow } = await instance(t)
    mkdirSync(`${file}.partial`)
    writeFileSync(join(`${file}.partial`, 'pid'), String(process.pid))
    const done = await backUpNow()
    assert.ok(done.ok, done.ok ? '' : done.error)
    assert.ok(!existsSync(`${file}.partial`))
  })

  it('is refused while another process writes the same file', async t => {
    const { file, backUpNow } = await instance(t)
    mkdirSync(`${file}.partial`)
    const release = tryFileLock(join(`${file}.partial`, 'lock.db'))!
    const refused = await backUpNow()
    assert.deepEqual(refused, { ok: false, error: `Another backup to ${file} is running.` })
    release()
    assert.ok((await backUpNow()).ok)
  })

  it('contains a segment that is compressed between being listed and being opened', async t => {
    const { folder, appender } = await instance(t)
    for (const n of [0, 1, 2]) append(appender, n)
    const logFolder = join(folder, 'data', 'log')
    const before = listSegments(join(logFolder, 'main'))
    const reader = openSqliteLogReader({ folder: logFolder })
    t.after(() => reader.close())
    await reader.compressSegments(new AbortController().signal)
    let looks = 0
    const held = new HeldSegments(logFolder, streamFolder => (looks++ === 0 ? before : listSegments(streamFolder)))
    t.after(() => held.close())
    const names: string[] = []
    await held.addTo(
      {
        bytes: 0,
        addFile: async name => void names.push(name),
        addContent: async () => {},
        finish: async () => {},
        close: async () => {},
      },
      join(folder, 'draft.db'),
    )
    assert.deepEqual(held.warnings, [])
    assert.deepEqual(
      names.filter(name => name.endsWith('.db')),
      listSegments(join(logFolder, 'main')).map(({ path }) => path.slice(path.indexOf('log/main'))),
    )
    assert.deepEqual(distinctIds(await readAll(reader, 'main', 100)), ['person-0', 'person-1', 'person-2'])
  })
})

/** A stopped instance whose log has one record per segment. */
async function instance(t: TestContext) {
  const folder = tempDir(t)
  const [dataFolder, file] = [join(folder, 'data'), join(folder, 'backup.tar')]
  mkdirSync(dataFolder)
  await (await openStateWriter({ dataFolder, logger: createSilentLogger() })).close()
  const appender = new StreamAppender({
    ...{ streamFolder: join(dataFolder, 'log', 'main'), firstOffset: 0, segmentBytesMax: 1 },
    ...{ segmentAgeMs: Infinity, busyTimeoutMs: 1_000 },
  })
  t.after(() => appender.close())
  const config = readConfig({ PENNON_DATA: dataFolder, PENNON_MIN_FREE_BYTES: '1' })
  assert.ok(config.ok, config.ok ? '' : config.error)
  const backUpNow = (checkStop: () => void = () => undefined) =>
    backUpInstance(config.value, file, { nowMs: Date.now, checkStop, onProgress: () => undefined })
  return { folder, file, appender, backUpNow }
}

function append(appender: StreamAppender, n: number): void {
  appender.append([encodedEvents([aCapturedEvent(n)]).bytes], 1_790_000_000_000)
}
