import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { measureTextWidth } from '#commands/client/text-width.ts'
import { JobFolder } from '#importer/job/job-folder.ts'
import type { ProgressFigures } from '#importer/job/progress.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import { createRunProgress, formatProgressLine } from './run-progress.ts'

const figures: ProgressFigures = {
  ...{ v: 1, pid: 7, state: 'running', message: null, startedAt: '', updatedAt: '', stage: 'send', day: '2024-05-03' },
  ...{ recordsDone: 8_200, recordsTotal: 10_000, bytesDone: 0, bytesTotal: null, rejects: 0, retries: 2 },
  ...{ waiting: 'no connection to http://x, 8 s', recordsPerSecond: 100, meanRecordsPerSecond: 90, etaSeconds: 18 },
}

describe('the progress line', () => {
  it('shows the stage, what it waits for, the time left, the counts and the pace', () => {
    assert.equal(
      formatProgressLine(figures),
      'send (1 of 2) 2024-05-03, waiting: no connection to http://x, 8 s, 18 s left, 8,200 of 10,000 records, 100/s (mean 90), 2 retries',
    )
  })

  it('counts groups and links separately from records', () => {
    const counts = { recordsDone: 10, recordsTotal: 149, unit: 'groups and links' } as const
    assert.match(
      formatProgressLine({ ...figures, ...counts, day: null, waiting: null }),
      /^send \(1 of 2\), 10 of 149 groups and links, 100\/s/,
    )
  })

  it('counts parts while files are fetched', () => {
    const fetching = { ...figures, stage: 'fetch', day: null, recordsDone: 3, recordsTotal: 31, waiting: null } as const
    assert.match(formatProgressLine(fetching), /^fetch, 3 of 31 parts, 2 retries, 18 s left$/)
  })

  it('is printed every ten seconds without a terminal, and as JSON for programs', t => {
    for (const isJson of [false, true]) {
      const shown = aDisplay(t, { width: null, isJson })
      shown.tracker.begin('scan', { records: 1_000 })
      shown.tracker.add({ records: 500, retries: 1 })
      for (let second = 0; second < 20; second++) t.mock.timers.tick(1_000)
      shown.tracker.say('A warning.')
      shown.end('done', null)
      const lines = shown.written.trimEnd().split('\n')
      if (isJson) {
        const printed = lines.filter(line => line !== 'A warning.').map(line => JSON.parse(line) as ProgressFigures)
        assert.deepEqual(
          printed.map(({ state, recordsDone }) => `${state} ${recordsDone}`),
          ['running 500', 'running 500', 'done 500'],
        )
      } else {
        assert.deepEqual([lines.length, lines[2]], [3, 'A warning.'])
        assert.match(lines[0]!, /^scan \(2 of 3\), 500 of 1,000 records, \d+\/s \(mean 50\), 1 retry, 10 s left$/)
      }
      t.mock.timers.reset()
    }
  })

  it('follows a progress bar on a terminal if the total is known', t => {
    const shown = aDisplay(t, { width: 100 })
    shown.tracker.begin('stage', { bytes: 400 })
    shown.tracker.add({ records: 5, bytes: 100 })
    t.mock.timers.tick(1_000)
    assert.match(shown.written, /^\r█████░░░░░░░░░░░░░░░ 25 %, stage \(1 of 3\), 5 records, 100 bytes of 400 bytes,/)
    shown.written = ''
    shown.tracker.begin('verify', {})
    t.mock.timers.tick(1_000)
    assert.match(shown.written, /^\rverify \(2 of 2\), 0 records,/)
    shown.end('done', null)
  })

  it('fits the terminal after a resize', t => {
    const shown = aDisplay(t, { width: 100 })
    shown.tracker.begin('stage', { bytes: 400 })
    shown.width = 30
    t.mock.timers.tick(1_000)
    assert.equal(measureTextWidth(shown.written.slice(1, -3)), 29)
    shown.end('done', null)
  })
})

/** Time passes only by ticks of the mocked timers. */
function aDisplay(t: TestContext, { width, isJson = false }: { width: number | null; isJson?: boolean }) {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'] })
  const shown = { written: '', width }
  const write = (text: string) => {
    shown.written += text
  }
  const display = createRunProgress({ folder: new JobFolder(tempDir(t)), write, width: () => shown.width, isJson })
  return Object.assign(shown, display)
}
