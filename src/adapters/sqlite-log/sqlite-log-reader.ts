// The embedded log's reading end: goes through the segments of a lane by offset, beside writers in other processes, and
// keeps the log small: deletes what was processed and packs what is complete. No transaction is open for longer than one
// call, so that writers can always tidy up behind it.

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LogLane, type LogRecord, logLanes } from '#core/events/captured-event.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { EventLogReader, LogChunk, LogRun, LogRuns } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { lookAtRoom, type RoomLimits } from './disk-room.ts'
import { readLaneMark } from './lane-mark.ts'
import { LostRecords } from './lost-records.ts'
import { packSegment, removePackedTwin } from './pack-segment.ts'
import { type FrameRow, openReadable, type ReadableSegment, readError } from './readable-segment.ts'
import { folderBytes, isDamage, listSegments, removeSegmentFiles, type SegmentName } from './segment-file.ts'
import { setAside } from './set-aside.ts'

type Limits = Parameters<EventLogReader['read']>[2]

/** Where reading began and where it goes on. */
interface Walked {
  readonly firstOffset: number
  readonly nextOffset: number
}

/** The segment being read and the newest one, per lane; a few more for jumps. */
const openSegmentsMax = 6
/** No busy_timeout here, which would block the event loop: ask again a little later instead. */
const busyRetry = { count: 100, delayMs: 20 }

export interface SqliteLogReaderOptions {
  /** `<PENNON_DATA>/log`; each lane has a folder in it. */
  readonly folder: string
  /** What `PENNON_LOG_MAX_BYTES` says; no limit when absent. */
  readonly logBytesMax?: number
  /** What `PENNON_MIN_FREE_BYTES` says; 0 when absent. */
  readonly minFreeBytes?: number
  /**
   * Set by the one process that processes the log: a segment that SQLite cannot read is set aside, told of here, and read
   * page by page. Others find such a segment `corrupt`.
   */
  readonly onDamage?: OnDamage
  /** For tests: what stands in a lane's folder. */
  readonly list?: typeof listSegments
}

/** @param damage `path`: where the file is now. */
type OnDamage = (damage: { readonly lane: LogLane; readonly path: string; readonly error: unknown }) => void

export function openSqliteLogReader(options: SqliteLogReaderOptions): EventLogReader {
  const { folder, logBytesMax = Number.POSITIVE_INFINITY, minFreeBytes = 0 } = options
  const limits: RoomLimits = { folder, logBytesMax, minFreeBytes }
  const lost = new LostRecords(folder)
  const lanes = new Map<LogLane, LaneReader>()
  const laneReader = (lane: LogLane): LaneReader => {
    const known = lanes.get(lane) ?? new LaneReader(lane, join(folder, lane), options)
    lanes.set(lane, known)
    return known
  }
  return {
    read: (lane, fromOffset, limits) => patiently(() => laneReader(lane).read(fromOffset, limits)),
    readRuns: (lane, fromOffset, bytesMax) => patiently(() => laneReader(lane).readRuns(fromOffset, bytesMax)),
    status: (lane, offset) => patiently(() => laneReader(lane).status(offset)),
    deleteBehind: (lane, offset, olderThanMs) => patiently(() => laneReader(lane).deleteBehind(offset, olderThanMs)),
    keepLoss: async (...losses) => reading(() => lost.keep(losses)),
    losses: async () => reading(() => lost.list()),
    lostCount: async () => reading(() => lost.count()),
    room: async () => reading(() => lookAtRoom(limits)),
    makeRoom: processed =>
      patiently(() => {
        let deletedSegmentCount = 0
        for (let lanes = shortLanes(limits); lanes.length > 0; lanes = shortLanes(limits)) {
          const oldest = lanes
            .flatMap(lane => laneReader(lane).oldestProcessed(processed[lane]) ?? [])
            .sort((one, other) => one.newestAppendMs - other.newestAppendMs)[0]
          if (oldest === undefined) break
          oldest.delete()
          deletedSegmentCount++
        }
        return { deletedSegmentCount }
      }),
    pack: async signal => {
      let packedSegmentCount = 0
      for (const lane of logLanes) packedSegmentCount += await laneReader(lane).pack(signal)
      return { packedSegmentCount }
    },
    close: async () => {
      for (const lane of lanes.values()) lane.close()
      lanes.clear()
    },
  }
}

