// The contract of every log, on a local disk or shared by many hosts. `open` returns both ends; opening the same place
// again finds what was acknowledged before. A log that spreads records over streams is opened with one stream per kind
// of traffic, since the order of different keys is compared here.
//
// `src/adapters/sqlite-log/segment-log.test.ts` tests what only a log of segments does.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { DecodedRecord, LogRecord } from '#core/events/captured-event.ts'
import type { LogStream, RecordAt, Traffic } from '#core/events/log-stream.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import type { EventLogReader, EventLogWriter } from '#ports/log/event-log.ts'
import { decodeRecords } from '../support/decode-records.ts'
import { aCapturedEvent, aCapturedReject, encodedEvents, offsetsOf } from '../support/values.ts'

export interface OpenedLog {
  readonly writer: EventLogWriter
  readonly reader: EventLogReader
}

export interface LogPlace {
  open(options?: { readonly nowMs?: () => number }): Promise<OpenedLog>
}

/** Larger than any record in these tests. */
const all = { recordCountMax: 10_000, bytesMax: 100_000_000 }

export function eventLogContract(adapter: string, place: (t: TestContext) => LogPlace): void {
  describe(`EventLog on ${adapter}`, () => {
    it('lists its streams, live traffic first, and refuses to read any other stream', async t => {
      const { reader } = await openedIn(t, place(t))
      const streams = await reader.listStreams()
      assert.deepEqual(
        streams.map(({ traffic }) => traffic),
        ['live', 'import'],
      )
      assert.equal(new Set(streams.map(({ stream }) => stream)).size, 2)
      await assert.rejects(async () => reader.read('no such stream', 0, all), RangeError)
    })

    it('returns records in order of arrival, separately for each kind of traffic', async t => {
      const { writer, reader, live, imports } = await openedIn(t, place(t))
      await writer.append('live', encodedEvents([aCapturedEvent(1), aCapturedEvent(2)]))
      await writer.append('import', encodedEvents([aCapturedEvent(3, { lane: 'historical' })]))
      await writer.append('live', encodedEvents([aCapturedEvent(4)]))
      const chunk = await reader.read(live, 0, all)
      assert.deepEqual(
        chunk.records.map(({ record }) => record.kind === 'event' && record.event),
        [aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(4)],
      )
      assert.deepEqual([chunk.stream, chunk.traffic, chunk.missing], [live, 'live', null])
      const imported = await reader.read(imports, 0, all)
      assert.deepEqual([imported.stream, imported.traffic], [imports, 'import'])
      assert.deepEqual(distinctIds(imported.records), ['person-3'])
    })

    it('stores rejects along with events', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      const encoder = new RecordEncoder()
      encoder.addReject(aCapturedReject({ body: 'a\u0000b' }))
      encoder.addEvent(aCapturedEvent(1))
      await writer.append('live', encoder.finish())
      assert.deepEqual(
        (await reader.read(live, 0, all)).records.map(({ record }) => record),
        [
          { kind: 'reject', reject: aCapturedReject({ body: 'a\u0000b' }) },
          { kind: 'event', event: aCapturedEvent(1) },
        ],
      )
    })

    it('gives each record a unique ascending offset at which it can be read', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      for (let n = 0; n < 20; n += 2)
        await writer.append('live', encodedEvents([aCapturedEvent(n), aCapturedEvent(n + 1)]))
      const { records, nextOffset } = await reader.read(live, 0, all)
      assert.equal(records.length, 20)
      for (const [index, { offset, record }] of records.entries()) {
        assert.ok(offset > (records[index - 1]?.offset ?? -1))
        const again = await reader.read(live, offset, { recordCountMax: 1, bytesMax: 1 })
        assert.deepEqual([again.records, again.missing], [[{ offset, record }], null])
        assert.ok(again.nextOffset > offset && again.nextOffset <= (records[index + 1]?.offset ?? nextOffset))
      }
      assert.ok(nextOffset > records.at(-1)!.offset)
    })

    it('does not report unused offsets as lost records', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      for (let n = 0; n < 30; n++) await writer.append('live', encodedEvents([aCapturedEvent(n)]))
      const { nextOffset } = await reader.read(live, 0, all)
      for (let offset = 0; offset <= nextOffset; offset++) {
        assert.equal((await reader.read(live, offset, { recordCountMax: 3, bytesMax: 1e6 })).missing, null)
        assert.equal((await reader.readRuns(live, offset, 1)).missing, null)
      }
    })

    it('returns an empty chunk at the end, and continues when more records arrive', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      const nothing = { stream: live, traffic: 'live', records: [], nextOffset: 0, missing: null }
      assert.deepEqual(await reader.read(live, 0, all), nothing)
      await writer.append('live', encodedEvents([aCapturedEvent(1)]))
      const first = await reader.read(live, 0, all)
      const end = await reader.read(live, first.nextOffset, all)
      assert.deepEqual([end.records, end.nextOffset], [[], first.nextOffset])
      await writer.append('live', encodedEvents([aCapturedEvent(2)]))
      assert.deepEqual(distinctIds((await reader.read(live, first.nextOffset, all)).records), ['person-2'])
    })

    it('rejects a position past its end instead of waiting there forever', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      await writer.append('live', encodedEvents([aCapturedEvent(1)]))
      const { endOffset } = await reader.readStreamStatus(live, 0)
      await assert.rejects(reader.read(live, endOffset + 1, all), { code: 'conflict' })
      await assert.rejects(reader.readRuns(live, endOffset + 1, 1), { code: 'conflict' })
    })

    it('reads up to the limits, at least one record, and continues within a batch', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      const events = Array.from({ length: 1_300 }, (_, n) => aCapturedEvent(n))
      const unit = encodedEvents(events)
      const recordBytes = encodedEvents([aCapturedEvent(700)]).bytes.length
      await writer.append('live', unit)
      const seen: string[] = []
      let offset = 0
      for (const limits of [
        { recordCountMax: 7, bytesMax: 1_000_000 },
        { recordCountMax: 600, bytesMax: 1_000_000 },
        { recordCountMax: 100, bytesMax: 1 },
        { recordCountMax: 100, bytesMax: recordBytes * 3 },
        all,
      ]) {
        const chunk = await reader.read(live, offset, limits)
        assert.equal(chunk.missing, null)
        seen.push(...distinctIds(chunk.records))
        offset = chunk.nextOffset
        assert.ok(chunk.records.length <= limits.recordCountMax)
        if (limits.bytesMax === 1) assert.equal(chunk.records.length, 1)
        if (limits.bytesMax === recordBytes * 3) assert.equal(chunk.records.length, 3)
      }
      assert.deepEqual(
        seen,
        events.map(event => event.distinctId),
      )
    })

    it('reads many encoded records at once with their offsets, for readers that skip most of them', async t => {
      const { writer, reader, live } = await openedIn(t, place(t), { nowMs: () => 5_000 })
      for (let n = 0; n < 40; n++)
        await writer.append('live', encodedEvents([padded(3 * n, 500), padded(3 * n + 1, 500), padded(3 * n + 2, 500)]))
      const { records, nextOffset: endOffset } = await reader.read(live, 0, all)
      const from = records[4]!.offset
      for (const bytesMax of [1, 10_000, 1_000_000]) {
        const seen: RecordAt[] = []
        let offset = from
        for (;;) {
          const { runs, nextOffset, missing } = await reader.readRuns(live, offset, bytesMax)
          assert.equal(missing, null)
          if (runs.length === 0) break
          if (bytesMax === 1) assert.equal(runs.length, 1)
          for (const run of runs) {
            assert.equal(run.appendedAtMs, 5_000)
            const decoded = decodeRecords(run.bytes, run.offsets.length) as LogRecord[]
            seen.push(...decoded.map((record, index) => ({ offset: run.offsets[index]!, record })))
          }
          offset = nextOffset
        }
        assert.equal(offset, endOffset)
        assert.deepEqual(
          seen.filter(at => at.offset >= from),
          records.slice(4),
        )
      }
    })

    it('contains, when it is opened again, everything that was acknowledged before', async t => {
      const log = place(t)
      const first = await log.open()
      for (let n = 0; n < 20; n++) await first.writer.append('live', encodedEvents([aCapturedEvent(n)]))
      await first.writer.close()
      await first.reader.close()
      const { writer, reader, live } = await openedIn(t, log)
      await writer.append('live', encodedEvents([aCapturedEvent(20)]))
      assert.deepEqual(
        distinctIds((await reader.read(live, 0, all)).records),
        Array.from({ length: 21 }, (_, n) => `person-${n}`),
      )
    })

    it('accepts overlapping appends, and keeps the records of a person in the order of the calls', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      const events = Array.from({ length: 400 }, (_, n) => aCapturedEvent(n, { distinctId: `person-${n % 7}` }))
      const units = Array.from({ length: 100 }, (_, unit) => events.slice(unit * 4, unit * 4 + 4))
      await Promise.all(units.map(unit => writer.append('live', encodedEvents(unit))))
      const read = (await readAll(reader, live, 64)).map(({ record }) => record.kind === 'event' && record.event)
      assert.equal(read.length, events.length)
      for (let person = 0; person < 7; person++) {
        const isTheirs = (event: unknown) => (event as { distinctId: string }).distinctId === `person-${person}`
        assert.deepEqual(read.filter(isTheirs), events.filter(isTheirs))
      }
    })

    it('accepts large and small batches together', async t => {
      const { writer, reader, live } = await openedIn(t, place(t))
      const large = JSON.stringify({ pad: 'x'.repeat(900_000) })
      const unit = (n: number) =>
        encodedEvents([aCapturedEvent(n, { distinctId: 'ada', ...(n % 3 === 1 && { propertiesJson: large }) })])
      await Promise.all([0, 1, 2, 3, 4, 5].map(n => writer.append('live', unit(n))))
      assert.deepEqual(
        (await readAll(reader, live, 100)).map(
          ({ record }) => record.kind === 'event' && [record.event.uuid, record.event.propertiesJson.length],
        ),
        [0, 1, 2, 3, 4, 5].map(n => [
          aCapturedEvent(n).uuid,
          n % 3 === 1 ? large.length : aCapturedEvent(n).propertiesJson.length,
        ]),
      )
    })

    it('reports its end and the time at which a record was appended', async t => {
      let nowMs = 1_000
      const { writer, reader, live } = await openedIn(t, place(t), { nowMs: () => nowMs })
      assert.deepEqual(await reader.readStreamStatus(live, 0), { endOffset: 0, appendedAtMs: null })
      for (let n = 0; n < 30; n++) {
        nowMs += 10
        await writer.append('live', encodedEvents([aCapturedEvent(2 * n), aCapturedEvent(2 * n + 1)]))
      }
      const { records, nextOffset } = await reader.read(live, 0, all)
      for (const index of [0, 1, 17, 59]) {
        const { endOffset, appendedAtMs } = await reader.readStreamStatus(live, records[index]!.offset)
        assert.deepEqual([endOffset, appendedAtMs], [nextOffset, 1_010 + Math.floor(index / 2) * 10])
      }
      assert.equal((await reader.readStreamStatus(live, nextOffset)).appendedAtMs, null)
    })

    it('can wait for the first record, and returns at once when it arrives', async t => {
      const { writer, reader, live, imports } = await openedIn(t, place(t))
      const waiting = { ...all, maxWaitMs: 600_000 }
      const reads = [reader.read(live, 0, waiting), reader.read(imports, 0, waiting)]
      await writer.append('import', encodedEvents([aCapturedEvent(1, { lane: 'historical' })]))
      await writer.append('live', encodedEvents([aCapturedEvent(2)]))
      const chunks = await Promise.all(reads)
      assert.deepEqual(
        chunks.map(chunk => distinctIds(chunk.records)),
        [['person-2'], ['person-1']],
      )
      assert.deepEqual(distinctIds((await reader.read(live, 0, waiting)).records), ['person-2'], 'without a wait')
    })

    it('ends a wait on its signal or timeout', async t => {
      const { reader, live } = await openedIn(t, place(t))
      const stopping = new AbortController()
      const waiting = reader.read(live, 0, { ...all, maxWaitMs: 600_000, signal: stopping.signal })
      stopping.abort()
      assert.deepEqual((await waiting).records, [])
      assert.deepEqual((await reader.read(live, 0, { ...all, maxWaitMs: 5 })).records, [])
      assert.deepEqual(
        (await reader.read(live, 0, { ...all, maxWaitMs: 600_000, signal: stopping.signal })).records,
        [],
      )
    })

    it('is healthy while it accepts appends, and an acknowledged append leaves no record waiting to be written', async t => {
      const { writer } = await openedIn(t, place(t))
      await writer.append('live', encodedEvents([aCapturedEvent(1)]))
      assert.deepEqual(writer.getCondition(), { state: 'ok' })
      assert.ok([...writer.countWaitingRecords().values()].every(recordCount => recordCount === 0))
    })

    it('keeps a list of lost records', async t => {
      const { reader, live } = await openedIn(t, place(t))
      const loss = { stream: live, fromOffset: 3, toOffset: 9, file: null, noticedAtMs: 7 }
      await reader.recordLosses(loss)
      assert.deepEqual([await reader.listLosses(), await reader.countLostRecords()], [[loss], 6])
    })

    it('accepts nothing after close', async t => {
      const { writer } = await openedIn(t, place(t))
      await writer.close()
      await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(1)])), { code: 'unavailable' })
    })
  })
}

