// A power cut in the middle of a commit leaves any prefix of it on the disk, or sectors with anything in them. This
// makes each such disk from one good run and looks at what the log then says. `torn-log.test.ts` takes samples of the
// places, `torn-log.ci.ts` every one.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LaneAppender } from '#adapters/sqlite-log/lane-appender.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { aCapturedEvent, encodedEvents } from '../support/captured-events.ts'

const units: CapturedEvent[][] = [
  [aCapturedEvent(1)],
  [aCapturedEvent(2), aCapturedEvent(3), aCapturedEvent(4)],
  [withBytes(5, 9_000)],
  [aCapturedEvent(6), withBytes(7, 700)],
]
const torn = [withBytes(8, 1_800)]
const after = [aCapturedEvent(9)]
const acknowledged = units.flat()

export type Damage = 'truncated' | 'garbled'

/**
 * Tears the last commit, a record of about 2 KB, at every `stride`th byte from `first` on.
 * @returns at how many places it was torn, and how often the torn unit was still there.
 */
export async function tearLastCommit(
  folder: string,
  damage: Damage,
  { first, stride }: { first: number; stride: number },
): Promise<{ placeCount: number; survivedCount: number }> {
  const good = goodRun(join(folder, 'good'))
  let placeCount = 0
  let survivedCount = 0
  for (let at = good.tornFrom + first; at < good.wal.length; at += stride) {
    const place = join(folder, `${damage}-${at}`)
    mkdirSync(join(place, 'main'), { recursive: true })
    writeFileSync(join(place, 'main', good.fileName), good.db)
    writeFileSync(join(place, 'main', `${good.fileName}-wal`), damagedAt(good.wal, at, damage))
    const survived = await checkDisk(place, `${damage} at byte ${at - good.tornFrom} of the last commit`)
    placeCount++
    if (survived) survivedCount++
    rmSync(place, { recursive: true })
  }
  return { placeCount, survivedCount }
}

/** The same look at a disk where nothing was torn: the last commit has to be there. */
export async function leaveLastCommitWhole(folder: string): Promise<{ survived: boolean }> {
  const { fileName, db, wal } = goodRun(join(folder, 'good'))
  mkdirSync(join(folder, 'whole', 'main'), { recursive: true })
  writeFileSync(join(folder, 'whole', 'main', fileName), db)
  writeFileSync(join(folder, 'whole', 'main', `${fileName}-wal`), wal)
  return { survived: await checkDisk(join(folder, 'whole'), 'whole') }
}

/** Acknowledged units are intact, the torn one is all there or not at all, and appending goes on where it ends. */
async function checkDisk(folder: string, what: string): Promise<boolean> {
  const reader = openSqliteLogReader({ folder })
  const appender = openLane(folder)
  try {
    const { endOffset } = await reader.status('main', 0)
    const survived = endOffset === acknowledged.length + torn.length
    if (!survived) assert.equal(endOffset, acknowledged.length, what)
    assert.equal(appendTo(appender, after), endOffset, what)
    const { records } = await reader.read('main', 0, { recordCountMax: 100, bytesMax: 1e9 })
    assert.deepEqual(
      records.map(record => (record.kind === 'event' ? record.event : record.kind)),
      [...acknowledged, ...(survived ? torn : []), ...after],
      what,
    )
    return survived
  } finally {
    appender.close()
    await reader.close()
  }
}

/** The files as they are after the last commit, and where in the write-ahead log that commit begins. */
function goodRun(folder: string): { fileName: string; db: Buffer; wal: Buffer; tornFrom: number } {
  const appender = openLane(folder)
  try {
    for (const unit of units) appendTo(appender, unit)
    const fileName = '0000000000000000.db'
    const path = join(folder, 'main', fileName)
    const tornFrom = statSync(`${path}-wal`).size
    appendTo(appender, torn)
    return { fileName, db: readFileSync(path), wal: readFileSync(`${path}-wal`), tornFrom }
  } finally {
    appender.close()
  }
}

function openLane(folder: string): LaneAppender {
  return new LaneAppender({ laneFolder: join(folder, 'main'), segmentBytesMax: 1e9, busyTimeoutMs: 1_000 })
}

function appendTo(appender: LaneAppender, unit: readonly CapturedEvent[]): number {
  return appender.append([encodedEvents(unit).bytes], 1_790_000_000_000)
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