/** The lanes that have something to give up, when it is processed. */
function shortLanes(limits: RoomLimits): readonly LogLane[] {
  const { isShort, areImportsShort } = lookAtRoom(limits)
  return isShort ? logLanes : areImportsShort ? ['historical'] : []
}

class LaneReader {
  readonly #lane: LogLane
  readonly #folder: string
  readonly #list: typeof listSegments
  readonly #onDamage: OnDamage | null
  #segments: SegmentName[] = []
  readonly #open = new Map<string, ReadableSegment>()
  readonly #unpackable = new Set<string>()

  constructor(lane: LogLane, folder: string, options: Pick<SqliteLogReaderOptions, 'list' | 'onDamage'>) {
    this.#lane = lane
    this.#folder = folder
    this.#list = options.list ?? listSegments
    this.#onDamage = options.onDamage ?? null
  }

  read(fromOffset: number, limits: Limits): LogChunk {
    return this.#lookAgain(fromOffset, () => this.#readKnown(fromOffset, limits))
  }

  readRuns(fromOffset: number, bytesMax: number): LogRuns {
    return this.#lookAgain(fromOffset, () => this.#readKnownRuns(fromOffset, bytesMax))
  }

  /** @param readKnown reads from the segments of the last listing. */
  #lookAgain<T extends Walked>(fromOffset: number, readKnown: () => T): T {
    try {
      const known = readKnown()
      if (known.nextOffset > known.firstOffset && known.firstOffset === fromOffset) return known
    } catch (error) {
      if (!(error instanceof PortError && error.retryable)) throw error
    }
    // At the end of what was listed last, or one of those was deleted: look again.
    this.#listAgain()
    let found = readKnown()
    if (found.firstOffset > fromOffset) {
      // A listing of a large folder may miss a file that was made meanwhile and yet hold one that was made after it. The
      // next listing has it: a gap that is still there is one.
      this.#listAgain()
      found = readKnown()
    }
    if (found.nextOffset > found.firstOffset) return found
    const endOffset = this.#endOffset(fromOffset)
    if (fromOffset > endOffset) {
      const message = `position ${fromOffset} lies behind the end of the log in ${this.#folder}, which is at ${endOffset}`
      throw new PortError('event-log', 'conflict', new Error(message))
    }
    return found
  }

  status(offset: number): { endOffset: number; appendedAtMs: number | null; bytes: number } {
    this.#listAgain()
    const segment = this.#segments.findLast(({ firstOffset }) => firstOffset <= offset)
    const appendedAtMs =
      segment === undefined ? null : this.#unlessDamaged(null, () => this.#using(segment, o => o.appendedAtMs(offset)))
    return { endOffset: this.#endOffset(offset), appendedAtMs, bytes: folderBytes(this.#folder) }
  }

  deleteBehind(offset: number, olderThanMs: number): { deletedSegmentCount: number } {
    for (let deletedSegmentCount = 0; ; deletedSegmentCount++) {
      const oldest = this.oldestProcessed(offset)
      if (oldest === null || oldest.newestAppendMs >= olderThanMs) return { deletedSegmentCount }
      oldest.delete()
    }
  }

  /** The oldest segment, when it lies entirely behind `offset` and is not the newest. */
  oldestProcessed(offset: number): { readonly newestAppendMs: number; delete(): void } | null {
    this.#listAgain()
    const [oldest, next] = this.#segments
    if (oldest === undefined || next === undefined || next.firstOffset > offset) return null
    return {
      newestAppendMs: this.#newestAppendMs(oldest),
      delete: () => {
        this.#closeSegment(oldest.path)
        removeSegmentFiles(oldest.path)
      },
    }
  }

  /** Packs every segment but the newest, oldest first. One that is damaged stays as it is: who reads it finds out. */
  async pack(signal: AbortSignal): Promise<number> {
    let packedCount = 0
    for (const segment of this.#list(this.#folder).slice(0, -1)) {
      if (signal.aborted) break
      removePackedTwin(this.#folder, segment)
      if (segment.form !== 'plain' || this.#unpackable.has(segment.path)) continue
      try {
        if (await packSegment(this.#folder, segment, signal)) packedCount++
      } catch (error) {
        const failure = readError(error, segment.path)
        if (failure instanceof PortError && failure.code === 'corrupt') this.#unpackable.add(segment.path)
        else if (!(failure instanceof PortError)) throw new PortError('event-log', 'unavailable', error)
      }
    }
    return packedCount
  }

  close(): void {
    for (const path of [...this.#open.keys()]) this.#closeSegment(path)
  }

  #readKnown(fromOffset: number, limits: Limits): LogChunk {
    const records: LogRecord[] = []
    let room = limits.bytesMax
    const walked = this.#walk(fromOffset, (frame, from) => {
      const cursor = new RecordCursor(frame.body, frame.record_count)
      cursor.skip(from - frame.first_offset)
      const countBefore = records.length
      while (!cursor.done && records.length < limits.recordCountMax) {
        const bytes = cursor.nextBytes
        if (bytes > room && records.length > 0) break
        room -= bytes
        const record = cursor.next()
        records.push(record.kind === 'damaged' ? { ...record, appendedAtMs: frame.appended_at_ms } : record)
      }
      return {
        nextOffset: from + records.length - countBefore,
        isEnough: !cursor.done || records.length >= limits.recordCountMax || room <= 0,
      }
    })
    const holeIn = this.#holeIn(fromOffset, walked.firstOffset)
    return { lane: this.#lane, records, ...walked, ...(holeIn !== null && { holeIn }) }
  }

  #readKnownRuns(fromOffset: number, bytesMax: number): LogRuns {
    const runs: LogRun[] = []
    let room = bytesMax
    const walked = this.#walk(fromOffset, frame => {
      const { first_offset: firstOffset, record_count: recordCount, appended_at_ms: appendedAtMs, body: bytes } = frame
      runs.push({ firstOffset, recordCount, appendedAtMs, bytes })
      room -= bytes.length
      return { nextOffset: firstOffset + recordCount, isEnough: room <= 0 }
    })
    return { runs, ...walked }
  }

  /**
   * Shows the frames from `fromOffset` on to `take`, which says where it goes on and whether it has enough. From the segments
   * of the last listing; the ones before the newest are complete, so their end leads to the next.
   */
  #walk(
    fromOffset: number,
    take: (frame: FrameRow, fromOffset: number) => { nextOffset: number; isEnough: boolean },
  ): Walked {
    let firstOffset = fromOffset
    let nextOffset = fromOffset
    let isEnough = false
    const first = Math.max(
      0,
      this.#segments.findLastIndex(segment => segment.firstOffset <= fromOffset),
    )
    for (let index = first; index < this.#segments.length; index++) {
      const segment = this.#segments[index]!
      const before = this.#endOfSegment(index)
      if (segment.firstOffset > nextOffset) {
        if (nextOffset > firstOffset) break
        firstOffset = nextOffset = segment.firstOffset
      }
      try {
        this.#using(segment, opened => {
          for (const frame of opened.framesFrom(nextOffset)) {
            if (frame.first_offset + frame.record_count <= nextOffset) continue
            if (frame.first_offset >= before) break
            if (frame.first_offset > nextOffset) {
              // Behind a hole, which a caller has to see before what follows it.
              if (nextOffset > firstOffset) {
                isEnough = true
                break
              }
              firstOffset = nextOffset = frame.first_offset
            }
            const taken = take(frame, nextOffset)
            nextOffset = taken.nextOffset
            isEnough = taken.isEnough
            if (isEnough) break
          }
        })
      } catch (error) {
        // What was read before the damage is handed out first; the next call meets the damage again and says so.
        if (nextOffset > firstOffset && error instanceof PortError && error.code === 'corrupt') break
        throw error
      }
      if (isEnough) break
    }
    return { firstOffset, nextOffset }
  }

  /** Closes what was deleted or packed meanwhile: the disk gets its bytes back only when no process has it open. */
  #listAgain(): void {
    this.#segments = this.#list(this.#folder)
    const paths = new Set(this.#segments.map(({ path }) => path))
    for (const path of this.#open.keys()) if (!paths.has(path)) this.#closeSegment(path)
  }

  /**
   * Offsets from here on lie in the next segment, or will: one that was set aside as the newest may hold what nobody was told
   * had been accepted.
   */
  #endOfSegment(index: number): number {
    const next = this.#segments[index + 1]
    if (next !== undefined) return next.firstOffset
    return this.#segments[index]!.form === 'damaged' ? readLaneMark(this.#folder) : Number.POSITIVE_INFINITY
  }

  /** The damaged file that the records between lay in; null when there is none. */
  #holeIn(fromOffset: number, firstOffset: number): string | null {
    if (firstOffset === fromOffset) return null
    const segment = this.#segments.findLast(each => each.firstOffset <= fromOffset)
    return segment?.form === 'damaged' ? segment.path : null
  }

  /** A lane without segments begins where the state stands in it. */
  #endOffset(position: number): number {
    const newest = this.#segments.at(-1)
    if (newest === undefined) return position
    const marked = () => Math.max(readLaneMark(this.#folder), newest.firstOffset)
    if (newest.form === 'damaged') return marked()
    return this.#unlessDamaged(null, () => this.#using(newest, opened => opened.endOffset())) ?? marked()
  }

  #unlessDamaged<T>(otherwise: T, use: () => T): T {
    try {
      return use()
    } catch (error) {
      if (error instanceof PortError && error.code === 'corrupt') return otherwise
      throw error
    }
  }

  /** A segment that cannot be read is as old as its file, so that retention frees it as well. */
  #newestAppendMs(segment: SegmentName): number {
    const newest = this.#unlessDamaged(null, () => this.#using(segment, opened => opened.newestAppendMs()))
    return newest ?? statSync(segment.path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  }

  #using<T>(segment: SegmentName, use: (opened: ReadableSegment) => T): T {
    if (segment.form === 'damaged' && this.#onDamage === null) throw damaged(segment, 'it was set aside')
    try {
      const known = this.#open.get(segment.path)
      const opened = known ?? openReadable(segment)
      // Last used, last in line to be closed.
      this.#open.delete(segment.path)
      this.#open.set(segment.path, opened)
      if (known === undefined && this.#open.size > openSegmentsMax) this.#closeSegment(this.#open.keys().next().value!)
      return use(opened)
    } catch (error) {
      this.#closeSegment(segment.path)
      const onDamage = this.#onDamage
      if (onDamage === null || !isDamage(error) || segment.form === 'damaged') throw readError(error, segment.path)
      const path = setAside(segment)
      if (path !== null) onDamage({ lane: this.#lane, path, error })
      // To look again: it is another file now, of which more can be read.
      throw new PortError('event-log', 'unavailable', error)
    }
  }

  #closeSegment(path: string): void {
    this.#open.get(path)?.close()
    this.#open.delete(path)
  }
}

/** @throws PortError for errors of the system. */
function reading<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if ((error as { syscall?: unknown }).syscall === undefined) throw error
    throw new PortError('event-log', 'unavailable', error)
  }
}

function damaged({ path }: SegmentName, why: string): PortError {
  return new PortError('event-log', 'corrupt', new Error(`log segment ${path} is damaged: ${why}`))
}

/** Tries again while a writer holds the file for recovery or tidying, or a segment went away since it was listed. */
async function patiently<T>(attempt: () => T): Promise<T> {
  for (let attemptCount = 1; ; attemptCount++) {
    try {
      return attempt()
    } catch (error) {
      if (!(error instanceof PortError && error.retryable) || attemptCount >= busyRetry.count) throw error
      await sleep(busyRetry.delayMs)
    }
  }
}
