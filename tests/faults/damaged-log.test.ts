// Log files that are damaged, truncated or removed, between two starts and under a running writer. No acknowledged
// record is lost silently: each is processed, or set aside with its bytes, or counted with its position.

import assert from 'node:assert/strict'
import {
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import Database from 'better-sqlite3'
import { listSegments, pageBytes, type SegmentName } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { buildMarkPath } from '#adapters/sqlite-log/stream-mark.ts'
import { holdLogSegments } from '#compose/log/held-segments.ts'
import { findLogDamage } from '#compose/log/log-damage.ts'
import { readConfig } from '#config.ts'
import type { Lane } from '#core/events/captured-event.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { EventLogWriter } from '#ports/log/event-log.ts'
import { eventually } from '../support/eventually.ts'
import { startManagement } from '../support/management-api.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { openedWriter } from '../support/sqlite-log-files.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../support/values.ts'
import { aWorld } from '../support/world/world.ts'

const streams: readonly LogStream[] = ['main', 'historical']
const unitCount = 30
const unitEvents = 10
const eventCount = unitCount * unitEvents
const segmentBytesMax = 150_000

describe('a log with damaged files', () => {
  for (const stream of streams) {
    it(`loses no more than the overwritten records after damage to any 4 KiB of stream ${stream}`, async t => {
      const random = seededRandom(7)
      const good = await aFilledLog(t, [stream])
      for (const at of [0, pageBytes, 2 * pageBytes, 3 * pageBytes + 4_096 * Math.floor(random() * 8)]) {
        const folder = copyOf(t, good)
        const segment = listSegments(join(folder, stream))[1]!
        overwrite(segment.path, at, 4_096)
        const { stored, damaged, losses } = await processed(t, folder)
        const missing = losses.reduce((sum, loss) => sum + loss.toOffset - loss.fromOffset, 0)
        const what = `4 KiB at ${at}: ${stored} stored, ${damaged} damaged, ${missing} missing`
        assert.equal(stored[stream]! + damaged + missing, eventCount, what)
        // A page has some forty of these records.
        assert.ok(damaged + missing <= 50, what)
        for (const loss of losses) assert.match(loss.file ?? '', /\.damaged\.db$/)
      }
    })
  }

  it('loses nothing if only file headers are damaged', async t => {
    const folder = await aFilledLog(t, ['main'])
    for (const { path } of listSegments(join(folder, 'main'))) overwrite(path, 0, 100)
    await appendedTo(t, folder, 'main', 1)
    const { stored, losses } = await processed(t, folder)
    assert.deepEqual([stored.main, losses], [eventCount + unitEvents, []])
    assert.ok(listSegments(join(folder, 'main')).filter(({ form }) => form === 'damaged').length >= 3)
  })

  it('still processes one stream while the other is unreadable', async t => {
    const folder = await aFilledLog(t, streams)
    for (const { path } of listSegments(join(folder, 'main'))) overwrite(path, 0, statSync(path).size)
    await appendedTo(t, folder, 'main', 1)
    const { stored, losses } = await processed(t, folder)
    assert.deepEqual(stored, { main: unitEvents, historical: eventCount })
    assert.deepEqual(lostOf(losses), [eventCount])
  })

  it('keeps a WAL file that SQLite reads only up to the damage, and all undamaged records in it are read', async t => {
    const folder = join(tempDir(t), 'log')
    const { writer } = await openedWriter(t, {}, folder)
    await fill(writer, 'main')
    const { size } = statSync(`${listSegments(join(folder, 'main'))[0]!.path}-wal`)
    const places = { header: 20, first: 41, middle: size >> 1, last: size - pageBytes }
    for (const [place, at] of Object.entries(places))
      for (const bytes of [1, 4_096]) {
        const what = `${bytes} bytes at ${place}`
        const dataFolder = tempDir(t)
        const copy = join(dataFolder, 'log')
        cpSync(folder, copy, { recursive: true })
        const { path } = listSegments(join(copy, 'main'))[0]!
        overwrite(`${path}-wal`, at, bytes)
        const evidence = readFileSync(`${path}-wal`)
        // Inspecting a stopped instance must not change it.
        const config = readConfig({ PENNON_DATA: dataFolder })
        assert.ok(config.ok)
        const [found] = findLogDamage(config.value)
        assert.ok(found?.kind === 'segment' && found.path === path, what)
        holdLogSegments(config.value).close()
        await appendedTo(t, copy, 'main', 1)
        const [aside] = listSegments(join(copy, 'main'))
        assert.equal(aside?.form, 'damaged', what)
        assert.ok(readFileSync(`${aside.path}-wal`).equals(evidence), what)
        const { stored, damaged, losses } = await processed(t, copy)
        const missing = losses.reduce((sum, loss) => sum + loss.toOffset - loss.fromOffset, 0)
        const outcome = `${what}: ${stored.main} stored, ${damaged} damaged, ${missing} missing`
        assert.equal(stored.main! + damaged + missing, eventCount + unitEvents, outcome)
        // A page has some thirty of these records, and the page before it in the side file has mostly the same ones.
        assert.ok(damaged + missing <= 2 * unitEvents, outcome)
        for (const { file, body } of losses) assert.ok(body !== undefined || file === aside.path, what)
      }
  })

  it('reports what was lost from a truncated file and from removed files', async t => {
    const good = await aFilledLog(t, ['main'])
    const [first, second, third] = listSegments(join(good, 'main')) as [SegmentName, SegmentName, SegmentName]
    const inFolder = (folder: string, { path }: SegmentName) => path.replace(good, folder)

    const cut = copyOf(t, good)
    truncateSync(inFolder(cut, second), 40_000)
    const afterCut = await processed(t, cut)
    assert.deepEqual(lostOf(afterCut.losses), [third.firstOffset - second.firstOffset])
    assert.equal(afterCut.stored.main, eventCount - (third.firstOffset - second.firstOffset))

    const removed = copyOf(t, good)
    rmSync(inFolder(removed, first))
    const afterRemoval = await processed(t, removed)
    assert.deepEqual(afterRemoval.losses, [
      { stream: 'main', fromOffset: 0, toOffset: second.firstOffset, file: null, noticedAtMs: afterRemoval.nowMs },
    ])

    const emptied = copyOf(t, good)
    for (const name of readdirSync(join(emptied, 'main'))) rmSync(join(emptied, 'main', name))
    const { writer } = await openedWriter(t, {}, emptied)
    const afterEmptying = await processed(t, emptied)
    assert.deepEqual(lostOf(afterEmptying.losses), [eventCount], 'known before a new record arrives')
    await writer.append('live', encodedEvents([aCapturedEvent(9_999)]))
  })

  it('shows a record with a wrong checksum, with its bytes, only to the operator', async t => {
    const folder = await aFilledLog(t, ['main'])
    const { path, firstOffset } = listSegments(join(folder, 'main'))[1]!
    const segment = new Database(path)
    const frame = segment.prepare('SELECT body FROM frames WHERE first_offset = ?').pluck()
    const body = frame.get(firstOffset) as Buffer
    body[body.indexOf('"pad"') + 20]! ^= 1
    segment.prepare('UPDATE frames SET body = ? WHERE first_offset = ?').run(body, firstOffset)
    segment.close()
    const { losses, damaged, stored } = await processed(t, folder)
    assert.ok(damaged >= 1)
    assert.equal(stored.main! + damaged, eventCount)

    const api = await startManagement(t, { log: { listLosses: async () => losses } })
    const listed = await api.call('GET', '/api/instance/lost_records/')
    assert.deepEqual([listed.status, listed.body.count], [200, damaged])
    const [record] = listed.body.results
    assert.deepEqual([record.lane, record.to_offset - record.from_offset, record.file], ['main', 1, null])
    assert.equal(record.record_count, 1)
    assert.match(Buffer.from(record.body, 'base64').toString('latin1'), new RegExp(`main-${record.from_offset}`))
    assert.equal((await api.call('GET', '/api/instance/lost_records/?limit=1&offset=9')).body.results.length, 0)
    for (const key of [await api.addKey(['query:read']), await api.addKey(['*'], [1])])
      assert.equal((await api.call('GET', '/api/instance/lost_records/', { key })).status, 403)
  })

  it('still works without the file that records how far a stream reached, even with a damaged newest segment', async t => {
    const folder = await aFilledLog(t, ['main'])
    rmSync(buildMarkPath(join(folder, 'main')))
    const plain = copyOf(t, folder)
    await appendedTo(t, plain, 'main', 1)
    assert.equal((await processed(t, plain)).stored.main, eventCount + unitEvents)

    overwrite(listSegments(join(folder, 'main')).at(-1)!.path, 0, 100)
    await appendedTo(t, folder, 'main', 1)
    const { stored, losses } = await processed(t, folder)
    assert.deepEqual([stored.main, losses], [eventCount + unitEvents, []])
  })

  it('accepts events again after a page of the current segment was damaged', async t => {
    const folder = tempDir(t)
    const { writer } = await openedWriter(t, { segmentBytesMax: 1e9 }, folder)
    await fill(writer, 'main')
    // SQLite does not read from the file what its write-ahead log has.
    const { path } = listSegments(join(folder, 'main')).at(-1)!
    for (const file of [path, `${path}-wal`])
      overwrite(file, Math.min(4 * pageBytes, statSync(file).size - 4_096), 4_096)
    const world = processing(t, folder)
    await eventually(async () => {
      // Refused until the damage is noticed and another segment is begun, so it is retried until then.
      await writer
        .append('live', encodedEvents([aCapturedEvent(8_000, { distinctId: 'main-8000' })]))
        .catch(() => undefined)
      return world.isProcessed()
    })
    await writer.append('live', encodedEvents([aCapturedEvent(8_001, { distinctId: 'main-8001' })]))
    await eventually(() => world.isProcessed())
    const { stored, damaged, losses } = await world.outcome()
    const missing = losses.reduce((sum, loss) => sum + loss.toOffset - loss.fromOffset, 0)
    assert.ok(damaged + missing <= 100, `${damaged} damaged, ${missing} missing`)
    assert.ok(stored.main! + damaged + missing >= eventCount + 2)
  })
})

describe('a log whose files are removed under a running writer', () => {
  const ways: Readonly<Record<string, (folder: string, segment: string) => void>> = {
    'the folder is removed': folder => rmSync(folder, { recursive: true }),
    'the folder is renamed': folder => renameSync(folder, `${folder}-away`),
    'the folder is replaced by a copy': folder => {
      cpSync(folder, `${folder}-copy`, { recursive: true })
      rmSync(folder, { recursive: true })
      renameSync(`${folder}-copy`, folder)
    },
    'the files of a stream are removed': folder => {
      for (const name of readdirSync(join(folder, 'main'))) rmSync(join(folder, 'main', name))
    },
    'the segment is removed': (_folder, segment) => rmSync(segment),
    'its side file is removed': (_folder, segment) => rmSync(`${segment}-wal`),
  }
  for (const [way, take] of Object.entries(ways)) {
    it(`refuses appends with the reason if ${way}`, async t => {
      const folder = join(tempDir(t), 'log')
      const { writer } = await openedWriter(t, {}, folder)
      await writer.append('live', encodedEvents([aCapturedEvent(1)]))
      const segment = listSegments(join(folder, 'main'))[0]!.path
      take(folder, segment)
      await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(2)])), { code: 'unavailable' })
      const condition = writer.getCondition()
      assert.equal(condition.state, 'files_gone')
      assert.match((condition as { reason: string }).reason, /0000000000000000\.db was removed or replaced/)
      await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(3)])), { code: 'unavailable' })
      rmSync(`${folder}-away`, { recursive: true, force: true })
    })
  }

  it('notices the removal even without an append', async t => {
    const folder = join(tempDir(t), 'log')
    const { writer } = await openedWriter(t, {}, folder)
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    rmSync(folder, { recursive: true })
    await eventually(() => writer.getCondition().state === 'files_gone')
  })
})

