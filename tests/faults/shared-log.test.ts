// Several processes share the log: they append to one stream, and one of them is killed.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { moveDamagedSegmentAside } from '#adapters/sqlite-log/move-damaged-segment.ts'
import { listSegments } from '#adapters/sqlite-log/segment-file.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { openSqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { PortError } from '#ports/port-error.ts'
import { distinctIds, readAll } from '../ports/event-log.contract.ts'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'
import { aCapturedEvent, encodedEvents } from '../support/values.ts'

describe('a stream that several processes append to', () => {
  it("every event is kept once and in its process's order, across several segments", async t => {
    const folder = tempDir(t)
    const share = 400
    const appenders = [0, 10_000, 20_000].map(first =>
      startAppender(folder, { first, count: share, callers: 1, segmentBytesMax: 200_000 }),
    )
    const reader = openSqliteLogReader({ folder })
    t.after(() => reader.close())
    // Reads concurrently, as a worker does.
    let seen: string[] = []
    const running = new Set(appenders)
    for (const appender of appenders) void appender.ended.then(() => running.delete(appender))
    while (running.size > 0) {
      seen = seen.concat(distinctIds(await readAll(reader, 'main', 100, seen.length)))
      await new Promise(resolve => setTimeout(resolve, 5))
    }
    seen = seen.concat(distinctIds(await readAll(reader, 'main', 100, seen.length)))
    for (const appender of appenders) assert.equal(appender.acknowledged.length, share, appender.complaints())
    for (const first of [0, 10_000, 20_000]) {
      assert.deepEqual(
        seen.map(id => Number(id.slice('person-'.length))).filter(n => n >= first && n < first + share),
        Array.from({ length: share }, (_, n) => first + n),
      )
    }
    assert.equal(seen.length, 3 * share)
    assert.ok(readdirSync(join(folder, 'main')).filter(name => name.endsWith('.db')).length > 3)
  })

  it('keeps every acknowledged event after a kill -9 of the process that accepted it', async t => {
    const folder = tempDir(t)
    let first = 0
    const acknowledged: number[] = []
    for (let round = 0; round < 3; round++) {
      const appender = startAppender(folder, { first, count: 1e9, callers: 16, segmentBytesMax: 200_000 })
      await eventually(() => appender.acknowledged.length > 150 * (round + 1), { what: 'appending' })
      appender.child.kill('SIGKILL')
      await appender.ended
      acknowledged.push(...appender.acknowledged)
      first += 1_000_000
    }
    const writer = await openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 2 ** 40 })
    await writer.append('live', encodedEvents([aCapturedEvent(7_000_000)]))
    await writer.close()
    const reader = openSqliteLogReader({ folder })
    t.after(() => reader.close())
    const stored = distinctIds(await readAll(reader, 'main', 500))
    assert.equal(new Set(stored).size, stored.length, 'nothing twice')
    const missing = acknowledged.filter(n => !stored.includes(`person-${n}`))
    assert.deepEqual(missing, [])
    assert.equal(stored.at(-1), 'person-7000000')
  })
})

describe('a stream of a small log that two fronts share', () => {
  for (const how of ['completed', 'set aside as damaged'] as const) {
    it(`keeps what an idle front appends after the segment it had open was ${how} and deleted for space`, async t => {
      const folder = tempDir(t)
      const limits = { logBytesMax: 4_000_000, segmentBytesMax: 300_000 }
      const lost: object[] = []
      const complaints: unknown[] = []
      const logger = {
        error: (...line: unknown[]) => complaints.push(line),
        warn: (...line: unknown[]) => lost.push(line),
      }
      const open = async () => {
        const writer = await openSqliteLogWriter({ folder, nowMs: Date.now, ...limits, logger })
        t.after(() => writer.close())
        return writer
      }
      const [idle, busy] = [await open(), await open()]
      const reader = openSqliteLogReader({ folder, ...limits, onDamage: () => undefined })
      t.after(() => reader.close())
      const streamFolder = join(folder, 'main')
      const acknowledged: string[] = []
      const processed: string[] = []
      let [next, position] = [0, 0]
      const append = async (writer: typeof idle, bytes: number) => {
        const propertiesJson = JSON.stringify({ pad: 'x'.repeat(bytes) })
        const event = aCapturedEvent(next++, { propertiesJson })
        await writer.append('live', encodedEvents([event]))
        acknowledged.push(event.distinctId)
        return true
      }
      const process = async () => {
        for (;;) {
          const chunk = await reader.read('main', position, { recordCountMax: 100, bytesMax: 1_000_000 })
          assert.equal(chunk.missing, null)
          if (chunk.records.length === 0) return
          processed.push(...distinctIds(chunk.records))
          position = chunk.nextOffset
        }
      }
      for (let round = 0; round < 3; round++) {
        await append(idle, 10)
        const opened = listSegments(streamFolder).at(-1)!
        if (how === 'set aside as damaged') moveDamagedSegmentAside(opened)
        const isThere = () => listSegments(streamFolder).some(({ firstOffset }) => firstOffset === opened.firstOffset)
        while (isThere()) {
          // Checks for space at most five times a second, and answers "retry" until then.
          const taken = await eventually(() => append(busy, 60_000).catch(otherThanFull))
          assert.equal(taken, true)
          await process()
          await reader.reclaimSpace({ main: position, historical: 0 })
        }
      }
      await append(idle, 10)
      await process()
      assert.deepEqual(processed, acknowledged)
      assert.deepEqual([idle.getCondition(), busy.getCondition()], [{ state: 'ok' }, { state: 'ok' }])
      assert.deepEqual([await reader.listLosses(), lost, complaints], [[], [], []])
    })
  }
})

function otherThanFull(error: unknown): unknown {
  return error instanceof PortError && error.code === 'full' ? false : error
}

interface Appender {
  readonly child: ChildProcess
  readonly acknowledged: number[]
  readonly ended: Promise<void>
  readonly complaints: () => string
}

function startAppender(
  folder: string,
  options: { first: number; count: number; callers: number; segmentBytesMax: number },
): Appender {
  const script = new URL('../support/append-to-log.ts', import.meta.url).pathname
  const { first, count, callers, segmentBytesMax } = options
  const args = [script, folder, ...[first, count, callers, segmentBytesMax].map(String)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const acknowledged: number[] = []
  const complaints = collectText(child.stderr)
  createInterface({ input: child.stdout }).on('line', line => acknowledged.push(Number(line)))
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  return { child, acknowledged, ended, complaints }
}
