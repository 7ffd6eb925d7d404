// The log in an array, for tests of what stands on it: both ends, the same promises as far as one process can keep them.
// Durable only as long as the value that `memoryLogStorage` makes.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import { sealRecords } from '#core/log/record-codec.ts'
import { decodeRecords } from '#core/log/record-decoder.ts'
import type { EncodedRecords, EventLogReader, EventLogWriter, LogChunk, LogLoss } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'

interface StoredRecord {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly appendedAtMs: number
}

/** What outlives the log's ends: per lane, the segments still kept. */
export interface MemoryLogStorage {
  readonly lanes: Map<LogLane, { segments: { firstOffset: number; records: StoredRecord[] }[] }>
}

export interface MemoryEventLogOptions {
  readonly storage?: MemoryLogStorage
  readonly nowMs: () => number
  readonly segmentBytesMax?: number
  readonly logBytesMax?: number
}

export function memoryLogStorage(): MemoryLogStorage {
  return { lanes: new Map(logLanes.map(lane => [lane, { segments: [{ firstOffset: 0, records: [] }] }])) }
}

export function createMemoryEventLog(options: MemoryEventLogOptions): EventLogWriter & EventLogReader {
  const storage = options.storage ?? memoryLogStorage()
  const segmentBytesMax = options.segmentBytesMax ?? Number.POSITIVE_INFINITY
  const logBytesMax = options.logBytesMax ?? Number.POSITIVE_INFINITY
  const losses: LogLoss[] = []
  let closed = false

  const segmentsOf = (lane: LogLane) => storage.lanes.get(lane)!.segments
  const bytesOf = (records: readonly StoredRecord[]) => records.reduce((sum, record) => sum + record.bytes.length, 0)
  const laneBytes = (lane: LogLane) => segmentsOf(lane).reduce((sum, segment) => sum + bytesOf(segment.records), 0)
  const endOffset = (lane: LogLane, position = 0) => {
    const segments = segmentsOf(lane)
    const newest = segments.at(-1)!
    if (segments.length === 1 && newest.firstOffset + newest.records.length === 0) return position
    return newest.firstOffset + newest.records.length
  }

  const room = () => {
    const importBytes = laneBytes('historical')
    const importBytesMax = logBytesMax / 2
    const bytes = laneBytes('main') + importBytes
    return {
      ...{ bytes, bytesMax: logBytesMax, freeBytes: Number.POSITIVE_INFINITY, freeBytesMin: 0 },
      isShort: bytes > logBytesMax * (7 / 8),
      ...{ importBytes, importBytesMax, areImportsShort: importBytes > importBytesMax * (7 / 8) },
    }
  }

  async function append(lane: LogLane, { bytes }: EncodedRecords): Promise<void> {
    if (closed) throw new PortError('event-log', 'unavailable', new Error('the log is closed'))
    const { bytes: used, importBytes, importBytesMax } = room()
    const isShareFull = lane === 'historical' && importBytes + bytes.length > importBytesMax
    if (isShareFull || used + bytes.length > logBytesMax) throw new PortError('event-log', 'full')
    const places = sealRecords(bytes)
    const newest = segmentsOf(lane).at(-1)!
    const isFull = newest.records.length > 0 && bytesOf(newest.records) >= segmentBytesMax
    const segment = isFull ? { firstOffset: endOffset(lane), records: [] } : newest
    if (isFull) segmentsOf(lane).push(segment)
    const appendedAtMs = options.nowMs()
    for (let index = 1; index < places.length; index++) {
      const record = new Uint8Array(bytes.subarray(places[index - 1], places[index]))
      segment.records.push({ bytes: record, appendedAtMs })
    }
  }

  async function read(lane: LogLane, fromOffset: number, limits: Parameters<EventLogReader['read']>[2]) {
    const segments = segmentsOf(lane)
    if (fromOffset > endOffset(lane, fromOffset))
      throw new PortError('event-log', 'conflict', new Error('behind the end'))
    const firstOffset = Math.max(fromOffset, segments[0]!.firstOffset)
    const kept = segments.flatMap(segment => segment.records).slice(firstOffset - segments[0]!.firstOffset)
    let bytes = 0
    const taken = kept.slice(0, limits.recordCountMax).filter((record, index) => {
      bytes += record.bytes.length
      return index === 0 || bytes <= limits.bytesMax
    })
    const records = taken.flatMap(({ bytes, appendedAtMs }) =>
      decodeRecords(bytes, 1).map(record => (record.kind === 'damaged' ? { ...record, appendedAtMs } : record)),
    )
    return { lane, firstOffset, records, nextOffset: firstOffset + records.length } satisfies LogChunk
  }

  return {
    append,
    read,
    readRuns: async (lane, fromOffset, bytesMax) => {
      const { firstOffset } = await read(lane, fromOffset, { recordCountMax: 0, bytesMax: 0 })
      const segments = segmentsOf(lane)
      const kept = segments.flatMap(segment => segment.records).slice(firstOffset - segments[0]!.firstOffset)
      let bytes = 0
      const runs = kept.flatMap((record, index) => {
        const isEnough = bytes >= bytesMax
        bytes += record.bytes.length
        const { appendedAtMs } = record
        return isEnough && index > 0
          ? []
          : [{ firstOffset: firstOffset + index, recordCount: 1, bytes: record.bytes, appendedAtMs }]
      })
      return { runs, firstOffset, nextOffset: firstOffset + runs.length }
    },
    status: async (lane, offset) => {
      const segment = segmentsOf(lane).findLast(({ firstOffset }) => firstOffset <= offset)
      const appendedAtMs = segment?.records[offset - segment.firstOffset]?.appendedAtMs ?? null
      return { endOffset: endOffset(lane, offset), appendedAtMs, bytes: laneBytes(lane) }
    },
    deleteBehind: async (lane, offset, olderThanMs) => {
      const segments = segmentsOf(lane)
      let deletedSegmentCount = 0
      while (segments.length > 1 && segments[1]!.firstOffset <= offset) {
        if (segments[0]!.records.at(-1)!.appendedAtMs >= olderThanMs) break
        segments.shift()
        deletedSegmentCount++
      }
      return { deletedSegmentCount }
    },
    keepLoss: async (...lost) => void losses.push(...lost),
    losses: async () => losses,
    lostCount: async () => losses.reduce((sum, { fromOffset, toOffset }) => sum + toOffset - fromOffset, 0),
    room: async () => room(),
    makeRoom: async processed => {
      let deletedSegmentCount = 0
      for (let look = room(); look.isShort || look.areImportsShort; look = room()) {
        const lanes = look.isShort ? logLanes : (['historical'] as const)
        const deletable = lanes.filter(lane => (segmentsOf(lane)[1]?.firstOffset ?? Infinity) <= processed[lane])
        const newestOf = (lane: LogLane) => segmentsOf(lane)[0]!.records.at(-1)!.appendedAtMs
        const [oldest] = deletable.sort((one, other) => newestOf(one) - newestOf(other))
        if (oldest === undefined) break
        segmentsOf(oldest).shift()
        deletedSegmentCount++
      }
      return { deletedSegmentCount }
    },
    pack: async () => ({ packedSegmentCount: 0 }),
    close: async () => {
      closed = true
    },
  }
}
