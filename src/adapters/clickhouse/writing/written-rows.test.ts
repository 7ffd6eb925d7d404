// Reads the bytes of each kind of row back by the types that the schema gives its columns: a field that is missing, out of
// its place or of another width does not come back.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { RejectedEvent, StoredEvent, StoredRecording } from '#core/events/stored-event.ts'
import type { RecordingView } from '#ports/events/recording-store.ts'
import { aStoredEvent } from '../../../../tests/support/values.ts'
import type { ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { eventStoreMigrations } from '../schema.ts'
import {
  eventColumns,
  overrideColumns,
  type RowWriteResult,
  recordingColumns,
  rejectedColumns,
  replayedColumns,
  writeEventRow,
  writeOverrideRow,
  writeRecordingRow,
  writeRejectedRow,
  writeReplayedRow,
} from './event-rows.ts'
import { arrivalColumns, listDaysOfFlagCalls, writeFlagCallDayRow } from './flag-call-days.ts'
import { deduplicatedColumns, writeDeduplicatedRow } from './flag-calls.ts'
import { createRowInserter, type TableRows } from './insert-rows.ts'
import { createSubjectMirror } from './mirror-rows.ts'
import { RowBinaryWriter } from './row-binary.ts'

const uuid = '01234567-89ab-4cde-8f01-23456789abcd'
const otherUuid = 'fedcba98-7654-4321-8fed-cba987654321'
const from1900 = Date.UTC(1900, 0, 1)
const before2300 = Date.UTC(2300, 0, 1)
const columnTypes =
  /^ (LowCardinality\(String\)|Map\(LowCardinality\(String\), String\)|DateTime64\(\d, 'UTC'\)|Date32|U?Int\d+|UUID|String|Bool)/
const statements = eventStoreMigrations.flatMap(migration =>
  migration.statements('db', { rejectRetentionDays: 30, isEmbedded: true }),
)

const known = new Map<string, string>()

function typeOf(table: string, column: string): string {
  const type = known.get(`${table} ${column}`) ?? declaredType(table, column)
  known.set(`${table} ${column}`, type)
  return type
}

function declaredType(table: string, column: string): string {
  for (const text of statements) {
    if (!text.includes(` db.${table} `)) continue
    const name = new RegExp(`[\\s(]\`?${column.replace('$', '\\$')}\`?(?= )`, 'g')
    for (const { index, 0: found } of text.matchAll(name)) {
      const type = columnTypes.exec(text.slice(index + found.length))
      if (type !== null) return type[1]!
    }
  }
  throw new Error(`${table} has no column ${column}`)
}

/** Numbers of 64 bits as bigints, times in the unit of their column. */
function readRow(table: string, columns: string, bytes: Buffer): Record<string, unknown> {
  let at = 0
  const take = (count: number) => {
    at += count
    assert.ok(at <= bytes.length)
    return at - count
  }
  const varint = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[take(1)]!
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  const text = () => {
    const start = take(varint())
    return bytes.toString('utf8', start, at)
  }
  const half = () =>
    Buffer.from(bytes.subarray(take(8), at))
      .reverse()
      .toString('hex')
  const read = (type: string): unknown => {
    switch (type) {
      case 'UInt8':
      case 'Bool':
        return bytes[take(1)]
      case 'UInt32':
        return bytes.readUInt32LE(take(4))
      case 'Date32':
        return bytes.readInt32LE(take(4))
      case 'Int64':
        return bytes.readBigInt64LE(take(8))
      case 'UInt64':
        return bytes.readBigUInt64LE(take(8))
      case 'UUID':
        return (half() + half()).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
      case 'String':
      case 'LowCardinality(String)':
        return text()
      case 'Map(LowCardinality(String), String)':
        return new Map(Array.from({ length: varint() }, () => [text(), text()]))
      default:
        assert.match(type, /^DateTime64/)
        return bytes.readBigInt64LE(take(8))
    }
  }
  const names = columns.split(', ').map(name => name.replaceAll('`', ''))
  const row = Object.fromEntries(names.map(name => [name, read(typeOf(table, name))]))
  assert.equal(at, bytes.length, 'the row has as many bytes as its columns')
  return row
}

function bytesOf(write: (to: RowBinaryWriter) => RowWriteResult): Buffer {
  const to = new RowBinaryWriter(8)
  assert.equal(write(to), 'written')
  return to.written()
}

function writtenRow(table: string, columns: string, write: (to: RowBinaryWriter) => RowWriteResult) {
  return readRow(table, columns, bytesOf(write))
}

const event = aStoredEvent({
  ...{ projectId: 0xffff_ffff, uuid, event: 'a "name"', distinctId: 'ada\\' },
  ...{ timestampMs: before2300 - 1, capturedAtMs: from1900, chargedAtMs: -1, lane: 'main', historicalMigration: false },
  ...{ importJobId: 0, propertiesJson: '{"n":1.0}', elementsChain: 'a:nth', personId: otherUuid, personCreatedAtMs: 0 },
  ...{
    personPropertiesJson: '{}',
    personMode: 'full',
    groups: ['g0', '', 'g2', '', 'g4'],
    sessionId: 's',
    windowId: '',
  },
  ...{
    flags: new Map([
      ['$feature/a', 'on'],
      ['', ''],
    ]),
    flagCalled: 'a',
    flagResponse: 'true',
  },
  ...{ linkedId: 'anon', logStream: 'main/3', logOffset: 2 ** 40, sentLaterMs: -3 },
})

function eventRow(over: Partial<StoredEvent>, terms = {}, insertedAtMs = 5) {
  return writtenRow('events', eventColumns, to => writeEventRow(to, { ...event, ...over }, insertedAtMs, terms))
}

/** Half pairs included. */
const unicode = (bounds: fc.ArrayConstraints) =>
  fc
    .array(fc.oneof(fc.nat(127), fc.nat(0xffff), fc.integer({ min: 0xd7ff, max: 0xe000 })), bounds)
    .map(units => String.fromCharCode(...units))

describe('the row of an event', () => {
  it('has each field in its column', () => {
    assert.deepEqual(eventRow({}, { erasures: 3 }), {
      ...{ project_id: 0xffff_ffff, uuid, event: 'a "name"', distinct_id: 'ada\\' },
      timestamp: BigInt(before2300 - 1) * 1000n,
      ...{ captured_at: BigInt(from1900), charged_at: -1n, created_at: 5n, lane: 'main', historical_migration: 0 },
      ...{ import_job_id: 0, import_partition: 0, row_version: 2n ** 62n + 5n, properties: '{"n":1.0}' },
      ...{ flags: event.flags, elements_chain: 'a:nth', person_id: otherUuid, person_created_at: 0n },
      ...{ person_properties: '{}', person_mode: 'full' },
      ...{
        $group_0: 'g0',
        $group_1: '',
        $group_2: 'g2',
        $group_3: '',
        $group_4: 'g4',
        $session_id: 's',
        $window_id: '',
      },
      ...{ flag_called: 'a', flag_response: 'true', erasures_before: 3 },
      ...{ log_stream: 'main/3', log_offset: 2n ** 40n, sent_later_ms: -3n, linked_id: 'anon' },
    })
  })

  it('keeps any text that UTF-8 can represent', () => {
    fc.assert(
      fc.property(unicode({}), unicode({ minLength: 20 }), (short, long) => {
        const row = eventRow({ event: short, propertiesJson: long, flags: new Map([[long, short]]) })
        const texts = [short.toWellFormed(), long.toWellFormed()]
        assert.deepEqual([row.event, row.properties], texts)
        assert.deepEqual(row.flags, new Map([texts.toReversed()] as [string, string][]))
      }),
      { numRuns: 100 },
    )
  })

  it('is refused if a column cannot hold a value', () => {
    for (const [over, refused] of [
      [{ projectId: -7 }, 'project_id is not a 32-bit number'],
      [{ projectId: 2 ** 32 }, 'project_id is not a 32-bit number'],
      [{ projectId: 1.5 }, 'project_id is not a 32-bit number'],
      [{ importJobId: 2 ** 32 }, 'import_job_id is not a 32-bit number'],
      [{ timestampMs: from1900 - 1 }, 'timestamp is outside the years 1900 to 2299'],
      [{ timestampMs: before2300 }, 'timestamp is outside the years 1900 to 2299'],
      [{ timestampMs: 0.5 }, 'timestamp is outside the years 1900 to 2299'],
      [{ timestampMs: Number.NaN }, 'timestamp is outside the years 1900 to 2299'],
      [{ capturedAtMs: Number.POSITIVE_INFINITY }, 'captured_at is outside the years 1900 to 2299'],
      [{ chargedAtMs: before2300 }, 'charged_at is outside the years 1900 to 2299'],
      [{ personCreatedAtMs: from1900 - 1 }, 'person_created_at is outside the years 1900 to 2299'],
      [{ uuid: 'none' }, 'uuid is not a UUID'],
      [{ personId: '' }, 'person_id is not a UUID'],
    ] as const)
      assert.deepEqual(writeEventRow(new RowBinaryWriter(), { ...event, ...over }, 5), { refused })
  })

  it('takes precedence over the row of an import, an earlier copy and a restored copy', () => {
    const version = (importJobId: number, isRestored: boolean, insertedAtMs: number) =>
      eventRow({ importJobId }, { isRestored }, insertedAtMs).row_version as bigint
    const ascending = [
      version(7, true, 9e12),
      version(7, false, 1),
      version(7, false, 9e12),
      version(0, true, 1),
      version(0, true, 9e12),
      version(0, false, 1),
      version(0, false, 9e12),
    ]
    assert.deepEqual(
      ascending.toSorted((a, b) => (a < b ? -1 : 1)),
      ascending,
    )
    assert.equal(new Set(ascending).size, ascending.length)
  })

  it('goes to the partition for live rows, for its import job, or for imports that did not create a job', () => {
    for (const [over, partition] of [
      [{ importJobId: 0 }, 0],
      [{ importJobId: 9 }, 9],
      [{ importJobId: 9, importPartition: 1 }, 1],
    ] as const)
      assert.deepEqual([eventRow(over).import_job_id, eventRow(over).import_partition], [over.importJobId, partition])
  })
})

describe('the row of', () => {
  it('an override has a version above every version from before an erasure', () => {
    const override = { projectId: 1, distinctId: 'ada', personId: uuid, version: 3 }
    const row = (erasures: number, version: number) =>
      writtenRow('person_distinct_id_overrides', overrideColumns, to =>
        writeOverrideRow(to, { ...override, version }, 5, erasures),
      )
    assert.deepEqual(row(0, 3), { project_id: 1, distinct_id: 'ada', person_id: uuid, version: 3n, stored_at: 5n })
    assert.ok((row(1, 0).version as bigint) > (row(0, 1_000_000).version as bigint))
    assert.deepEqual(writeOverrideRow(new RowBinaryWriter(), { ...override, personId: 'x' }, 5, 0), {
      refused: 'person_id is not a UUID',
    })
  })

  it('a reject has the text of its source, and a replayed reject has the times of its receipt and its replay', () => {
    const rejected: RejectedEvent = {
      ...{ rejectId: 'r', projectId: 1, reason: 'why', field: 'f', lane: 'main', importJobId: 9, uuid: 'any text' },
      ...{ event: '', distinctId: 'ada', receivedAtMs: -5, body: '{', source: null },
    }
    assert.deepEqual(
      writtenRow('rejected_events', rejectedColumns, to => writeRejectedRow(to, rejected, 2)),
      {
        ...{
          reject_id: 'r',
          project_id: 1,
          received_at: -5n,
          reason: 'why',
          field: 'f',
          lane: 'main',
          import_job_id: 9,
        },
        ...{ uuid: 'any text', event: '', distinct_id: 'ada', body: '{', source: '', erasures_before: 2 },
      },
    )
    const replayed = { projectId: 1, rejectId: 'r', receivedAtMs: 5, replayedAtMs: 6 }
    assert.deepEqual(
      writtenRow('replayed_rejects', replayedColumns, to => writeReplayedRow(to, replayed)),
      { project_id: 1, reject_id: 'r', received_at: 5n, replayed_at: 6n },
    )
  })

  it('a recording contains its bytes unchanged', () => {
    const view: Omit<RecordingView, 'receivedAtMs' | 'timestampMs'> = {
      ...{ projectId: 1, uuid, sessionId: 's', windowId: 'w', distinctId: 'ada', snapshotSource: 'web', lib: 'js' },
      ...{ itemCount: 2, itemsBytes: 2 ** 40 },
    }
    const items = Buffer.from([0, 255, 128, 10])
    const recording: StoredRecording = { ...view, items, timestampMs: from1900, receivedAtMs: before2300 - 1 }
    const bytes = bytesOf(to => writeRecordingRow(to, recording, 7, 1))
    const [before, after] = [bytes.indexOf(items) - 1, bytes.indexOf(items) + items.length]
    assert.equal(bytes[before], items.length)
    const row = readRow(
      'replay_messages',
      recordingColumns,
      Buffer.concat([bytes.subarray(0, before), Buffer.from([0]), bytes.subarray(after)]),
    )
    assert.deepEqual(row, {
      ...{
        project_id: 1,
        uuid,
        session_id: 's',
        window_id: 'w',
        distinct_id: 'ada',
        snapshot_source: 'web',
        lib: 'js',
      },
      ...{ item_count: 2, items_bytes: 2n ** 40n, timestamp: BigInt(from1900), received_at: BigInt(before2300 - 1) },
      ...{ row_version: 7n, items: '', erasures_before: 1 },
    })
    for (const [over, refused] of [
      [{ timestampMs: from1900 - 1 }, 'timestamp is outside the years 1900 to 2299'],
      [{ receivedAtMs: before2300 }, 'received_at is outside the years 1900 to 2299'],
      [{ uuid: '' }, 'uuid is not a UUID'],
    ] as const)
      assert.deepEqual(writeRecordingRow(new RowBinaryWriter(), { ...recording, ...over }, 7, 1), { refused })
  })

  it('a deduplicated call that was charged earlier has the higher version', () => {
    const call = { projectId: 1, uuid, distinctId: 'ada', timestampMs: 5, chargedAtMs: 6, flag: 'f', response: 'on' }
    const row = (chargedAtMs: number) =>
      writtenRow('deduplicated_flag_calls', deduplicatedColumns, to =>
        writeDeduplicatedRow(to, { ...call, chargedAtMs }, 1),
      )
    const { row_version: version, ...others } = row(6)
    assert.deepEqual(others, {
      ...{ project_id: 1, uuid, distinct_id: 'ada', timestamp: 5n, charged_at: 6n, feature_flag: 'f' },
      ...{ feature_flag_response: 'on', erasures_before: 1 },
    })
    assert.ok((version as bigint) > (row(7).row_version as bigint))
    assert.deepEqual(writeDeduplicatedRow(new RowBinaryWriter(), { ...call, uuid: 'x' }, 1), {
      refused: 'uuid is not a UUID',
    })
  })

  it('a mirrored person or group has all its fields, and a deleted one only its key', async () => {
    const rows: Record<string, unknown>[] = []
    const mirror = createSubjectMirror({} as ClickHouseClients, {
      insert: async <Row>({ table, columns, rows: all, write }: TableRows<Row>) => {
        for (const row of all) rows.push(writtenRow(table, columns, to => write(to, row)))
        return []
      },
    })
    const person = { projectId: 1, uuid, createdAtMs: -1, isIdentified: true, propertiesJson: '{"a":1.0}' }
    const group = { projectId: 1, typeIndex: 4, key: '', createdAtMs: 3, propertiesJson: '{}' }
    const groupKey = { projectId: 1, typeIndex: 4, key: 'gone' }
    const deletedPersons = [{ projectId: 2, uuid: otherUuid }]
    await mirror.writeSubjects(
      { persons: [person], deletedPersons, groups: [group], deletedGroups: [groupKey] },
      2 ** 40,
    )
    const common = { project_id: 1, version: 2n ** 40n, is_deleted: 0 }
    const groupRow = { ...common, group_type_index: 4, group_key: '', created_at: 3n, properties: '{}' }
    assert.deepEqual(rows, [
      { ...common, uuid, created_at: -1n, is_identified: 1, properties: '{"a":1.0}' },
      { ...common, project_id: 2, uuid: otherUuid, created_at: 0n, is_identified: 0, properties: '', is_deleted: 1 },
      groupRow,
      { ...groupRow, group_key: 'gone', created_at: 0n, properties: '', is_deleted: 1 },
    ])
  })

  it('an arrival has its UTC day, even before 1970, and all calls of that day share one row', () => {
    const call = (projectId: number, timestampMs: number) => ({
      ...{ projectId, timestampMs, uuid, distinctId: 'ada', chargedAtMs: 0, flag: 'f', response: '' },
    })
    const arrivals = listDaysOfFlagCalls(
      [
        { ...event, event: '$feature_flag_called', projectId: 1, timestampMs: 86_400_000 },
        { ...event, projectId: 1, timestampMs: 5 * 86_400_000 },
      ],
      [call(1, 2 * 86_400_000 - 1), call(1, 2 * 86_400_000), call(2, -1)],
    )
    const rows = arrivals.map(arrival => {
      const bytes = bytesOf(to => writeFlagCallDayRow(to, arrival))
      return readRow('flag_call_arrivals', arrivalColumns, bytes)
    })
    assert.equal(rows.map(row => `${row.project_id} ${row.day}`).join(), '1 1,1 2,2 -1')
  })

  it('an event that is refused is left out completely', async () => {
    const sent: Buffer[] = []
    const exec = async ({ values }: { values: AsyncIterable<Buffer> }) => {
      for await (const bytes of values) sent.push(Buffer.from(bytes))
      return { stream: [], summary: { written_rows: '2' } }
    }
    const inserter = createRowInserter({ write: (call: (client: object) => unknown) => call({ exec }) } as never)
    const refused = await inserter.insert({
      ...{ table: 'replayed_rejects', columns: 'reject_id', rows: ['a', 'refused', 'b'] },
      write: (to, row) => {
        to.text(row)
        return row === 'refused' ? { refused: 'as asked' } : 'written'
      },
    })
    assert.deepEqual(refused, [{ index: 1, message: 'as asked' }])
    assert.equal(Buffer.concat(sent).toString(), '\u0001a\u0001b')
  })
})
