import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { PortError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { distinctIds, readAll } from '../../../tests/ports/event-log.contract.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { filledStream, openedReader, openedWriter } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/values.ts'
import type { LogThreadOptions } from './log-writer-thread.ts'
import { createSegment, listSegments } from './segment-file.ts'
import { openSqliteLogReader } from './sqlite-log-reader.ts'
import { openSqliteLogWriter, type Synced } from './sqlite-log-writer.ts'
import { StreamWriter } from './stream-writer.ts'

describe('sqlite-log writer', () => {
  it('resolves an append only after the commit that holds it was synced', async t => {
    const synced: Synced[] = []
    const { folder, writer } = await openedWriter(t, { onSynced: each => synced.push(each) })
    for (let n = 0; n < 5; n++) {
      const startedAtNs = process.hrtime.bigint()
      await writer.append('live', encodedEvents([aCapturedEvent(n)]))
      const resolvedAtNs = process.hrtime.bigint()
      const [commit, ...more] = synced.splice(0)
      assert.deepEqual([commit?.stream, commit?.unitCount, commit?.recordCount, more.length], ['main', 1, 1, 0])
      assert.ok(commit!.syncedAtNs > startedAtNs && commit!.syncedAtNs < resolvedAtNs)
      assert.equal(frameCount(folder), n + 1, 'another connection sees the commit')
    }
  })

  it('acknowledges nothing while the commit is blocked', async t => {
    const { folder, writer } = await openedWriter(t)
    const holder = holdStream(t, folder)
    let resolved = false
    const append = writer.append('live', encodedEvents([aCapturedEvent(1)])).then(() => {
      resolved = true
    })
    await eventually(() => writer.countWaitingRecords().get('main') === 1)
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(resolved, false)
    holder.release()
    await append
    assert.equal(frameCount(folder), 1)
  })

  it('ends a segment that became old while the process was down, even without appends', async t => {
    const options = { nowMs: () => 1_790_000_000_000, segmentAgeMs: 3_600_000 }
    const { folder, writer } = await openedWriter(t, options)
    await writer.append('live', encodedEvents([aCapturedEvent(1)]))
    await writer.close()
    await openedWriter(t, { ...options, nowMs: () => 1_790_003_600_000 }, folder)
    const offsets = () => listSegments(join(folder, 'main')).map(({ firstOffset }) => firstOffset)
    assert.deepEqual(await eventually(() => offsets().length > 1 && offsets()), [0, 1])
  })

  it('does not end a segment that another process began after a clock change, even after a long idle time', async t => {
    const hourMs = 3_600_000
    const leaves = async (setMs: number) => {
      let nowMs = 1_790_000_000_000
      let askedCount = 0
      const segmentAgeMs = hourMs
      const { folder, writer } = await openedWriter(t, { nowMs: () => nowMs, segmentAgeMs })
      const idle = {
        segmentAgeMs,
        nowMs: () => {
          askedCount++
          return nowMs
        },
      }
      await openedWriter(t, idle, folder)
      // The thread is asked again only after it has looked.
      const looked = async () => {
        const before = askedCount
        await eventually(() => askedCount >= before + 2)
      }
      nowMs += setMs
      await looked()
      await writer.append('live', encodedEvents([aCapturedEvent(0)]))
      await looked()
      assert.equal(listSegments(join(folder, 'main')).length, 1, `${setMs}`)
    }
    // Back, and ahead as after a suspend, during which the monotonic clock stops.
    await Promise.all([leaves(-2 * hourMs), leaves(2 * hourMs)])
  })

  it('commits all appends that arrive during a commit together', async t => {
    const synced: Synced[] = []
    const { folder, writer } = await openedWriter(t, { onSynced: each => synced.push(each) })
    const holder = holdStream(t, folder)
    const first = writer.append('live', encodedEvents([aCapturedEvent(0)]))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const others = Array.from({ length: 50 }, (_, n) => writer.append('live', encodedEvents([aCapturedEvent(n + 1)])))
    holder.release()
    await Promise.all([first, ...others])
    assert.deepEqual(
      synced.map(commit => commit.unitCount),
      [1, 50],
    )
    assert.equal(frameCount(folder), 2)
  })

  it('refuses only appends that do not fit into its queue', async t => {
    const { folder, writer } = await openedWriter(t, { queueBytesMax: 2_000 })
    const holder = holdStream(t, folder)
    const results = Array.from({ length: 20 }, (_, n) => writer.append('live', encodedEvents([aCapturedEvent(n)])))
    holder.release()
    const settled = await Promise.allSettled(results)
    const refused = settled.filter(result => result.status === 'rejected')
    assert.ok(refused.length > 5 && refused.length < 20)
    for (const { reason } of refused) assert.equal((reason as PortError).code, 'unavailable')
    assert.equal(writer.countWaitingRecords().get('main'), 0)
    const reader = openedReader(t, folder)
    const accepted = settled.flatMap((result, n) => (result.status === 'fulfilled' ? [`person-${n}`] : []))
    assert.deepEqual(distinctIds(await readAll(reader, 'main', 100)), accepted)
  })

  it('refuses more appends than may wait, however small they are', async t => {
    const { folder, writer } = await openedWriter(t, { queueCountMax: 5 })
    const holder = holdStream(t, folder)
    const sent = writer.append('live', encodedEvents([aCapturedEvent(0)]))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const results = Array.from({ length: 8 }, (_, n) => writer.append('live', encodedEvents([aCapturedEvent(n + 1)])))
    const refused = Promise.allSettled(results.slice(5))
    holder.release()
    await Promise.all([sent, ...results.slice(0, 5)])
    const reasons = (await refused).map(result => result.status === 'rejected' && (result.reason as PortError).code)
    assert.deepEqual(reasons, ['unavailable', 'unavailable', 'unavailable'])
  })

  it('fails queued appends at once after a commit timed out waiting for its turn', async t => {
    const { folder, writer } = await openedWriter(t, { busyTimeoutMs: 50 })
    holdStream(t, folder)
    const sent = writer.append('live', encodedEvents([aCapturedEvent(1)]))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    let queuedCode: string | undefined
    const queued = writer.append('live', encodedEvents([aCapturedEvent(2)])).catch((error: PortError) => {
      queuedCode = error.code
    })
    await assert.rejects(sent, { code: 'unavailable' })
    await new Promise(resolve => setImmediate(resolve))
    assert.equal(queuedCode, 'unavailable')
    await queued
  })

  it('fails sent appends with `timeout` and queued ones with `unavailable` when the disk hangs', async t => {
    const { folder, writer } = await openedWriter(t, { commitTimeoutMs: 150, busyTimeoutMs: 20_000 })
    const holder = holdStream(t, folder)
    const sent = writer.append('live', encodedEvents([aCapturedEvent(1)]))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const queued = writer.append('live', encodedEvents([aCapturedEvent(2)]))
    const outcomes = await Promise.allSettled([sent, queued])
    assert.deepEqual(
      outcomes.map(outcome => outcome.status === 'rejected' && (outcome.reason as PortError).code),
      ['timeout', 'unavailable'],
    )
    await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(3)])), { code: 'unavailable' })
    assert.equal(writer.getCondition().state, 'unavailable')
    holder.release()
    await eventually(() => writer.getCondition().state === 'ok')
    await writer.append('live', encodedEvents([aCapturedEvent(4)]))
    const reader = openedReader(t, folder)
    assert.deepEqual(distinctIds(await readAll(reader, 'main', 100)), ['person-1', 'person-4'])
  })

  it('fails with `unavailable` and stores nothing when other processes lock the file for too long', async t => {
    const { folder, writer } = await openedWriter(t, { busyTimeoutMs: 50 })
    const holder = holdStream(t, folder)
    await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(1)])), { code: 'unavailable' })
    holder.release()
    await writer.append('live', encodedEvents([aCapturedEvent(2)]))
    assert.deepEqual(distinctIds(await readAll(openedReader(t, folder), 'main', 100)), ['person-2'])
  })

  it('restarts a thread that died, and fails appends in flight with `timeout`', async t => {
    const folder = tempDir(t)
    const threads: Worker[] = []
    const troubles: string[] = []
    const stream = new StreamWriter({
      stream: 'main',
      startThread: () => {
        threads.push(startThread({ folder, busyTimeoutMs: 300 }))
        return threads.at(-1)!
      },
      nowMs: Date.now,
      queueBytesMax: 1_000_000,
      queueCountMax: 1_000,
      commitTimeoutMs: 10_000,
      onTrouble: what => troubles.push(what),
    })
    t.after(() => stream.close())
    await stream.ready
    await stream.append(encodedEvents([aCapturedEvent(1)]))
    const holder = holdStream(t, folder)
    const pending = stream.append(encodedEvents([aCapturedEvent(2)]))
    await new Promise(resolve => setImmediate(() => setImmediate(resolve)))
    const queued = stream.append(encodedEvents([aCapturedEvent(3)]))
    void threads[0]!.terminate()
    const outcomes = await Promise.allSettled([pending, queued])
    holder.release()
    assert.deepEqual(
      outcomes.map(outcome => outcome.status === 'rejected' && (outcome.reason as PortError).code),
      ['timeout', 'unavailable'],
    )
    await assert.rejects(stream.append(encodedEvents([aCapturedEvent(4)])), { code: 'unavailable' })
    await eventually(() => stream.condition.state === 'ok')
    await stream.append(encodedEvents([aCapturedEvent(5)]))
    assert.equal(threads.length, 2)
    assert.deepEqual(troubles, ['the log writer ended; restarting it'])
    assert.deepEqual(distinctIds(await readAll(openedReader(t, folder), 'main', 100)), ['person-1', 'person-5'])
  })

  it('reports a full disk, and cannot be opened if a file is in the place of a folder', async t => {
    const { writer } = await openedWriter(t, { minFreeBytes: Number.MAX_SAFE_INTEGER })
    await assert.rejects(writer.append('live', encodedEvents([aCapturedEvent(1)])), { code: 'full', retryable: false })
    assert.equal(writer.getCondition().state, 'full')

    const file = join(tempDir(t), 'file')
    writeFileSync(file, '')
    await assert.rejects(openSqliteLogWriter({ folder: file, nowMs: Date.now, logBytesMax: 1e9 }), PortError)
    const folder = tempDir(t)
    writeFileSync(join(folder, 'main'), '')
    await assert.rejects(openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 1e9 }), { code: 'unavailable' })
  })

  it('reports that imports have used up their share, and still accepts live events', async t => {
    const { writer } = await openedWriter(t, { logBytesMax: 10_000_000 })
    const large = aCapturedEvent(1, { propertiesJson: JSON.stringify({ pad: 'x'.repeat(200_000) }) })
    const fill = async () => {
      for (let n = 0; n < 50; n++) await writer.append('import', encodedEvents([large]))
    }
    await assert.rejects(fill(), { code: 'full' })
    assert.equal(writer.getCondition().state, 'imports_full')
    await writer.append('live', encodedEvents([aCapturedEvent(2)]))
  })

  it('creates the files of an import stream at its first append, or at the start if it has records', async t => {
    const folder = tempDir(t)
    const { writer } = await openedWriter(t, {}, folder)
    assert.equal(existsSync(join(folder, 'historical')), false)
    assert.equal(writer.getCondition().state, 'ok')
    const appends = [0, 1, 2].map(n => writer.append('import', encodedEvents([aCapturedEvent(n)])))
    assert.equal(writer.countWaitingRecords().get('historical'), 3)
    await Promise.all(appends)
    const reader = openedReader(t, folder)
    assert.deepEqual(distinctIds(await readAll(reader, 'historical', 100)), ['person-0', 'person-1', 'person-2'])
    await writer.close()

    const lines: string[] = []
    const logger = Object.assign(createSilentLogger(), { error: (_: object, line: string) => void lines.push(line) })
    writeFileSync(listSegments(join(folder, 'historical'))[0]!.path, 'not a database'.repeat(1_000))
    await openedWriter(t, { logger }, folder)
    assert.match(lines.join(), /a log segment is damaged/, 'the stream was opened')
  })

  it('refuses appends to a stream that cannot be opened, until it can be opened', async t => {
    const folder = tempDir(t)
    const { writer } = await openedWriter(t, {}, folder)
    writeFileSync(join(folder, 'historical'), 'no folder')
    await assert.rejects(writer.append('import', encodedEvents([aCapturedEvent(0)])), { code: 'unavailable' })
    await eventually(() => writer.getCondition().state === 'unavailable')
    rmSync(join(folder, 'historical'))
    await eventually(() => writer.getCondition().state === 'ok')
    await writer.append('import', encodedEvents([aCapturedEvent(1)]))
    assert.deepEqual(distinctIds(await readAll(openedReader(t, folder), 'historical', 100)), ['person-1'])
  })

  it('refuses a segment of a later version, and names it', async t => {
    const folder = tempDir(t)
    const { path } = (await filledStream(t, folder)).at(-1)!
    const db = new Database(path)
    db.pragma('user_version = 9')
    db.close()
    await assert.rejects(openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 1e9 }), error => {
      assert.ok(error instanceof PortError && error.code === 'unavailable')
      assert.ok(error.message.includes(path))
      return true
    })
  })

  for (const [what, content] of [
    ['not a database', 'not a database at all, and long enough to be looked at as one'.repeat(2_000)],
    ['empty', ''],
  ] as const) {
    it(`sets the newest segment aside when it is ${what}, names it, and continues at the stream’s end`, async t => {
      const folder = tempDir(t)
      const { path } = (await filledStream(t, folder)).at(-1)!
      writeFileSync(path, content)
      const lines: [object, string][] = []
      const note = (fields: object, line: string) => void lines.push([fields, line])
      const { writer } = await openedWriter(
        t,
        { logger: Object.assign(createSilentLogger(), { warn: note, error: note }) },
        folder,
      )
      await writer.append('live', encodedEvents([aCapturedEvent(60)]))
      const newest = listSegments(join(folder, 'main')).at(-1)!
      assert.deepEqual([newest.firstOffset, newest.form], [60, 'plain'])
      const aside = path.replace(/db$/, 'damaged.db')
      assert.equal(readFileSync(aside, 'utf8'), content)
      assert.deepEqual(
        lines.map(([fields, line]) => [(fields as { path?: string }).path, line.split(';')[0]]),
        [[aside, 'a log segment is damaged and has been set aside']],
      )
      const reader = openSqliteLogReader({ folder, onDamage: () => {} })
      t.after(() => reader.close())
      const from = (await reader.read('main', 0, { recordCountMax: 1_000, bytesMax: 1e9 })).nextOffset
      const behind = await reader.read('main', from, { recordCountMax: 1_000, bytesMax: 1e9 })
      assert.deepEqual(distinctIds(behind.records), ['person-60'])
      assert.deepEqual(behind.missing, { recordCount: 60 - from, fromOffset: from, toOffset: 60, file: aside })
    })
  }

  it('creates the next segment if the process died after completing the newest one', async t => {
    const folder = tempDir(t)
    await filledStream(t, folder)
    const newest = listSegments(join(folder, 'main')).at(-1)!
    const end = (await openedReader(t, folder).readStreamStatus('main', 0)).endOffset
    const db = new Database(newest.path)
    db.prepare('UPDATE segment SET next_offset = ?').run(end)
    db.close()
    const { writer } = await openedWriter(t, {}, folder)
    await writer.append('live', encodedEvents([aCapturedEvent(999)]))
    assert.equal(listSegments(join(folder, 'main')).at(-1)!.firstOffset, end)
    const stored = distinctIds(await readAll(openedReader(t, folder), 'main', 100))
    assert.deepEqual([stored.length, stored.at(-1)], [end + 1, 'person-999'])
  })

  it('removes the draft of a process that died while creating a segment', async t => {
    const folder = tempDir(t)
    await filledStream(t, folder)
    const [old, young] = ['old', 'young'].map(name => join(folder, 'main', `0000000000009999.db.${name}.draft`))
    for (const path of [old!, young!]) writeFileSync(path, '')
    utimesSync(old!, 1_000, 1_000)
    await openedWriter(t, {}, folder)
    assert.deepEqual([existsSync(old!), existsSync(young!)], [false, true])
  })

  it('leaves no side files when everything is closed', async t => {
    const folder = tempDir(t)
    await filledStream(t, folder)
    assert.deepEqual(
      readdirSync(join(folder, 'main')).filter(name => !name.endsWith('.db')),
      [],
    )
  })

  it('keeps a segment unchanged when a second process tries to create the same one', t => {
    const folder = tempDir(t)
    const one = createSegment(folder, 40)
    const db = new Database(one.path)
    db.prepare('UPDATE segment SET next_offset = 41').run()
    db.close()
    createSegment(folder, 40)
    const again = new Database(one.path)
    t.after(() => again.close())
    assert.equal(again.prepare('SELECT next_offset FROM segment').pluck().get(), 41)
    assert.deepEqual(
      listSegments(folder).map(segment => segment.firstOffset),
      [40],
    )
  })
})

function startThread(options: Pick<LogThreadOptions, 'folder' | 'busyTimeoutMs'>): Worker {
  const workerData: LogThreadOptions = {
    stream: 'main',
    traffic: 'live',
    firstOffset: 0,
    segmentBytesMax: 1e9,
    segmentAgeMs: Number.POSITIVE_INFINITY,
    logBytesMax: 1e9,
    minFreeBytes: 0,
    ...options,
  }
  return new Worker(new URL('./log-writer-thread.ts', import.meta.url), { workerData })
}

/** Acts as another process in the middle of a commit. */
function holdStream(t: TestContext, folder: string): { release: () => void } {
  const db = new Database(listSegments(join(folder, 'main')).at(-1)!.path)
  db.exec('BEGIN IMMEDIATE')
  const release = () => {
    if (db.open) db.exec('ROLLBACK').close()
  }
  t.after(release)
  return { release }
}

function frameCount(folder: string): unknown {
  const db = new Database(listSegments(join(folder, 'main')).at(-1)!.path)
  try {
    return db.prepare('SELECT count(*) FROM frames').pluck().get()
  } finally {
    db.close()
  }
}
