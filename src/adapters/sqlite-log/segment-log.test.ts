// Guarantees of the segment log beyond the contract of every log (`tests/ports/event-log.contract.ts`): a unit is
// stored whole or not at all, offsets have no gaps, and whole files are deleted to bound its size.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { EventLogReader, EventLogWriter } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { distinctIds, readAll } from '../../../tests/ports/event-log.contract.ts'
import { decodeRecords } from '../../../tests/support/decode-records.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { openedWriter } from '../../../tests/support/sqlite-log-files.ts'
import { aCapturedEvent, encodedEvents, recordsAt } from '../../../tests/support/values.ts'
import { openSqliteLogReader, type SqliteLogReader } from './sqlite-log-reader.ts'
import type { SqliteLogWriterOptions } from './sqlite-log-writer.ts'

/** Larger than anything in this file. */
const all = { recordCountMax: 10_000, bytesMax: 100_000_000 }

/**
 * Small compared with the limits of 10 MB: side files, which go away when a segment ends, then do not affect whether
 * space is short, whenever the writer last measured it.
 */
const smallSegmentBytes = 400_000

describe('a log of segments', () => {
  it('stores an appended unit completely or not at all', async t => {
    const { writer, reader } = await opened(t, { segmentBytesMax: 60_000, logBytesMax: 600_000 })
    let acknowledged = 0
    const refused = await untilRefused(async () => {
      await writer.append('live', encodedEvents([1, 2, 3].map(n => padded(n, 10_000))))
      acknowledged++
    })
    assert.equal(refused.code, 'full')
    const { records, nextOffset } = await reader.read('main', 0, all)
    assert.deepEqual([records.length, nextOffset], [3 * acknowledged, 3 * acknowledged])
  })

  it('keeps the units of overlapping appends whole and in order, without gaps in the offsets', async t => {
    const { writer, reader } = await opened(t, { segmentBytesMax: 60_000 })
    const units = Array.from({ length: 200 }, (_, unit) =>
      Array.from({ length: 1 + (unit % 5) }, (_, n) => aCapturedEvent(unit * 10 + n)),
    )
    await Promise.all(units.map(unit => writer.append('live', encodedEvents(unit))))
    const read = await readAll(reader, 'main', 64)
    assert.deepEqual(
      distinctIds(read),
      units.flat().map(event => event.distinctId),
    )
    assert.deepEqual(
      read.map(({ offset }) => offset),
      units.flat().map((_, index) => index),
    )
  })

  it('stores large and small units in the order of the calls', async t => {
    const { writer, reader } = await opened(t)
    const large = JSON.stringify({ pad: 'x'.repeat(1_500_000) })
    const unit = (n: number) => encodedEvents([aCapturedEvent(n, n % 3 === 1 ? { propertiesJson: large } : {})])
    await Promise.all([0, 1, 2, 3, 4, 5].map(n => writer.append('live', unit(n))))
    const { records } = await reader.read('main', 0, all)
    assert.deepEqual(
      records.map(
        ({ record }) => record.kind === 'event' && [record.event.distinctId, record.event.propertiesJson.length],
      ),
      [0, 1, 2, 3, 4, 5].map(n => [
        `person-${n}`,
        n % 3 === 1 ? large.length : aCapturedEvent(n).propertiesJson.length,
      ]),
    )
  })

  it('reads across segments as if they were one', async t => {
    const { reader } = await openedWith60(t)
    const read = await readAll(reader, 'main', 7)
    assert.deepEqual(
      distinctIds(read),
      Array.from({ length: 60 }, (_, n) => `person-${n}`),
    )
  })

  it('returns the encoded records of several segments, each record complete', async t => {
    const { writer, reader } = await opened(t, { nowMs: () => 5_000, segmentBytesMax: 20_000 })
    for (let n = 0; n < 40; n++)
      await writer.append('live', encodedEvents([padded(3 * n, 500), padded(3 * n + 1, 500), padded(3 * n + 2, 500)]))
    for (const bytesMax of [1, 10_000, 1_000_000]) {
      const seen: string[] = []
      let offset = 4
      for (;;) {
        const { runs, nextOffset, missing } = await reader.readRuns('main', offset, bytesMax)
        assert.equal(missing, null)
        if (runs.length === 0) break
        if (bytesMax === 1) assert.equal(runs.length, 1)
        for (const run of runs) {
          assert.equal(run.appendedAtMs, 5_000)
          const ids = distinctIds(decodeRecords(run.bytes, run.offsets.length))
          seen.push(...ids.slice(Math.max(0, offset - run.offsets[0]!)))
        }
        offset = nextOffset
      }
      assert.equal(offset, 120)
      assert.deepEqual(
        seen,
        Array.from({ length: 116 }, (_, n) => `person-${n + 4}`),
      )
    }
    await assert.rejects(reader.readRuns('main', 121, 1), { code: 'conflict' })
  })

  it('deletes only whole segments that are processed and old enough, and never the newest', async t => {
    const { writer, reader } = await openedWith60(t)
    assert.deepEqual(await reader.deleteBefore('main', 0, 9_000), { deletedSegmentCount: 0 })
    assert.deepEqual(await reader.deleteBefore('main', 60, 1_000), { deletedSegmentCount: 0 })

    const before = await bytes(reader)
    const { deletedSegmentCount } = await reader.deleteBefore('main', 30, 9_000)
    assert.ok(deletedSegmentCount >= 1)
    assert.ok((await bytes(reader)) < before)
    const oldest = await reader.read('main', 0, { recordCountMax: 1, bytesMax: 1 })
    const { offset } = oldest.records[0]!
    assert.ok(offset > 0 && offset <= 30, `kept from ${offset}`)
    assert.deepEqual(distinctIds(oldest.records), [`person-${offset}`])
    assert.deepEqual(oldest.missing, { recordCount: offset, fromOffset: 0, toOffset: offset, file: null })
    assert.equal(distinctIds(await readAll(reader, 'main', 100, 30)).at(0), 'person-30')

    await reader.deleteBefore('main', 60, 9_000)
    const kept = await reader.read('main', 0, all)
    assert.ok(kept.records.length > 0)
    assert.equal(kept.nextOffset, 60)
    await writer.append('live', encodedEvents([padded(60, 10)]))
    assert.equal((await reader.readStreamStatus('main', 0)).endOffset, 61)
  })

  it('deletes only old segments before an offset, oldest first', async t => {
    const { reader } = await openedWith60(t)
    await reader.deleteBefore('main', 60, 1_030)
    const oldest = await oldestOf(reader, 'main')
    assert.ok(oldest > 0 && oldest <= 30, `kept from ${oldest}`)
  })

  it('refuses appends at its limit, keeps its records, and accepts more after space was freed', async t => {
    const { writer, reader } = await opened(t, { segmentBytesMax: smallSegmentBytes, logBytesMax: 10_000_000 })
    const { appended, append } = countAppends(writer)
    const refused = await untilRefused(() => append('live'))
    assert.deepEqual([refused.code, refused.retryable], ['full', false])
    assert.ok(appended.live > 10)
    assert.equal((await readAll(reader, 'main', 100)).length, appended.live)
    await reader.deleteBefore('main', appended.live, Number.MAX_SAFE_INTEGER)
    await untilTaken(writer)
    assert.equal((await reader.readStreamStatus('main', 0)).endOffset, appended.live + 1)
  })

  it('deletes processed segments of any age while space is short, oldest first, but no unprocessed ones', async t => {
    let nowMs = 1_000
    const limits = { segmentBytesMax: smallSegmentBytes, logBytesMax: 10_000_000, nowMs: () => nowMs++ }
    const { writer, reader } = await opened(t, limits)
    const { appended, append } = countAppends(writer)
    for (let n = 0; n < 20; n++) await append('import')
    const refused = await untilRefused(() => append('live'))
    assert.equal(refused.code, 'full')
    assert.equal((await reader.measureSpace()).isShort, true)
    assert.deepEqual(await reader.reclaimSpace({ main: 0, historical: 0 }), { deletedSegmentCount: 0 })

    const processed = { main: appended.live - 3, historical: appended.import }
    assert.ok((await reader.reclaimSpace(processed)).deletedSegmentCount >= 1)
    const { isShort, bytes, bytesMax } = await reader.measureSpace()
    assert.deepEqual([isShort, bytesMax], [false, 10_000_000])
    assert.ok(bytes > 8_000_000, 'no more goes than has to')
    assert.ok((await oldestOf(reader, 'historical')) > 0)
    assert.equal(await oldestOf(reader, 'main'), 0)
    assert.equal((await readAll(reader, 'main', 100, processed.main)).length, 3)
    await untilTaken(writer)
  })

  it('refuses imports but not live events at half of its limit, until some imports are processed', async t => {
    const limits = { segmentBytesMax: smallSegmentBytes, logBytesMax: 10_000_000 }
    const { writer, reader } = await opened(t, limits)
    const { appended, append } = countAppends(writer)
    const refused = await untilRefused(() => append('import'))
    assert.equal(refused.code, 'full')
    assert.ok(appended.import > 10 && appended.import <= 25, `${appended.import} imports`)
    for (let n = 0; n < 8; n++) await append('live')
    const { isShort, areImportsShort } = await reader.measureSpace()
    assert.deepEqual({ isShort, areImportsShort }, { isShort: false, areImportsShort: true })

    const { deletedSegmentCount } = await reader.reclaimSpace({ main: appended.live, historical: appended.import })
    assert.ok(deletedSegmentCount >= 1)
    assert.equal((await reader.measureSpace()).areImportsShort, false)
    assert.equal(await oldestOf(reader, 'main'), 0)
    assert.ok((await oldestOf(reader, 'historical')) > 0)
    await untilTaken(writer, 'import')
  })

  it('returns the same records after complete segments were compressed, from any offset and with any limits', async t => {
    let nowMs = 1_000
    const { writer, reader } = await opened(t, { nowMs: () => nowMs, segmentBytesMax: 200_000 })
    const events = Array.from({ length: 120 }, (_, n) => padded(n, n % 7 === 0 ? 40_000 : 500))
    for (let n = 0; n < 120; n += 3) {
      nowMs += 100
      await writer.append('live', encodedEvents(events.slice(n, n + 3)))
    }
    const before = await bytes(reader)
    const { compressedSegmentCount } = await reader.compressSegments(new AbortController().signal)
    if (compressedSegmentCount > 0) assert.ok(before - (await bytes(reader)) > 300_000)
    const expected = recordsAt(events.map(event => ({ kind: 'event', event })))
    for (const recordCountMax of [1, 7, 1_000])
      assert.deepEqual(await readAll(reader, 'main', recordCountMax), expected)
    assert.deepEqual(await readAll(reader, 'main', 50, 34), expected.slice(34))
    const { runs, missing } = await reader.readRuns('main', 5, 1_000_000_000)
    assert.equal(missing, null)
    const inRuns = runs.flatMap(({ bytes, offsets }) =>
      decodeRecords(bytes, offsets.length).map((record, index) => ({ offset: offsets[index]!, record })),
    )
    assert.deepEqual(
      inRuns.filter(({ offset }) => offset >= 5),
      expected.slice(5),
    )
    const { appendedAtMs, endOffset } = await reader.readStreamStatus('main', 60)
    assert.equal(endOffset, 120)
    assert.ok(appendedAtMs! <= 3_100 && appendedAtMs! > 2_100, `appended at ${appendedAtMs}`)
    await writer.append('live', encodedEvents([aCapturedEvent(120)]))
    assert.equal((await reader.readStreamStatus('main', 0)).endOffset, 121)
  })
})

