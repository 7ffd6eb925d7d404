import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { JobFolder } from '#importer/job/job-folder.ts'
import { writeJobState } from '#importer/job/job-state.ts'
import type { StagedOutcome, StagedPart } from '#importer/job/staged-part.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { createCheckpoint, createPartProgress } from './checkpoint.ts'
import { collectRetryOutcomes, readRetryOutcomes, storeRetryOutcomes, sumRetryOutcomes } from './retry-outcomes.ts'
import type { SentJob } from './sent-events.ts'

type Tried = readonly [text: string, result: 'sent' | 'rejected']

const reject = (line: number, source: string, byte = 100 * line): string =>
  JSON.stringify({
    object: 'raw.jsonl',
    line,
    byte,
    reason: 'json_syntax',
    adapter: 'generic',
    source_sha256: 'x',
    source,
  })

/** A retry of a file whose lines are all committed. */
function retryOf(t: TestContext, day: number, file: string, tried: readonly Tried[]): SentJob {
  const folder = new JobFolder(tempDir(t))
  writeJobState(folder, 'origin', file)
  const part: StagedPart = {
    ...{ id: `retry/${day}`, sha256: '', bytes: 0 },
    ...{ records: tried.length, firstUs: null, lastUs: null },
  }
  const identity = { jobId: 'j', serviceJobId: '7', target: '', project: '', mappingSha256: '' }
  const checkpoint = createCheckpoint(identity, `2026-01-0${day}T00:00:00Z`)
  const progress = createPartProgress(part.id, '')
  progress.counts.read = tried.length
  checkpoint.parts.push(progress)
  const outcomes = tried.map(([text, kind], index): StagedOutcome => {
    const event = { uuid: `u-${text}` } as ImportedEvent
    return {
      ...{ line: index + 1, raw: { object: 'records.jsonl', line: index + 1, byte: 0 }, textBytes: text.length },
      source: () => ({ text, sha256: '', unreadableBytes: null }),
      result:
        kind === 'sent'
          ? { kind: 'events', events: [event], notes: [], dropped: [] }
          : { kind: 'rejected', reason: 'json_syntax', field: null },
    }
  })
  const job = {
    parts: [part],
    async *readPart() {
      yield* outcomes
    },
  }
  return { folder, job, checkpoint }
}

describe('records repaired in several retries', () => {
  it('count once each: as sent if any retry sent them, otherwise with the outcome of the last retry', async t => {
    const first = retryOf(t, 1, 'a', [
      [reject(1, 'good'), 'sent'],
      [reject(2, 'bad'), 'rejected'],
      [reject(3, 'bad'), 'rejected'],
    ])
    const second = retryOf(t, 2, 'b', [
      [reject(1, 'spoiled'), 'rejected'],
      [reject(2, 'good'), 'sent'],
      [reject(3, 'still bad'), 'rejected'],
    ])
    // In any order, since folders of retries are named by hashes.
    const outcomes = await collectRetryOutcomes([second, first])
    assert.deepEqual(sumRetryOutcomes(outcomes), { read: 3, sent: 2, refused: 0, rejected: 1, skipped: 0 })
    assert.equal(outcomes.get('raw.jsonl:1:100')?.kind, 'sent')
  })

  it('count separately if they are in one line of a JSON array', async t => {
    const only = retryOf(t, 1, 'a', [
      [reject(1, 'good', 1), 'sent'],
      [reject(1, 'also good', 40), 'sent'],
      [reject(1, 'bad', 80), 'rejected'],
    ])
    const outcomes = await collectRetryOutcomes([only])
    assert.deepEqual(sumRetryOutcomes(outcomes), { read: 3, sent: 2, refused: 0, rejected: 1, skipped: 0 })
  })

  it('count by the latest version of a repaired file in which whole records were repaired', async t => {
    const first = retryOf(t, 1, 'a', [
      ['{"n":1}', 'sent'],
      ['{"n":', 'rejected'],
    ])
    const second = retryOf(t, 2, 'a', [
      ['{"n":1}', 'sent'],
      ['{"n":2}', 'sent'],
    ])
    const outcomes = await collectRetryOutcomes([first, second])
    assert.deepEqual(sumRetryOutcomes(outcomes), { read: 2, sent: 2, refused: 0, rejected: 0, skipped: 0 })
  })

  it('have their outcomes stored for commands that only read the folder', async t => {
    const folder = new JobFolder(tempDir(t))
    assert.equal(readRetryOutcomes(folder).size, 0)
    const outcomes = await collectRetryOutcomes([retryOf(t, 1, 'a', [[reject(9, 'good'), 'sent']])])
    storeRetryOutcomes(folder, outcomes)
    assert.deepEqual(readRetryOutcomes(folder), outcomes)
  })
})
