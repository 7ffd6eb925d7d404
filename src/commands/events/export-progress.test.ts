import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createExportProgress } from './export-progress.ts'

function run(
  isTerminal: boolean,
  rowCountMax: number | null,
  steps: readonly (readonly [ms: number, rows: number | null])[],
) {
  let nowMs = 0
  const written: string[] = []
  const progress = createExportProgress({
    write: text => void written.push(text),
    isTerminal,
    monotonicNowMs: () => nowMs,
    rowCountMax,
  })
  for (const [ms, rows] of steps) {
    nowMs = ms
    progress.show(rows, (rows ?? 1) * 1_024)
  }
  progress.end()
  return written
}

it('an export shows a bar with rate and time left on a terminal, at most ten times a second', () => {
  const shown = run(true, 4_000, [
    [0, 0],
    [50, 100],
    [10_000, 1_000],
  ])
  assert.deepEqual(shown, [
    '\r░░░░░░░░░░░░░░░░░░░░░░░░ 0 %, 0 of at most 4,000 rows, 0 bytes, 0 bytes/s\u001b[K',
    '\r██████░░░░░░░░░░░░░░░░░░ 25 %, 1,000 of at most 4,000 rows, 1000.0 KiB, 100.0 KiB/s, 0:30 left\u001b[K',
    '\r\u001b[K',
  ])
})

it('an export prints a line every ten seconds to a file or pipe', () => {
  const shown = run(false, null, [
    [9_999, 5],
    [10_000, 10],
    [15_000, 20],
    [20_000, 30],
  ])
  assert.deepEqual(shown, ['10 rows, 10.0 KiB, 1.0 KiB/s\n', '30 rows, 30.0 KiB, 1.5 KiB/s\n'])
})

it('the progress of an export shows no number of rows if they cannot be counted, as in Parquet', () => {
  assert.deepEqual(run(false, 4_000, [[10_000, null]]), ['1.0 KiB, 102 bytes/s\n'])
  assert.deepEqual(run(true, 4_000, [[10_000, null]])[0], '\r1.0 KiB, 102 bytes/s\u001b[K')
})
