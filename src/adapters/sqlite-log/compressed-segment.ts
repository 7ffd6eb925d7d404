// Rewrites complete segments compressed: events are similar, so they shrink to about a tenth. Appending is unaffected, and
// the segments that the worker usually reads are still plain. Only one process packs; others may read both files at the
// same time.
//
// A packed segment has the same tables as a plain segment and is never written again. Frames that were appended within a
// second become one frame with the time of the first, since small frames compress badly.

import { existsSync, linkSync } from 'node:fs'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompressSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { readRecordSizeAt } from '#core/log/record-codec.ts'
import {
  createSegmentTables,
  frameBytesMax,
  frameRecordsMax,
  NotASegmentError,
  openSegment,
  pageBytes,
  removeSegmentFiles,
  type SegmentName,
  segmentPath,
  syncFile,
  syncSegmentFolder,
} from './segment-file.ts'

export interface FrameRow {
  readonly first_offset: number
  readonly record_count: number
  readonly appended_at_ms: number
  readonly body: Buffer
}

/** An open segment of any form (plain, packed or damaged). */
export interface ReadableSegment {
  /** The frame that contains `offset`, and all later frames. Only a damaged segment may have gaps between frames. */
  framesFrom(offset: number): IterableIterator<FrameRow>
  /** When the record at `offset` was appended; null when it does not exist. */
  appendedAtMs(offset: number): number | null
  endOffset(): number
  newestAppendMs(): number | null
  close(): void
}

const packedVersion = 2
const zstdMagic = 0xfd2fb528
const mergedWithinMs = 1_000
/** Without zstd's checksum, a changed byte costs only the records that contain it; records have their own checksums. */
const compression = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
const compress = promisify(zstdCompress)

/**
 * Packs a complete segment. The packed file is durable before the plain file is removed.
 * @returns false if the segment may still grow or the signal stopped packing.
 * @throws SqliteError, NotASegmentError, system errors; nothing was changed in that case.
 */
export async function compressSegment(
  streamFolder: string,
  segment: SegmentName,
  signal?: AbortSignal,
): Promise<boolean> {
  const path = segmentPath(streamFolder, segment.firstOffset, '.packed')
  const draft = `${path}.${process.pid}.draft`
  removeSegmentFiles(draft)
  const plain = openSegment(segment.path, 'read')
  try {
    const nextOffset = plain.prepare<[], number | null>('SELECT next_offset FROM segment').pluck().get()
    if (typeof nextOffset !== 'number') return false
    const isWhole = await writePacked(draft, { firstOffset: segment.firstOffset, nextOffset, plain }, signal)
    if (!isWhole) return false
    syncFile(draft)
    linkSync(draft, path)
  } finally {
    plain.close()
    removeSegmentFiles(draft)
  }
  syncSegmentFolder(streamFolder)
  removeSegmentFiles(segment.path)
  return true
}

/** Removes the plain file of a packed segment if packing was interrupted just before that. */
export function removeUnpackedDuplicate(streamFolder: string, segment: SegmentName): void {
  const plain = segmentPath(streamFolder, segment.firstOffset)
  if (segment.form === 'packed' && existsSync(plain)) removeSegmentFiles(plain)
}

/** @throws SqliteError, NotASegmentError. */
export function openPackedSegment(path: string): Database.Database {
  const db = new Database(path, { readonly: true, fileMustExist: true, timeout: 0 })
  try {
    const version = db.pragma('user_version', { simple: true })
    if (version !== packedVersion) throw new NotASegmentError(version)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Restores the frame as it was appended. A body that cannot be decompressed is returned unchanged, and its records
 * count as damaged.
 */
export function unpackFrame(frame: FrameRow): FrameRow {
  // A plain frame starts with the length of its first record, for which this magic number would mean 4 GB.
  if (frame.body.length < 4 || frame.body.readUInt32LE(0) !== zstdMagic) return frame
  try {
    return { ...frame, body: zstdDecompressSync(frame.body) }
  } catch {
    return frame // the checksums of its records fail, and each is reported as damaged
  }
}

interface Packing {
  readonly firstOffset: number
  readonly nextOffset: number
  readonly plain: Database.Database
}

/** Yields to the event loop between frames. @returns false when the signal stopped it. */
async function writePacked(draft: string, { firstOffset, nextOffset, plain }: Packing, signal?: AbortSignal) {
  const frames = plain.prepare<[number]>('SELECT * FROM frames WHERE first_offset >= ? ORDER BY first_offset')
  const packed = new Database(draft)
  try {
    // No sync is needed yet: no reader opens a draft, and a crash leaves only a draft.
    packed.pragma(`page_size = ${pageBytes}`)
    packed.pragma('journal_mode = OFF')
    packed.pragma('synchronous = OFF')
    createSegmentTables(packed, { firstOffset, nextOffset, version: packedVersion })
    const insert = packed.prepare('INSERT INTO frames VALUES (?, ?, ?, ?)')
    packed.exec('BEGIN')
    for (let from = firstOffset; ; ) {
      if (signal?.aborted) return false
      const merged = mergeFrames(frames.iterate(from) as IterableIterator<FrameRow>)
      if (merged === null) break
      insert.run(
        merged.first_offset,
        merged.record_count,
        merged.appended_at_ms,
        await compress(merged.body, compression),
      )
      from = merged.first_offset + merged.record_count
    }
    packed.exec('COMMIT')
    return true
  } finally {
    packed.close()
  }
}

/** Merges the first frame with the following frames that fit. @returns null if there is no frame. */
function mergeFrames(frames: IterableIterator<FrameRow>): FrameRow | null {
  const bodies: Buffer[] = []
  let first: FrameRow | null = null
  let recordCount = 0
  let bytes = 0
  for (const frame of frames) {
    if (first !== null) {
      const follows = frame.first_offset === first.first_offset + recordCount
      const isSoon = Math.abs(frame.appended_at_ms - first.appended_at_ms) < mergedWithinMs
      const fits = recordCount + frame.record_count <= frameRecordsMax && bytes + frame.body.length <= frameBytesMax
      if (!follows || !isSoon || !fits || !isWhole(frame)) break
    }
    first ??= frame
    bodies.push(frame.body)
    recordCount += frame.record_count
    bytes += frame.body.length
    // A frame with a damaged length is not merged, so that the damage does not affect other frames.
    if (bodies.length === 1 && !isWhole(frame)) break
  }
  if (first === null) return null
  return { ...first, record_count: recordCount, body: bodies.length === 1 ? first.body : Buffer.concat(bodies, bytes) }
}

/** Whether the lengths of a frame's records add up to the length of its body. */
function isWhole({ body, record_count: recordCount }: FrameRow): boolean {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  let count = 0
  for (let at = 0; at < body.length; count++) {
    const size = readRecordSizeAt(view, at)
    if (size === 0) return false
    at += size
  }
  return count === recordCount
}