async function opened(t: TestContext, options: Partial<SqliteLogWriterOptions> = {}) {
  const { folder, writer } = await openedWriter(t, { logBytesMax: 2 ** 40, ...options })
  const reader = openSqliteLogReader({ folder, logBytesMax: options.logBytesMax ?? 2 ** 40 })
  t.after(() => reader.close())
  return { writer, reader }
}

/** Record n is appended at the time 1,000 + n; they fill several segments. */
async function openedWith60(t: TestContext) {
  let nowMs = 1_000
  const log = await opened(t, { nowMs: () => nowMs, segmentBytesMax: 20_000 })
  for (let n = 0; n < 60; n++) {
    nowMs = 1_000 + n
    await log.writer.append('live', encodedEvents([padded(n, 2_000)]))
  }
  return log
}

/** Appends large records one by one. */
function countAppends(writer: EventLogWriter) {
  const appended = { live: 0, import: 0 }
  const append = async (traffic: Traffic) => {
    await writer.append(traffic, encodedEvents([padded(appended[traffic], 200_000)]))
    appended[traffic]++
  }
  return { appended, append }
}

function padded(n: number, bytes: number) {
  return aCapturedEvent(n, { propertiesJson: JSON.stringify({ pad: 'x'.repeat(bytes) }) })
}

async function bytes(reader: SqliteLogReader): Promise<number> {
  return (await reader.measureSpace()).bytes
}

async function oldestOf(reader: EventLogReader, stream: LogStream): Promise<number> {
  return (await reader.read(stream, 0, { recordCountMax: 1, bytesMax: 1 })).records[0]!.offset
}

async function untilRefused(append: () => Promise<void>): Promise<PortError> {
  for (let n = 0; n < 200; n++) {
    try {
      await append()
    } catch (error) {
      if (error instanceof PortError) return error
      throw error
    }
  }
  throw new Error('nothing was refused')
}

/** Waits until an append is accepted: space is not measured at every append. */
async function untilTaken(writer: EventLogWriter, traffic: Traffic = 'live'): Promise<void> {
  const isTaken = async () => {
    try {
      await writer.append(traffic, encodedEvents([aCapturedEvent(1)]))
      return true
    } catch (error) {
      if (!(error instanceof PortError && error.code === 'full')) throw error
      return false
    }
  }
  await eventually(isTaken, { what: 'space in the log' })
}
