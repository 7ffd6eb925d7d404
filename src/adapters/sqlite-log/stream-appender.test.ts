import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { distinctIds, readAll } from '../../../tests/ports/event-log.contract.ts'
import { openedReader } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/values.ts'
import { moveDamagedSegmentAside } from './move-damaged-segment.ts'
import { listSegments, openSegment, pageBytes, removeSegmentFiles } from './segment-file.ts'
import { FilesGoneError, StreamAppender, type StreamGap } from './stream-appender.ts'
import { StreamMark } from './stream-mark.ts'

// Several fronts append to one stream. An idle front keeps open the segment that was newest at its last append.

describe('a stream appender whose stream another process also appends to', () => {
  for (const what of ['compressed', 'deleted'] as const) {
    it(`continues after the other process ended their shared segment, which was then ${what}`, async t => {
      const { streamFolder, still, completeAndTakeAway, reader } = await twoAppenders(t)
      await completeAndTakeAway(what)
      still.check()
      const offset = appendTo(still, 9)
      assert.equal(offset, 4)
      assert.deepEqual(distinctIds(await readAll(reader, 'main', 100, 4)), ['person-9'])
      assert.equal(listSegments(streamFolder).at(-1)?.firstOffset, 4)
    })

    it(`appends after the other process’s records, even without a check after complete segments were ${what}`, async t => {
      const { still, completeAndTakeAway, reader, gaps } = await twoAppenders(t)
      await completeAndTakeAway(what)
      assert.equal(appendTo(still, 9), 4)
      assert.deepEqual(distinctIds(await readAll(reader, 'main', 100, 4)), ['person-9'])
      assert.deepEqual(gaps, [])
    })
  }

  for (const isLookedFirst of [true, false]) {
    const when = isLookedFirst ? 'after a check' : 'without a check'
    it(`continues ${when} after the other process set its segment aside and retention deleted it`, async t => {
      const { streamFolder, still, other, reader, gaps } = await twoAppenders(t, 1_000_000)
      const [first] = listSegments(streamFolder)
      const path = moveDamagedSegmentAside(first!)
      const acknowledged = [appendTo(other, 2)]
      removeSegmentFiles(path!)
      if (isLookedFirst) still.check()
      acknowledged.push(appendTo(still, 3, 4, 5))
      const stored = await readAll(reader, 'main', 100, acknowledged[0]!)
      assert.deepEqual(distinctIds(stored), ['person-2', 'person-3', 'person-4', 'person-5'])
      assert.deepEqual(gaps, [], 'no accepted record counts as lost')
    })
  }

  it('continues after the other process found a segment damaged and set it aside', async t => {
    const { streamFolder, still, other } = await twoAppenders(t, 1_000_000)
    appendTo(other, 1)
    const [first] = listSegments(streamFolder)
    const db = openSegment(first!.path, 'write')
    db.pragma('wal_checkpoint(TRUNCATE)')
    db.close()
    const bytes = readFileSync(first!.path)
    writeFileSync(first!.path, bytes.fill(0xff, pageBytes))
    appendTo(other, 2)
    still.check()
    appendTo(still, 3)
  })

  it('reports only unprocessed records as lost', t => {
    const limits = { segmentBytesMax: 1, segmentAgeMs: Infinity, busyTimeoutMs: 1_000 }
    const gapsAt = (position: number) => {
      const gaps: StreamGap[] = []
      const streamFolder = join(tempDir(t), 'main')
      const before = new StreamAppender({ ...limits, streamFolder, firstOffset: 0 })
      appendTo(before, 0, 1, 2, 3)
      appendTo(before, 4, 5, 6, 7, 8)
      before.close()
      removeSegmentFiles(listSegments(streamFolder).at(-1)!.path)
      const onGap = (gap: StreamGap) => gaps.push(gap)
      new StreamAppender({ ...limits, streamFolder, firstOffset: position, onGap }).close()
      return gaps
    }
    assert.deepEqual([2, 6, 9].map(gapsAt), [
      [{ endOffset: 4, firstOffset: 9, isLost: true }],
      [{ endOffset: 6, firstOffset: 9, isLost: true }],
      [{ endOffset: 4, firstOffset: 9, isLost: false }],
    ])
  })

  it('sets aside, once and with its side file, a segment that ends before the recorded end of its stream', async t => {
    const { streamFolder, still, other, gaps, damages, open } = await twoAppenders(t, 1_000_000)
    appendTo(still, 1, 2, 3)
    const mark = new StreamMark(streamFolder)
    mark.write(9)
    mark.close()
    const side = readFileSync(`${listSegments(streamFolder)[0]!.path}-wal`)
    const offsets = [open(), still, open(), other].map(appender => appendTo(appender, 9))
    assert.deepEqual(offsets, [9, 10, 11, 12])
    const [aside, ...others] = listSegments(streamFolder)
    assert.deepEqual([aside!.form, others.map(({ firstOffset }) => firstOffset)], ['damaged', [9]])
    assert.deepEqual(damages, [[aside!.path, 'it ends at offset 4, but the stream had reached 9']])
    assert.deepEqual(gaps, [])
    assert.ok(readFileSync(`${aside!.path}-wal`).equals(side))
  })

  it('refuses appends if its incomplete segment was removed', async t => {
    const { streamFolder, still } = await twoAppenders(t)
    const [newest] = listSegments(streamFolder)
    rmSync(newest!.path)
    assert.throws(() => still.check(), FilesGoneError)
  })
})

