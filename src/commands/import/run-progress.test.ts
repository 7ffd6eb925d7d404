import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProgressFigures } from '#importer/job/progress-figures.ts'
import { progressLine } from './run-progress.ts'

const figures: ProgressFigures = {
  ...{ v: 1, pid: 7, state: 'running', message: null, startedAt: '', updatedAt: '', stage: 'send', day: '2024-05-03' },
  ...{ recordsDone: 8_200, recordsTotal: 10_000, bytesDone: 0, bytesTotal: null, rejects: 0, retries: 2 },
  ...{ waiting: 'no connection to http://x, 8 s', recordsPerSecond: 100, meanRecordsPerSecond: 90, etaSeconds: 18 },
}

describe('the line of progress', () => {
  it('says the stage, how far it is, how fast, what it waits for, and how long', () => {
    assert.equal(
      progressLine(figures),
      'send 2024-05-03, 8,200 of 10,000 records, 100/s (mean 90), 2 retries, waiting: no connection to http://x, 8 s, 18 s left',
    )
  })

  it('counts parts while files are fetched', () => {
    const fetching = { ...figures, stage: 'fetch', day: null, recordsDone: 3, recordsTotal: 31, waiting: null } as const
    assert.match(progressLine(fetching), /^fetch, 3 of 31 parts, 2 retries, 18 s left$/)
  })
})
