import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { it, type TestContext } from 'node:test'
import type { LogLoss } from '#ports/log/event-log.ts'
import { openedReader } from '../../../tests/support/sqlite-log-files.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { LostRecords, lostRecordsFile } from './lost-records.ts'

it('the list of lost records stores thousands of losses in one write, without repeats', async t => {
  const folder = tempDir(t)
  const reader = openedReader(t, folder)
  const losses = Array.from(
    { length: 5_000 },
    (_, n): LogLoss => ({
      ...{ stream: n % 2 === 0 ? 'main' : 'historical', fromOffset: n, toOffset: n + 1 },
      ...{ file: null, noticedAtMs: 1_790_000_000_000, body: 'x'.repeat(500) },
    }),
  )
  await reader.recordLosses(...losses.slice(0, 3_000))
  await reader.recordLosses(...losses.slice(2_000))
  const { size } = statSync(join(folder, lostRecordsFile))
  await reader.recordLosses(...losses)
  assert.deepEqual(await reader.listLosses(), losses)
  assert.equal(statSync(join(folder, lostRecordsFile)).size, size)
})

it('the list of lost records counts records without reading the file again until it changes', async t => {
  const folder = tempDir(t)
  const reader = openedReader(t, folder)
  await reader.recordLosses(...lossesOf('main', 0, 2_000))
  assert.equal(await reader.countLostRecords(), 2_000)
  const parses = parsesDuring(t)
  for (let probe = 0; probe < 5; probe++) assert.equal(await reader.countLostRecords(), 2_000)
  assert.equal(parses(), 0)

  appendFileSync(
    join(folder, lostRecordsFile),
    '{"lane":"main","fromOffset":5000,"toOffset":5003,"file":null,"noticedAtMs":1790000000000}\n',
  )
  assert.deepEqual([await reader.countLostRecords(), await reader.countLostRecords()], [2_003, 2_003])
  assert.equal(parses(), 2_001 + 1, 'each line once, and the empty one behind the last')
  rmSync(join(folder, lostRecordsFile))
  assert.equal(await reader.countLostRecords(), 0)
})

it('the list of lost records is bounded: the newest losses in full and older ones as totals, without repeats', t => {
  const folder = tempDir(t)
  const bytesMax = 20_000
  const lost = new LostRecords(folder, bytesMax)
  const size = () => statSync(join(folder, lostRecordsFile)).size
  for (let round = 0; round < 40; round++) {
    const losses = [...lossesOf('main', round * 20, 10), loss('historical', round * 2, round * 2 + 2)]
    lost.keep(losses)
    lost.keep(losses) // as after a crash
    assert.ok(size() <= bytesMax, `${size()} bytes`)
    assert.equal(lost.count(), (round + 1) * 12)
  }
  const [main, historical, ...newest] = lost.list()
  assert.deepEqual([main!.stream, main!.fromOffset], ['main', 0])
  assert.deepEqual([historical!.stream, historical!.fromOffset], ['historical', 0])
  assert.ok(main!.toOffset <= newest.find(({ stream }) => stream === 'main')!.fromOffset)
  assert.equal(newest.at(-1)!.toOffset, 80)
  assert.ok(newest.every(({ recordCount }) => recordCount === undefined))
  assert.deepEqual(readdirSync(folder), [lostRecordsFile])
})

it('the list of lost records adds up, in one write, the losses that do not fit into it', t => {
  const lost = new LostRecords(tempDir(t), 20_000)
  lost.keep(lossesOf('main', 0, 10_000))
  assert.equal(lost.count(), 10_000)
  const [sum, next] = lost.list()
  assert.deepEqual([sum!.fromOffset, sum!.toOffset, sum!.recordCount], [0, next!.fromOffset, next!.fromOffset])
})

function loss(stream: LogLoss['stream'], fromOffset: number, toOffset: number): LogLoss {
  return { stream, fromOffset, toOffset, file: null, noticedAtMs: 1_790_000_000_000 }
}

function lossesOf(stream: LogLoss['stream'], fromOffset: number, count: number): LogLoss[] {
  return Array.from({ length: count }, (_, n) => loss(stream, fromOffset + n, fromOffset + n + 1))
}

/** Counts the lines parsed from now on. */
function parsesDuring(t: TestContext): () => number {
  const parse = t.mock.method(JSON, 'parse')
  return () => parse.mock.callCount()
}