describe('a segment that has become old', () => {
  const hourMs = 3_600_000
  const startMs = 1_790_000_000_000

  function appenders(t: TestContext) {
    const streamFolder = join(tempDir(t), 'main')
    const open = () => {
      const limits = { segmentBytesMax: 1_000_000, segmentAgeMs: hourMs }
      const appender = new StreamAppender({ streamFolder, firstOffset: 0, ...limits, busyTimeoutMs: 1_000 })
      t.after(() => appender.close())
      return appender
    }
    const offsets = () => listSegments(streamFolder).map(({ firstOffset }) => firstOffset)
    return { open, offsets }
  }
  const append = (appender: StreamAppender, n: number, nowMs: number) =>
    appender.append([encodedEvents([aCapturedEvent(n)]).bytes], nowMs)

  it('accepts no more appends, and is ended once, even if no append arrives', t => {
    const { open, offsets } = appenders(t)
    const [one, other] = [open(), open()]
    append(one, 0, startMs)
    append(other, 1, startMs + hourMs - 1)
    for (const appender of [one, other]) appender.endOldSegment(startMs + hourMs - 1)
    assert.deepEqual(offsets(), [0])
    assert.equal(append(one, 2, startMs + hourMs), 2)
    assert.deepEqual(offsets(), [0, 2])
    for (const appender of [one, other]) appender.endOldSegment(startMs + 2 * hourMs)
    assert.deepEqual(offsets(), [0, 2, 3])
    // The newest segment is empty, so it has no age.
    for (const appender of [one, other, open()]) appender.endOldSegment(startMs + 9 * hourMs)
    assert.equal(append(other, 3, startMs + 9 * hourMs), 3)
    assert.deepEqual(offsets(), [0, 2, 3])
  })

  it('is also ended when the clock was set back', t => {
    const { open, offsets } = appenders(t)
    const appender = open()
    append(appender, 0, startMs)
    append(appender, 1, startMs - hourMs)
    assert.deepEqual(offsets(), [0, 1])
  })
})

/** Both have the first segment open, which holds one record and is full. */
async function twoAppenders(t: TestContext, segmentBytesMax = 1) {
  const folder = tempDir(t)
  const streamFolder = join(folder, 'main')
  const gaps: StreamGap[] = []
  const damages: [path: string, message: string][] = []
  const open = () => {
    const options = { streamFolder, firstOffset: 0, segmentBytesMax, segmentAgeMs: Infinity, busyTimeoutMs: 1_000 }
    const appender = new StreamAppender({
      ...options,
      onGap: gap => gaps.push(gap),
      onDamage: ({ path, error }) => damages.push([path, (error as Error).message]),
    })
    t.after(() => appender.close())
    return appender
  }
  const still = open()
  const other = open()
  appendTo(still, 0)
  const reader = openedReader(t, folder)
  return {
    ...{ streamFolder, gaps, damages, still, other, open, reader },
    completeAndTakeAway: async (what: 'compressed' | 'deleted') => {
      for (const n of [1, 2, 3]) appendTo(other, n)
      if (what === 'compressed') await reader.compressSegments(new AbortController().signal)
      else await reader.deleteBefore('main', 3, Number.POSITIVE_INFINITY)
      assert.ok(listSegments(streamFolder).every(({ form, firstOffset }) => form !== 'plain' || firstOffset === 3))
    },
  }
}

function appendTo(appender: StreamAppender, ...numbers: number[]): number {
  return appender.append([encodedEvents(numbers.map(n => aCapturedEvent(n))).bytes], 1_790_000_000_000)
}
