import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Logger } from '#telemetry/log.ts'
import { openedReader, openedWriter } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aCapturedEvent, encodedEvents, offsetsOf } from '../../../tests/support/values.ts'
import { hasLogSegments, readLogIdentity, writeLogIdentity } from './log-identity.ts'
import { listSegments, openSegment } from './segment-file.ts'

describe('a log opened at the state’s position', () => {
  const all = { recordCountMax: 100, bytesMax: 1e6 }

  it('starts at the state’s position: it has no lag while empty, and its first record gets that offset', async t => {
    const folder = tempDir(t)
    const reader = openedReader(t, folder)
    assert.deepEqual(await reader.readStreamStatus('main', 50), { endOffset: 50, appendedAtMs: null })
    assert.equal((await reader.read('main', 50, all)).nextOffset, 50)
    const { writer } = await openedWriter(t, { firstOffsets: { main: 50, historical: 7 } }, folder)
    assert.equal((await reader.readStreamStatus('main', 50)).endOffset, 50)
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    const chunk = await reader.read('main', 50, all)
    assert.deepEqual([chunk.missing, offsetsOf(chunk), chunk.nextOffset], [null, [50], 51])

    assert.equal((await reader.readStreamStatus('historical', 7)).endOffset, 7)
    await writer.append('import', encodedEvents([aCapturedEvent(2, { lane: 'historical' })]))
    assert.equal((await reader.read('historical', 7, all)).nextOffset, 8)
  })

  it('continues at the end of its segments if that is at or beyond the state’s position', async t => {
    const { folder, writer } = await openedWriter(t, { firstOffsets: { main: 50 } })
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    await writer.close()
    for (const [n, main] of [50, 52].entries()) {
      const { writer: again } = await openedWriter(t, { firstOffsets: { main } }, folder)
      await again.append('live', encodedEvents([aCapturedEvent(n + 2)]))
      await again.close()
    }
    assert.equal((await openedReader(t, folder).read('main', 50, all)).nextOffset, 53)
  })

  it('continues at the state’s position if its segments end earlier, as in a backup', async t => {
    const { folder, writer } = await openedWriter(t)
    await writer.append('live', encodedEvents([aCapturedEvent(1), aCapturedEvent(2)]))
    await writer.close()
    const told: object[] = []
    const logger = { error: assert.fail, warn: (gap: object) => void told.push(gap) } as unknown as Logger
    const options = { firstOffsets: { main: 90 }, logger }
    const fronts = [await openedWriter(t, options, folder), await openedWriter(t, options, folder)] as const
    assert.deepEqual(told, [{ stream: 'main', endOffset: 2, firstOffset: 90 }], 'told once')

    const reader = openedReader(t, folder)
    assert.equal((await reader.read('main', 90, all)).records.length, 0, 'no conflict before something is appended')
    for (const [n, { writer: front }] of fronts.entries())
      await front.append('live', encodedEvents([aCapturedEvent(n + 3)]))
    const behind = await reader.read('main', 90, all)
    assert.deepEqual([behind.missing, offsetsOf(behind), behind.nextOffset], [null, [90, 91], 92])
    const before = await reader.read('main', 0, { ...all, recordCountMax: 2 })
    assert.deepEqual([offsetsOf(before), before.nextOffset], [[0, 1], 2], 'what is there of before is kept')
    assert.deepEqual((await reader.read('main', 2, all)).missing, {
      recordCount: 88,
      fromOffset: 2,
      toOffset: 90,
      file: null,
    })
  })

  it('continues at the state’s position even if the first start that noticed the missing records was interrupted', async t => {
    const { folder, writer } = await openedWriter(t)
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    await writer.close()
    const segment = openSegment(listSegments(join(folder, 'main'))[0]!.path, 'write')
    segment.exec('UPDATE segment SET next_offset = 90')
    segment.close()
    await openedWriter(t, { firstOffsets: { main: 90 } }, folder)
    assert.equal((await openedReader(t, folder).readStreamStatus('main', 90)).endOffset, 90)
  })
})

describe('the id of a log', () => {
  it('is the one that was written last, and only the owner can read it', async t => {
    const folder = join(tempDir(t), 'log')
    assert.equal(readLogIdentity(folder), null)
    assert.equal(hasLogSegments(folder), false)
    const [first, second] = [randomUUID(), randomUUID()]
    writeLogIdentity(folder, first)
    assert.equal(readLogIdentity(folder), first)
    writeLogIdentity(folder, second)
    assert.equal(readLogIdentity(folder), second)
    assert.deepEqual(readdirSync(folder), ['identity'])
    assert.equal(statSync(join(folder, 'identity')).mode & 0o777, 0o600)
    await openedWriter(t, {}, folder)
    assert.equal(hasLogSegments(folder), true)
  })

  it('causes an error if it is missing from its file', t => {
    const folder = tempDir(t)
    writeFileSync(join(folder, 'identity'), '')
    assert.throws(() => readLogIdentity(folder), /identity does not contain the id of a log/)
  })
})
