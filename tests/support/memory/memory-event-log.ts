// The log in arrays, for tests of its users. It has both ends and fulfils the port's contract as far as one process
// can. It also does what only a shared log does: several streams for one kind of traffic, and offsets that no record
// ever had. It lasts as long as the value returned by `memoryLogStorage`.

import { crc32 } from 'node:zlib'
import type { LogRecord } from '#core/events/captured-event.ts'
import type { LogStream, StreamInfo, Traffic } from '#core/events/log-stream.ts'
import { addRecordChecksums } from '#core/log/record-codec.ts'
import { AppendWaits } from '#ports/log/append-waits.ts'
import type { EncodedRecords, EventLogReader, EventLogWriter, LogLoss } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { decodeRecords } from '../decode-records.ts'
import { recordKeys } from './record-keys.ts'

interface StoredRecord {
  readonly offset: number
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly appendedAtMs: number
}

/** The log's contents, which outlive its ends. */
export interface MemoryLogStorage {
  readonly streams: Map<LogStream, { readonly info: StreamInfo; readonly records: StoredRecord[]; endOffset: number }>
}

export interface MemoryEventLogOptions {
  readonly storage?: MemoryLogStorage
  readonly nowMs: () => number
  /** How many offsets after a record stay unused; none by default. */
  readonly gapAfter?: (offset: number) => number
}

const usualStreams: readonly StreamInfo[] = [
  { stream: 'main', traffic: 'live' },
  { stream: 'historical', traffic: 'import' },
]

/** @param streams live first. */
export function memoryLogStorage(streams = usualStreams): MemoryLogStorage {
  return { streams: new Map(streams.map(info => [info.stream, { info, records: [], endOffset: 0 }])) }
}

export function createMemoryEventLog(options: MemoryEventLogOptions): EventLogWriter & EventLogReader {
  const { storage = memoryLogStorage(), nowMs, gapAfter = () => 0 } = options
  const losses: LogLoss[] = []
  const waits = new AppendWaits()
  let closed = false

  const streamOf = (stream: LogStream) => {
    const known = storage.streams.get(stream)
    if (known === undefined) throw new RangeError(`the log has no stream ${stream}`)
    return known
  }

  async function append(traffic: Traffic, { bytes }: EncodedRecords): Promise<void> {
    if (closed) throw new PortError('event-log', 'unavailable', new Error('the log is closed'))
    const streams = [...storage.streams.values()].filter(({ info }) => info.traffic === traffic)
    const appendedAtMs = nowMs()
    addRecordChecksums(bytes)
    for (const { start, end, keyStart, keyEnd } of recordKeys(bytes)) {
      const to = streams[crc32(bytes.subarray(keyStart, keyEnd)) % streams.length]!
      const offset = to.endOffset
      to.records.push({ offset, bytes: new Uint8Array(bytes.subarray(start, end)), appendedAtMs })
      to.endOffset = offset + 1 + gapAfter(offset)
    }
    for (const { info } of streams) waits.wakeUp(info.stream)
  }

  /** Records from an offset on, and the end of the stream. */
  function from(stream: LogStream, fromOffset: number) {
    const { info, records, endOffset } = streamOf(stream)
    if (fromOffset > endOffset && endOffset > 0)
      throw new PortError('event-log', 'conflict', new Error(`${fromOffset} lies behind the end of ${stream}`))
    const first = records.findIndex(({ offset }) => offset >= fromOffset)
    return { info, kept: first === -1 ? [] : records.slice(first), endOffset: endOffset === 0 ? fromOffset : endOffset }
  }

  return {
    append,
    getCondition: () => ({ state: 'ok' }),
    countWaitingRecords: () => new Map(),
    listStreams: async () => Array.from(storage.streams.values(), ({ info }) => info),
    read: (stream, fromOffset, { recordCountMax, bytesMax, ...wait }) =>
      waits.read(stream, fromOffset, wait, async () => {
        const { info, kept, endOffset } = from(stream, fromOffset)
        let bytes = 0
        const taken = kept.slice(0, recordCountMax).filter((record, index) => {
          bytes += record.bytes.length
          return index === 0 || bytes <= bytesMax
        })
        const records = taken.map(record => ({ offset: record.offset, record: decoded(record) }))
        return { ...info, records, nextOffset: kept[taken.length]?.offset ?? endOffset, missing: null }
      }),
    readRuns: async (stream, fromOffset, bytesMax) => {
      const { kept, endOffset } = from(stream, fromOffset)
      let bytes = 0
      const runs = kept.flatMap((record, index) => {
        const isEnough = bytes >= bytesMax
        bytes += record.bytes.length
        return isEnough && index > 0 ? [] : [{ ...record, offsets: [record.offset] }]
      })
      return { runs, nextOffset: kept[runs.length]?.offset ?? endOffset, missing: null }
    },
    readStreamStatus: async (stream, offset) => {
      const { records, endOffset } = streamOf(stream)
      const next = records.find(record => record.offset >= offset)
      return { endOffset: endOffset === 0 ? offset : endOffset, appendedAtMs: next?.appendedAtMs ?? null }
    },
    recordLosses: async (...lost) => void losses.push(...lost),
    listLosses: async () => losses,
    countLostRecords: async () =>
      losses.reduce((sum, { fromOffset, toOffset, recordCount }) => sum + (recordCount ?? toOffset - fromOffset), 0),
    close: async () => {
      closed = true
    },
  }
}

function decoded({ bytes, appendedAtMs }: StoredRecord): LogRecord {
  const record = decodeRecords(bytes, 1)[0]!
  return record.kind === 'damaged' ? { ...record, appendedAtMs } : record
}
