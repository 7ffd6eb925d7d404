// The durable log between a 200 and the worker. One ordered sequence of records per log lane; a record's offset is its
// place in it, ascending without holes as seen by a reader, from 0 or from where the state stood when the log was begun. A
// hole means that records are gone: a file was removed, or the log came back from an older copy and went on at the state's
// position.

import type { LogLane, LogRecord } from '#core/events/captured-event.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'

export type { EncodedRecords }

export interface EventLogWriter {
  /**
   * Appends encoded records (`core/log/record-codec.ts`, checksums left to the writer) as one unit: all of them or none.
   * Resolves only when they are durable on this host's disk (synced), never before. Order of arrival is kept per lane.
   * Calls may overlap; the writer commits all that is queued together. The bytes are given away with the call.
   * @throws PortError `full` when the size limit, or that of the lane, is reached or the disk is full, `unavailable` when the log cannot be
   *   written or its queue is at its bound, `timeout` when the outcome is unknown. After an error nothing of the unit is
   *   stored, except after `timeout`.
   */
  append(lane: LogLane, records: EncodedRecords): Promise<void>
  close(): Promise<void>
}

export interface EventLogHealth {
  /** What an append would most likely meet now: for readiness, never to decide on an append. */
  condition(): LogCondition
}

/**
 * `full`: a limit is reached, and the reason names its setting. `imports_full`: imports have taken their share, and live
 * events are taken. `files_gone`: what was accepted lies in files that somebody
 * removed or replaced; nothing is taken until a start. `unavailable`: the last commit failed, or there is no answer.
 * `reason`: a sentence for people, without the full stop.
 */
export type LogCondition =
  | { readonly state: 'ok' }
  | { readonly state: 'full' | 'imports_full' | 'files_gone' | 'unavailable'; readonly reason: string }

/** What the log takes, and how far it may grow. */
export interface LogRoom {
  /** What all lanes take on the disk. */
  readonly bytes: number
  /** `Infinity` when there is no limit. */
  readonly bytesMax: number
  /** What is free on the disk that the log lies on. */
  readonly freeBytes: number
  /** What has to stay free. */
  readonly freeBytesMin: number
  /** One of both limits is near: what was processed should go. */
  readonly isShort: boolean
  /** What imports take of `bytes`, and how far that may grow: live events have the rest to themselves. */
  readonly importBytes: number
  readonly importBytesMax: number
  /** `importBytesMax` is near: imports that were processed should go. */
  readonly areImportsShort: boolean
}

/** Records that had been accepted and cannot be read any more: offsets from `fromOffset` up to and without `toOffset`. */
export interface LogLoss {
  readonly lane: LogLane
  readonly fromOffset: number
  readonly toOffset: number
  /** What they lay in, where it is there: damaged. */
  readonly file: string | null
  readonly noticedAtMs: number
  /**
   * Bytes of a record that is there but whose checksum fails, base64, as far as they are kept. Such a record is kept as a
   * reject as well.
   */
  readonly body?: string
  /** Where there is no room for each loss: how many records are missing within the span, and that is not all of them. */
  readonly recordCount?: number
}

export interface LogChunk {
  readonly lane: LogLane
  /** Offset of the first record in `records`. */
  readonly firstOffset: number
  readonly records: readonly LogRecord[]
  /** Where reading goes on; commit this. */
  readonly nextOffset: number
  /** Where `firstOffset` lies behind what was asked for: the damaged file that the records between lay in, if it is there. */
  readonly holeIn?: string
}

/** Records that were appended together, still encoded: `RecordCursor` of `core/log/record-decoder.ts` goes through them. */
export interface LogRun {
  /** Offset of the first record in `bytes`: in the first run of an answer it may lie before what was asked for. */
  readonly firstOffset: number
  readonly recordCount: number
  readonly bytes: Uint8Array
  readonly appendedAtMs: number
}

export interface LogRuns {
  readonly runs: readonly LogRun[]
  /** Where reading began: what was asked for, or the next record behind a hole. */
  readonly firstOffset: number
  /** Where reading goes on. */
  readonly nextOffset: number
}

export interface EventLogReader {
  /**
   * Records from `fromOffset` on, in order: up to `recordCountMax`, and up to `bytesMax` but at least one record.
   * An empty chunk means there is nothing yet. A record whose checksum fails comes back as `damaged`.
   * A `fromOffset` below the oldest kept record, or in a hole, starts at the next one there is.
   * Also without records `firstOffset` may lie further on: then nothing but a hole is there so far.
   * @throws PortError `corrupt` when stored records cannot be read at all (the cause names the file), `conflict` when
   *   `fromOffset` lies beyond the end of the log: it belongs to another one. `unavailable`: try again. A lane that nothing
   *   was ever written to is empty at any offset: it begins where the state stands.
   */
  read(lane: LogLane, fromOffset: number, limits: { recordCountMax: number; bytesMax: number }): Promise<LogChunk>
  /**
   * As `read`, for who passes by most records: nothing is decoded or checked. Whole runs, one at least where there is one,
   * until they have `bytesMax` together. A run has up to 1 MiB, or is a single record.
   */
  readRuns(lane: LogLane, fromOffset: number, bytesMax: number): Promise<LogRuns>
  /**
   * Offset that the next appended record will get (`offset` itself when nothing was ever written to the lane), and when the
   * record at `offset` was appended (null when none).
   */
  status(lane: LogLane, offset: number): Promise<{ endOffset: number; appendedAtMs: number | null; bytes: number }>
  /**
   * Deletes whole segments that lie entirely behind `offset` and whose newest record was appended before `olderThanMs`
   * (epoch ms); never anything else, and never the newest segment.
   */
  deleteBehind(lane: LogLane, offset: number, olderThanMs: number): Promise<{ deletedSegmentCount: number }>
  /** Keeps beside the log, for people, what is missing from it. A loss that is kept already is not kept again. @throws PortError */
  keepLoss(...losses: readonly LogLoss[]): Promise<void>
  /**
   * All that were kept, until somebody removes them; where they are very many, a sum of the older ones for each lane and the
   * newest. @throws PortError
   */
  losses(): Promise<readonly LogLoss[]>
  /** Records that are missing in all, at a price that does not grow with the list. @throws PortError */
  lostCount(): Promise<number>
  /** @throws PortError */
  room(): Promise<LogRoom>
  /**
   * Deletes segments as `deleteBehind` does, whatever their age, the oldest of all lanes first, as long as room is short;
   * of imports alone while only they are short of room.
   * @param processed of each lane: records before this offset are needed by nobody.
   */
  makeRoom(processed: Readonly<Record<LogLane, number>>): Promise<{ deletedSegmentCount: number }>
  /**
   * Makes what is complete smaller, where the log can. Records and offsets stay; when a record was appended may be told
   * up to a second too early afterwards. Takes seconds of another thread; ends early with `signal`, and goes on next time.
   */
  pack(signal: AbortSignal): Promise<{ packedSegmentCount: number }>
  close(): Promise<void>
}
