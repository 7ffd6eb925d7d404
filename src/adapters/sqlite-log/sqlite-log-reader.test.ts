import assert from 'node:assert/strict'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import Database from 'better-sqlite3'
import { PortError } from '#ports/port-error.ts'
import { distinctIds, readAll } from '../../../tests/ports/event-log.contract.ts'
import { filledStream, openedReader, openedWriter } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/values.ts'
import { listSegments } from './segment-file.ts'
import { openSqliteLogReader } from './sqlite-log-reader.ts'

describe('sqlite-log reader', () => {
  it('reports a damaged record in the middle and reads the rest', async t => {
    const { folder, writer } = await openedWriter(t, { nowMs: () => 1_790_000_000_123 })
    await writer.append('live', encodedEvents([1, 2, 3, 4].map(n => aCapturedEvent(n))))
    await writer.append('live', encodedEvents([aCapturedEvent(5)]))
    changeFrame(folder, 0, body => {
      body[body.indexOf('person-2')]! ^= 1
    })
    const { records, nextOffset } = await openedReader(t, folder).read('main', 0, { recordCountMax: 9, bytesMax: 1e6 })
    assert.deepEqual(distinctIds(records), ['person-1', 'damaged', 'person-3', 'person-4', 'person-5'])
    assert.equal(nextOffset, 5)
    const damaged = records[1]!.record
    assert.ok(damaged.kind === 'damaged' && Buffer.from(damaged.body).includes('phc_test_token'))
    assert.equal(damaged.appendedAtMs, 1_790_000_000_123)
  })

  it('counts every record after a damaged length as lost, so that offsets stay the same', async t => {
    const { folder, writer } = await openedWriter(t)
    await writer.append('live', encodedEvents([1, 2, 3].map(n => aCapturedEvent(n))))
    await writer.append('live', encodedEvents([aCapturedEvent(4)]))
    changeFrame(folder, 0, body => {
      body[3] = 0xff
    })
    const chunk = await openedReader(t, folder).read('main', 0, { recordCountMax: 9, bytesMax: 1e6 })
    assert.deepEqual(distinctIds(chunk.records), ['damaged', 'damaged', 'damaged', 'person-4'])
    assert.equal(chunk.nextOffset, 4)
  })

  it('names an unreadable segment after returning the records before it', async t => {
    const folder = tempDir(t)
    const segments = await filledStream(t, folder)
    const broken = segments[1]!
    writeFileSync(broken.path, Buffer.alloc(40_000, 7))
    const reader = openedReader(t, folder)
    const before = await reader.read('main', 0, { recordCountMax: 10_000, bytesMax: 1e9 })
    assert.equal(before.nextOffset, broken.firstOffset)
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(reader.read('main', before.nextOffset, { recordCountMax: 9, bytesMax: 1e6 }), error => {
        assert.ok(error instanceof PortError && error.code === 'corrupt' && !error.retryable)
        assert.ok(error.message.includes(broken.path))
        return true
      })
    }
    const behind = await readAll(reader, 'main', 100, segments[2]!.firstOffset)
    assert.equal(distinctIds(behind)[0], `person-${segments[2]!.firstOffset}`)
  })

  it('deletes an old unreadable segment that lies before the given offset', async t => {
    const folder = tempDir(t)
    const segments = await filledStream(t, folder)
    writeFileSync(segments[0]!.path, Buffer.alloc(40_000, 7))
    utimesSync(segments[0]!.path, 1_000, 1_000)
    const reader = openedReader(t, folder)
    const behind = segments[1]!.firstOffset
    assert.deepEqual(await reader.deleteBefore('main', behind, 2_000_000), { deletedSegmentCount: 1 })
    assert.equal(existsSync(segments[0]!.path), false)
  })

  it('continues as soon as it is woken, long before its next poll', async t => {
    const { folder, writer } = await openedWriter(t)
    const reader = openSqliteLogReader({ folder, pollMs: 600_000 })
    t.after(() => reader.close())
    const waiting = { recordCountMax: 9, bytesMax: 1e6, maxWaitMs: 600_000 }
    const reading = reader.read('main', 0, waiting)
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    reader.wakeUp('historical')
    reader.wakeUp('main')
    assert.deepEqual(distinctIds((await reading).records), ['person-1'])
    const next = reader.read('main', 1, waiting)
    // Like another front, whose commits do not wake this reader before our next commit does.
    const { writer: other } = await openedWriter(t, {}, folder)
    await other.append('live', encodedEvents([aCapturedEvent(2)]))
    reader.wakeUp('main')
    assert.deepEqual(distinctIds((await next).records), ['person-2'])
  })

  it('treats a segment of another version as unreadable', async t => {
    const folder = tempDir(t)
    const [first] = await filledStream(t, folder)
    const db = new Database(first!.path)
    db.pragma('user_version = 2')
    db.close()
    const reader = openedReader(t, folder)
    await assert.rejects(reader.read('main', 0, { recordCountMax: 9, bytesMax: 1e6 }), { code: 'corrupt' })
  })

  it('skips nothing when a folder listing missed a segment that was created during the listing', async t => {
    const folder = tempDir(t)
    const [first, second, third] = await filledStream(t, folder)
    let listingCount = 0
    const reader = openSqliteLogReader({
      folder,
      // The first new listing holds the third segment but not the second.
      list: streamFolder => {
        const names = listSegments(streamFolder)
        listingCount++
        if (listingCount === 1) return names.slice(0, 1)
        return listingCount === 2 ? names.filter(({ firstOffset }) => firstOffset !== second!.firstOffset) : names
      },
    })
    t.after(() => reader.close())
    const all = { recordCountMax: 1_000, bytesMax: 1e9 }
    const { nextOffset } = await reader.read('main', first!.firstOffset, all)
    assert.equal(nextOffset, second!.firstOffset)
    const chunk = await reader.read('main', nextOffset, all)
    assert.deepEqual([chunk.missing, chunk.records[0]!.offset], [null, second!.firstOffset])
    assert.ok(chunk.nextOffset > third!.firstOffset)
  })

  it('continues after another reader deleted the listed segments', async t => {
    const folder = tempDir(t)
    const segments = await filledStream(t, folder)
    const reader = openedReader(t, folder)
    await reader.read('main', 0, { recordCountMax: 1, bytesMax: 1 })
    const kept = segments.at(-1)!.firstOffset
    await openedReader(t, folder).deleteBefore('main', kept, Number.MAX_SAFE_INTEGER)
    const chunk = await reader.read('main', segments[1]!.firstOffset, { recordCountMax: 1, bytesMax: 1 })
    assert.equal(chunk.records[0]!.offset, kept)
  })
})

function changeFrame(folder: string, firstOffset: number, change: (body: Buffer) => void): void {
  const db = new Database(listSegments(join(folder, 'main')).at(-1)!.path)
  const body = db.prepare('SELECT body FROM frames WHERE first_offset = ?').pluck().get(firstOffset) as Buffer
  change(body)
  db.prepare('UPDATE frames SET body = ? WHERE first_offset = ?').run(body, firstOffset)
  db.close()
}
