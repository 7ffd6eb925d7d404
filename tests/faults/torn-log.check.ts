// A power cut in the middle of a commit leaves any prefix of it on the disk, or sectors with arbitrary content. This
// makes such disks from one good run and checks what the log reads from them. `torn-log.test.ts` samples the positions;
// `torn-log.nightly.ts` tests every position within the record and samples the pages around it.

import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { StreamAppender } from '#adapters/sqlite-log/stream-appender.ts'
import { buildMarkPath } from '#adapters/sqlite-log/stream-mark.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { aCapturedEvent, encodedEvents } from '../support/values.ts'

const units: CapturedEvent[][] = [
  [aCapturedEvent(1)],
  [aCapturedEvent(2), aCapturedEvent(3), aCapturedEvent(4)],
  [withBytes(5, 9_000)],
  [aCapturedEvent(6), withBytes(7, 700)],
]
const torn = [withBytes(8, 1_900)]
const after = [aCapturedEvent(9)]
const acknowledged = units.flat()
const appendedAtMs = 1_790_000_000_000

export type Damage = 'truncated' | 'garbled'

/** The size of SQLite's header before each page in a write-ahead log. */
const walFrameHeaderBytes = 24

export interface Places {
  /** Bytes between two tested positions in the record, and in the frame header before its page; 1 = every byte. */
  readonly recordStride: number
  /** The same for the rest of the commit: the other content of the page. */
  readonly restStride: number
  /** Where strides begin, so that runs can differ. */
  readonly first: number
}

/**
 * Tears the last commit, a record of about 2 KB, at many positions, one after another in the same folder.
 * @returns the number of positions, how many of them are in the record, the record's length, and how often the torn
 * unit was still readable.
 */
export async function tearLastCommit(
  folder: string,
  damage: Damage,
  places: Places,
): Promise<{ placeCount: number; recordPlaceCount: number; recordBytes: number; survivedCount: number }> {
  const good = goodRun(join(folder, 'good'))
  const { tornFrom, recordFrom, recordTo } = good
  const counts = { placeCount: 0, recordPlaceCount: 0, recordBytes: recordTo - recordFrom, survivedCount: 0 }
  for (let at = tornFrom; at < good.wal.length; at++) {
    const isInRecord = at >= recordFrom && at < recordTo
    const stride = isInRecord || at < tornFrom + walFrameHeaderBytes ? places.recordStride : places.restStride
    if ((at - tornFrom) % stride !== places.first % stride) continue
    layOut(folder, good, damagedAt(good.wal, at, damage))
    const survived = await checkDisk(folder, `${damage} at byte ${at - tornFrom} of the last commit`)
    counts.placeCount++
    if (isInRecord) counts.recordPlaceCount++
    if (survived) counts.survivedCount++
  }
  return counts
}

/** The same check on an intact disk: the last commit must be readable. */
export async function leaveLastCommitWhole(folder: string): Promise<{ survived: boolean }> {
  const good = goodRun(join(folder, 'good'))
  layOut(folder, good, good.wal)
  return { survived: await checkDisk(folder, 'whole') }
}

/**
 * A stream with only these files: those of the previous check are overwritten, or were removed when it closed the log.
 */
function layOut(folder: string, { fileName, db, mark }: GoodRun, wal: Buffer): void {
  const streamFolder = join(folder, 'main')
  mkdirSync(streamFolder, { recursive: true })
  assert.deepEqual(
    readdirSync(streamFolder).filter(name => name !== fileName),
    [],
  )
  writeFileSync(join(streamFolder, fileName), db)
  writeFileSync(join(streamFolder, `${fileName}-wal`), wal)
  writeFileSync(buildMarkPath(streamFolder), mark)
}

/**
 * Checks that acknowledged units are intact, that the torn one is complete or absent, and that appending continues
 * there.
 */
async function checkDisk(folder: string, what: string): Promise<boolean> {
  const reader = openSqliteLogReader({ folder })
  const appender = openStream(folder)
  try {
    const { endOffset } = await reader.readStreamStatus('main', 0)
    const survived = endOffset === acknowledged.length + torn.length
    if (!survived) assert.equal(endOffset, acknowledged.length, what)
    assert.equal(appendTo(appender, after), endOffset, what)
    const { records } = await reader.read('main', 0, { recordCountMax: 100, bytesMax: 1e9 })
    assert.deepEqual(
      records.map(({ record }) => (record.kind === 'event' ? record.event : record.kind)),
      [...acknowledged, ...(survived ? torn : []), ...after],
      what,
    )
    return survived
  } finally {
    appender.close()
    await reader.close()
  }
}

interface GoodRun {
  readonly fileName: string
  readonly db: Buffer
  readonly wal: Buffer
  /** The last commit, written after the previous one; it was not acknowledged. */
  readonly mark: Buffer
  /** Where the last commit begins in the write-ahead log, and the record's position in it. */
  readonly tornFrom: number
  readonly recordFrom: number
  readonly recordTo: number
}

/** The files after the last commit. */
function goodRun(folder: string): GoodRun {
  const appender = openStream(folder)
  try {
    for (const unit of units) appendTo(appender, unit)
    const fileName = '0000000000000000.db'
    const path = join(folder, 'main', fileName)
    const tornFrom = statSync(`${path}-wal`).size
    const mark = readFileSync(buildMarkPath(join(folder, 'main')))
    // Appending seals these bytes in place, so afterwards they are the bytes that were written.
    const record = encodedEvents(torn).bytes
    appender.append([record], appendedAtMs)
    const wal = readFileSync(`${path}-wal`)
    const recordFrom = wal.indexOf(record, tornFrom)
    assert.notEqual(recordFrom, -1, 'the record is contiguous')
    return { fileName, db: readFileSync(path), wal, mark, tornFrom, recordFrom, recordTo: recordFrom + record.length }
  } finally {
    appender.close()
  }
}

function openStream(folder: string): StreamAppender {
  return new StreamAppender({
    streamFolder: join(folder, 'main'),
    segmentBytesMax: 1e9,
    segmentAgeMs: Number.POSITIVE_INFINITY,
    firstOffset: 0,
    busyTimeoutMs: 1_000,
  })
}

function appendTo(appender: StreamAppender, unit: readonly CapturedEvent[]): number {
  return appender.append([encodedEvents(unit).bytes], appendedAtMs)
}

function damagedAt(wal: Buffer, at: number, damage: Damage): Buffer {
  if (damage === 'truncated') return wal.subarray(0, at)
  const copy = Buffer.from(wal)
  copy[at]! ^= 0xa5
  return copy
}

function withBytes(n: number, bytes: number): CapturedEvent {
  return aCapturedEvent(n, { propertiesJson: JSON.stringify({ pad: 'x'.repeat(bytes) }) })
}