export function distinctIds(records: readonly (DecodedRecord | RecordAt)[]): string[] {
  return records.map(each => {
    const record = 'record' in each ? each.record : each
    return record.kind === 'event' ? record.event.distinctId : record.kind
  })
}

/** Reads everything from an offset on, in chunks that each begin where the last ended. */
export async function readAll(
  reader: EventLogReader,
  stream: LogStream,
  recordCountMax: number,
  fromOffset = 0,
): Promise<RecordAt[]> {
  const records: RecordAt[] = []
  for (let offset = fromOffset; ; ) {
    const chunk = await reader.read(stream, offset, { recordCountMax, bytesMax: 1_000_000 })
    if (chunk.nextOffset === offset) return records
    assert.equal(chunk.missing, null)
    assert.ok(offsetsOf(chunk).every(each => each >= offset && each < chunk.nextOffset))
    records.push(...chunk.records)
    offset = chunk.nextOffset
  }
}

async function openedIn(t: TestContext, place: LogPlace, options: Parameters<LogPlace['open']>[0] = {}) {
  const log = await place.open(options)
  t.after(async () => {
    await log.writer.close()
    await log.reader.close()
  })
  const streams = await log.reader.listStreams()
  const streamOf = (wanted: Traffic) => streams.find(({ traffic }) => traffic === wanted)!.stream
  return { ...log, live: streamOf('live'), imports: streamOf('import') }
}

function padded(n: number, bytes: number) {
  return aCapturedEvent(n, { propertiesJson: JSON.stringify({ pad: 'x'.repeat(bytes) }) })
}