/** A log of closed files. */
async function aFilledLog(t: TestContext, filled: readonly LogStream[]): Promise<string> {
  const folder = tempDir(t)
  const { writer } = await openedWriter(t, { segmentBytesMax }, folder)
  for (const stream of filled) await fill(writer, stream)
  await writer.close()
  for (const stream of filled) assert.ok(listSegments(join(folder, stream)).length >= 3)
  return folder
}

/** Events of about 1 KB: some thirty per page. */
async function fill(writer: EventLogWriter, stream: LogStream, units = unitCount, first = 0): Promise<void> {
  for (let unit = 0; unit < units; unit++)
    await writer.append(
      stream === 'historical' ? 'import' : 'live',
      encodedEvents(
        Array.from({ length: unitEvents }, (_, index) => {
          const n = first + unit * unitEvents + index
          const propertiesJson = JSON.stringify({ pad: `${n} `.repeat(180) })
          return aCapturedEvent(n, { lane: stream as Lane, distinctId: `${stream}-${n}`, propertiesJson })
        }),
      ),
    )
}

/** Opens the log as a start does, appends units and closes it. */
async function appendedTo(t: TestContext, folder: string, stream: LogStream, units: number): Promise<void> {
  const { writer } = await openedWriter(t, {}, folder)
  await fill(writer, stream, units, 5_000)
  await writer.close()
}

