// What every log keeps, whatever it is made of. `open` gives both ends; opening again with the same `place` finds what
// was acknowledged before.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { DecodedRecord, LogLane, LogRecord } from '#core/events/captured-event.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import { decodeRecords } from '#core/log/record-decoder.ts'
import type { EventLogReader, EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { aCapturedEvent, aCapturedReject, encodedEvents } from '../support/captured-events.ts'
import { eventually } from '../support/eventually.ts'

export interface OpenLogOptions {
  readonly nowMs?: () => number
  readonly segmentBytesMax?: number
  readonly logBytesMax?: number
}

export interface OpenedLog {
  readonly writer: EventLogWriter
  readonly reader: EventLogReader
}

export interface LogPlace {
  open(options?: OpenLogOptions): Promise<OpenedLog>
}

/** Larger than anything in here. */
const all = { recordCountMax: 10_000, bytesMax: 100_000_000 }

export function eventLogContract(adapter: string, place: (t: TestContext) => LogPlace): void {
  describe(`EventLog on ${adapter}`, () => {
    it('gives back records in the order in which they arrived, each lane on its own', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      await writer.append('main', encodedEvents([aCapturedEvent(1), aCapturedEvent(2)]))
      await writer.append('historical', encodedEvents([aCapturedEvent(3, { lane: 'historical' })]))
      await writer.append('main', encodedEvents([aCapturedEvent(4)]))
      const main = await reader.read('main', 0, all)
      assert.deepEqual(
        main.records.map(record => record.kind === 'event' && record.event),
        [aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(4)],
      )
      assert.deepEqual([main.lane, main.firstOffset, main.nextOffset], ['main', 0, 3])
      assert.deepEqual(distinctIds((await reader.read('historical', 0, all)).records), ['person-3'])
    })

    it('keeps a reject beside the events', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      const encoder = new RecordEncoder()
      encoder.addReject(aCapturedReject({ body: 'a\u0000b' }))
      encoder.addEvent(aCapturedEvent(1))
      await writer.append('main', encoder.finish())
      assert.deepEqual((await reader.read('main', 0, all)).records, [
        { kind: 'reject', reject: aCapturedReject({ body: 'a\u0000b' }) },
        { kind: 'event', event: aCapturedEvent(1) },
      ])
    })

    it('answers an empty chunk at the end, and reads on when more came', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      assert.deepEqual(await reader.read('main', 0, all), { lane: 'main', firstOffset: 0, records: [], nextOffset: 0 })
      await writer.append('main', encodedEvents([aCapturedEvent(1)]))
      const first = await reader.read('main', 0, all)
      assert.deepEqual((await reader.read('main', first.nextOffset, all)).records, [])
      await writer.append('main', encodedEvents([aCapturedEvent(2)]))
      assert.deepEqual(distinctIds((await reader.read('main', first.nextOffset, all)).records), ['person-2'])
    })

    it('refuses a position behind its end instead of waiting there for ever', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      await writer.append('main', encodedEvents([aCapturedEvent(1)]))
      await assert.rejects(reader.read('main', 2, all), { code: 'conflict' })
    })

    it('reads up to the limits, at least one record, and goes on inside what was appended together', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      const events = Array.from({ length: 1_300 }, (_, n) => aCapturedEvent(n))
      const unit = encodedEvents(events)
      const recordBytes = encodedEvents([aCapturedEvent(700)]).bytes.length
      await writer.append('main', unit)
      const seen: string[] = []
      let offset = 0
      for (const limits of [
        { recordCountMax: 7, bytesMax: 1_000_000 },
        { recordCountMax: 600, bytesMax: 1_000_000 },
        { recordCountMax: 100, bytesMax: 1 },
        { recordCountMax: 100, bytesMax: recordBytes * 3 },
        all,
      ]) {
        const chunk = await reader.read('main', offset, limits)
        assert.equal(chunk.firstOffset, offset)
        assert.equal(chunk.nextOffset, offset + chunk.records.length)
        seen.push(...distinctIds(chunk.records))
        offset = chunk.nextOffset
        if (limits.bytesMax === 1) assert.equal(chunk.records.length, 1)
        if (limits.bytesMax === recordBytes * 3) assert.equal(chunk.records.length, 3)
      }
      assert.deepEqual(
        seen,
        events.map(event => event.distinctId),
      )
    })

    it('gives whole runs of encoded records to who passes by most of them, over several segments', async t => {
      const { writer, reader } = await openedIn(t, place(t), { nowMs: () => 5_000, segmentBytesMax: 20_000 })
      for (let n = 0; n < 40; n++)
        await writer.append('main', encodedEvents([padded(3 * n, 500), padded(3 * n + 1, 500), padded(3 * n + 2, 500)]))
      for (const bytesMax of [1, 10_000, 1_000_000]) {
        const seen: string[] = []
        let offset = 4
        for (;;) {
          const { runs, firstOffset, nextOffset } = await reader.readRuns('main', offset, bytesMax)
          assert.equal(firstOffset, offset)
          if (runs.length === 0) break
          if (bytesMax === 1) assert.equal(runs.length, 1)
          for (const run of runs) {
            assert.equal(run.appendedAtMs, 5_000)
            const ids = distinctIds(decodeRecords(run.bytes, run.recordCount))
            seen.push(...ids.slice(Math.max(0, offset - run.firstOffset)))
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

    it('has after reopening everything that was acknowledged', async t => {
      const log = place(t)
      const first = await log.open()
      for (let n = 0; n < 20; n++) await first.writer.append('main', encodedEvents([aCapturedEvent(n)]))
      await first.writer.close()
      await first.reader.close()
      const { writer, reader } = await openedIn(t, log)
      await writer.append('main', encodedEvents([aCapturedEvent(20)]))
      const chunk = await reader.read('main', 0, all)
      assert.deepEqual(
        distinctIds(chunk.records),
        Array.from({ length: 21 }, (_, n) => `person-${n}`),
      )
    })

    it('takes overlapping appends, keeps each unit together and in order, and leaves no holes', async t => {
      const { writer, reader } = await openedIn(t, place(t), { segmentBytesMax: 60_000 })
      const units = Array.from({ length: 200 }, (_, unit) =>
        Array.from({ length: 1 + (unit % 5) }, (_, n) => aCapturedEvent(unit * 10 + n)),
      )
      await Promise.all(units.map(unit => writer.append('main', encodedEvents(unit))))
      const read = await readAll(reader, 'main', 64)
      assert.deepEqual(
        distinctIds(read),
        units.flat().map(event => event.distinctId),
      )
    })

    it('takes large units beside small ones in the order of the calls', async t => {
      const { writer, reader } = await openedIn(t, place(t))
      const large = JSON.stringify({ pad: 'x'.repeat(1_500_000) })
      const unit = (n: number) => encodedEvents([aCapturedEvent(n, n % 3 === 1 ? { propertiesJson: large } : {})])
      await Promise.all([0, 1, 2, 3, 4, 5].map(n => writer.append('main', unit(n))))
      const { records } = await reader.read('main', 0, all)
      assert.deepEqual(
        records.map(record => record.kind === 'event' && [record.event.distinctId, record.event.propertiesJson.length]),
        [0, 1, 2, 3, 4, 5].map(n => [
          `person-${n}`,
          n % 3 === 1 ? large.length : aCapturedEvent(n).propertiesJson.length,
        ]),
      )
    })

    it('goes over several segments without anybody noticing', async t => {
      const { writer, reader } = await openedIn(t, place(t), { segmentBytesMax: 20_000 })
      for (let n = 0; n < 60; n++) await writer.append('main', encodedEvents([padded(n, 2_000)]))
      const read = await readAll(reader, 'main', 7)
      assert.deepEqual(
        distinctIds(read),
        Array.from({ length: 60 }, (_, n) => `person-${n}`),
      )
    })

    it('says where it ends and when a record was appended', async t => {
      let nowMs = 1_000
      const { writer, reader } = await openedIn(t, place(t), { nowMs: () => nowMs, segmentBytesMax: 20_000 })
      assert.deepEqual(await reader.status('main', 0), { endOffset: 0, appendedAtMs: null, bytes: await bytes(reader) })
      for (let n = 0; n < 30; n++) {
        nowMs += 10
        await writer.append('main', encodedEvents([padded(n, 2_000), padded(n, 10)]))
      }
      for (const offset of [0, 1, 17, 59]) {
        const status = await reader.status('main', offset)
        assert.deepEqual([status.endOffset, status.appendedAtMs], [60, 1_010 + Math.floor(offset / 2) * 10])
      }
      assert.equal((await reader.status('main', 60)).appendedAtMs, null)
      assert.ok((await bytes(reader)) > 60_000)
    })

    it('deletes whole segments only, behind the offset and old enough, and never the newest', async t => {
      let nowMs = 1_000
      const { writer, reader } = await openedIn(t, place(t), { nowMs: () => nowMs, segmentBytesMax: 20_000 })
      for (let n = 0; n < 60; n++) {
        nowMs = 1_000 + n
        await writer.append('main', encodedEvents([padded(n, 2_000)]))
      }
      assert.deepEqual(await reader.deleteBehind('main', 0, 9_000), { deletedSegmentCount: 0 })
      assert.deepEqual(await reader.deleteBehind('main', 60, 1_000), { deletedSegmentCount: 0 })

      const before = await bytes(reader)
      const { deletedSegmentCount } = await reader.deleteBehind('main', 30, 9_000)
      assert.ok(deletedSegmentCount >= 1)
      assert.ok((await bytes(reader)) < before)
      const oldest = await reader.read('main', 0, { recordCountMax: 1, bytesMax: 1 })
      assert.ok(oldest.firstOffset > 0 && oldest.firstOffset <= 30, `kept from ${oldest.firstOffset}`)
      assert.deepEqual(distinctIds(oldest.records), [`person-${oldest.firstOffset}`])
      assert.equal(distinctIds(await readAll(reader, 'main', 100, 30)).at(0), 'person-30')

      await reader.deleteBehind('main', 60, 9_000)
      const kept = await reader.read('main', 0, all)
      assert.ok(kept.records.length > 0)
      assert.equal(kept.nextOffset, 60)
      await writer.append('main', encodedEvents([padded(60, 10)]))
      assert.equal((await reader.status('main', 0)).endOffset, 61)
    })

    it('deletes behind an offset only what is old, oldest first', async t => {
      let nowMs = 1_000
      const { writer, reader } = await openedIn(t, place(t), { nowMs: () => nowMs, segmentBytesMax: 20_000 })
      for (let n = 0; n < 60; n++) {
        nowMs = 1_000 + n
        await writer.append('main', encodedEvents([padded(n, 2_000)]))
      }
      await reader.deleteBehind('main', 60, 1_030)
      const { firstOffset } = await reader.read('main', 0, { recordCountMax: 1, bytesMax: 1 })
      assert.ok(firstOffset > 0 && firstOffset <= 30, `kept from ${firstOffset}`)
    })

    it('is full at its limit, keeps what it has, and takes more when room was made', async t => {
      const { writer, reader } = await openedIn(t, place(t), { segmentBytesMax: 60_000, logBytesMax: 600_000 })
      let acknowledged = 0
      const refused = await fillUp(writer, () => acknowledged++)
      assert.ok(refused instanceof PortError && refused.code === 'full' && !refused.retryable)
      assert.ok(acknowledged > 10)
      assert.equal((await readAll(reader, 'main', 100)).length, acknowledged)
      await reader.deleteBehind('main', acknowledged, Number.MAX_SAFE_INTEGER)
      await untilTaken(writer)
      assert.equal((await reader.status('main', 0)).endOffset, acknowledged + 1)
    })

    it('deletes processed segments of any age while room is short, oldest first, never what is not processed', async t => {
      let nowMs = 1_000
      const limits = { segmentBytesMax: 1_000_000, logBytesMax: 10_000_000, nowMs: () => nowMs++ }
      const { writer, reader } = await openedIn(t, place(t), limits)
      const appended = { main: 0, historical: 0 }
      const append = async (lane: LogLane) => {
        await writer.append(lane, encodedEvents([padded(appended[lane], 200_000)]))
        appended[lane]++
      }
      for (let n = 0; n < 12; n++) await append('historical')
      const refused = await untilRefused(() => append('main'))
      assert.equal(refused.code, 'full')
      assert.equal((await reader.room()).isShort, true)
      assert.deepEqual(await reader.makeRoom({ main: 0, historical: 0 }), { deletedSegmentCount: 0 })

      const processed = { main: appended.main - 3, historical: appended.historical }
      assert.ok((await reader.makeRoom(processed)).deletedSegmentCount >= 1)
      const { isShort, bytes, bytesMax } = await reader.room()
      assert.deepEqual([isShort, bytesMax], [false, 10_000_000])
      assert.ok(bytes > 4_000_000, 'no more goes than has to')
      const oldestOf = async (lane: LogLane) =>
        (await reader.read(lane, 0, { recordCountMax: 1, bytesMax: 1 })).firstOffset
      assert.ok((await oldestOf('historical')) > 0)
      assert.equal(await oldestOf('main'), 0)
      assert.equal((await readAll(reader, 'main', 100, processed.main)).length, 3)
      await untilTaken(writer)
    })

    it('refuses imports at half of its limit, takes live events still, and imports again once some were processed', async t => {
      const limits = { segmentBytesMax: 500_000, logBytesMax: 10_000_000 }
      const { writer, reader } = await openedIn(t, place(t), limits)
      const appended = { main: 0, historical: 0 }
      const append = async (lane: LogLane) => {
        await writer.append(lane, encodedEvents([padded(appended[lane], 200_000)]))
        appended[lane]++
      }
      const refused = await untilRefused(() => append('historical'))
      assert.equal(refused.code, 'full')
      assert.ok(appended.historical > 10 && appended.historical <= 25, `${appended.historical} imports`)
      for (let n = 0; n < 12; n++) await append('main')
      const { isShort, areImportsShort } = await reader.room()
      assert.deepEqual({ isShort, areImportsShort }, { isShort: false, areImportsShort: true })

      const { deletedSegmentCount } = await reader.makeRoom({ main: appended.main, historical: appended.historical })
      assert.ok(deletedSegmentCount >= 1)
      assert.equal((await reader.room()).areImportsShort, false)
      assert.equal((await reader.read('main', 0, { recordCountMax: 1, bytesMax: 1 })).firstOffset, 0)
      assert.ok((await reader.read('historical', 0, { recordCountMax: 1, bytesMax: 1 })).firstOffset > 0)
      await untilTaken(writer, 'historical')
    })

    it('has the same records after what is complete was packed, at any place and with any limits', async t => {
      let nowMs = 1_000
      const { writer, reader } = await openedIn(t, place(t), { nowMs: () => nowMs, segmentBytesMax: 200_000 })
      const events = Array.from({ length: 120 }, (_, n) => padded(n, n % 7 === 0 ? 40_000 : 500))
      for (let n = 0; n < 120; n += 3) {
        nowMs += 100
        await writer.append('main', encodedEvents(events.slice(n, n + 3)))
      }
      const before = await bytes(reader)
      const { packedSegmentCount } = await reader.pack(new AbortController().signal)
      if (packedSegmentCount > 0) assert.ok(before - (await bytes(reader)) > 300_000)
      const expected = events.map(event => ({ kind: 'event', event }))
      for (const recordCountMax of [1, 7, 1_000])
        assert.deepEqual(await readAll(reader, 'main', recordCountMax), expected)
      assert.deepEqual(await readAll(reader, 'main', 50, 34), expected.slice(34))
      const { runs, firstOffset } = await reader.readRuns('main', 5, 1_000_000_000)
      assert.equal(firstOffset, 5)
      assert.deepEqual(
        runs.flatMap(run => decodeRecords(run.bytes, run.recordCount).slice(Math.max(0, 5 - run.firstOffset))),
        expected.slice(5),
      )
      const { appendedAtMs, endOffset } = await reader.status('main', 60)
      assert.equal(endOffset, 120)
      assert.ok(appendedAtMs! <= 3_100 && appendedAtMs! > 2_100, `appended at ${appendedAtMs}`)
      await writer.append('main', encodedEvents([aCapturedEvent(120)]))
      assert.equal((await reader.status('main', 0)).endOffset, 121)
    })

    it('takes nothing after close', async t => {
      const { writer } = await openedIn(t, place(t))
      await writer.close()
      await assert.rejects(writer.append('main', encodedEvents([aCapturedEvent(1)])), { code: 'unavailable' })
    })
  })
}

export function distinctIds(records: readonly DecodedRecord[]): string[] {
  return records.map(record => (record.kind === 'event' ? record.event.distinctId : record.kind))
}

/** Everything from an offset on, in chunks; each begins where the one before ended. */
export async function readAll(
  reader: EventLogReader,
  lane: LogLane,
  recordCountMax: number,
  fromOffset = 0,
): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  for (let offset = fromOffset; ; ) {
    const chunk = await reader.read(lane, offset, { recordCountMax, bytesMax: 1_000_000 })
    if (chunk.records.length === 0) return records
    assert.equal(chunk.firstOffset, offset)
    assert.equal(chunk.nextOffset, offset + chunk.records.length)
    records.push(...chunk.records)
    offset = chunk.nextOffset
  }
}

async function openedIn(t: TestContext, place: LogPlace, options: OpenLogOptions = {}): Promise<OpenedLog> {
  const log = await place.open(options)
  t.after(async () => {
    await log.writer.close()
    await log.reader.close()
  })
  return log
}

function padded(n: number, bytes: number) {
  return aCapturedEvent(n, { propertiesJson: JSON.stringify({ pad: 'x'.repeat(bytes) }) })
}

async function bytes(reader: EventLogReader): Promise<number> {
  return (await reader.status('main', 0)).bytes
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

async function fillUp(writer: EventLogWriter, onAcknowledged: () => void): Promise<unknown> {
  for (let n = 0; n < 1_000; n++) {
    try {
      await writer.append('main', encodedEvents([padded(n, 10_000)]))
      onAcknowledged()
    } catch (error) {
      return error
    }
  }
  return undefined
}

/** Room is looked up now and then, not at every append. */
async function untilTaken(writer: EventLogWriter, lane: LogLane = 'main'): Promise<void> {
  const isTaken = async () => {
    try {
      await writer.append(lane, encodedEvents([aCapturedEvent(1)]))
      return true
    } catch (error) {
      if (!(error instanceof PortError && error.code === 'full')) throw error
      return false
    }
  }
  await eventually(isTaken, { what: 'room in the log' })
}