function copyOf(t: TestContext, folder: string): string {
  const copy = tempDir(t)
  cpSync(folder, copy, { recursive: true })
  return copy
}

function overwrite(path: string, at: number, bytes: number): void {
  const file = openSync(path, 'r+')
  const garbage = Buffer.alloc(bytes)
  const before = readFileSync(path).subarray(at, at + bytes)
  for (let index = 0; index < bytes; index++) garbage[index] = (before[index] ?? 0) ^ (0x5a + (index % 97))
  writeSync(file, garbage, 0, bytes, at)
}

/** Runs the worker over the whole log and returns the result. */
async function processed(t: TestContext, folder: string) {
  const world = processing(t, folder)
  await eventually(() => world.isProcessed())
  return world.outcome()
}

function processing(t: TestContext, folder: string) {
  const world = aWorld()
  const log = openSqliteLogReader({ folder, onDamage: () => {} })
  t.after(() => log.close())
  const { stop } = world.start(t, { log })
  t.after(stop)
  return {
    isProcessed: async () => {
      for (const stream of streams) {
        const offset = world.state.positions.get(stream)?.offset ?? 0
        if ((await log.readStreamStatus(stream, offset)).endOffset !== offset) return false
      }
      return true
    },
    outcome: async () => {
      const rows = [...world.events.rows.values()]
      const count = (stream: LogStream) => rows.filter(({ distinctId }) => distinctId.startsWith(stream)).length
      const damaged = [...world.events.rejected.values()].filter(({ reason }) => reason === 'log_record_damaged').length
      const stored: Record<LogStream, number> = { main: count('main'), historical: count('historical') }
      return { stored, damaged, losses: await log.listLosses(), nowMs: world.clock.nowMs() }
    },
  }
}

function lostOf(losses: readonly { fromOffset: number; toOffset: number }[]): number[] {
  return losses.map(({ fromOffset, toOffset }) => toOffset - fromOffset)
}
