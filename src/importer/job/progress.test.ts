import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ProgressTracker } from './progress.ts'

function prepare(nowMs = 0) {
  const clock = { ms: nowMs }
  return { clock, tracker: new ProgressTracker({ nowMs: () => clock.ms, say: () => {} }) }
}

describe('the progress figures', () => {
  it('give the rate of the last ten seconds, the mean rate and the remaining time', () => {
    const { clock, tracker } = prepare(1_000)
    tracker.begin('scan', { records: 10_000 })
    for (let second = 0; second < 20; second++) {
      clock.ms += 1_000
      tracker.add({ records: second < 10 ? 100 : 300 })
      tracker.figures()
    }
    const { recordsDone, recordsPerSecond, meanRecordsPerSecond, etaSeconds } = tracker.figures()
    assert.deepEqual(
      { recordsDone, recordsPerSecond, meanRecordsPerSecond, etaSeconds },
      { recordsDone: 4_000, recordsPerSecond: 300, meanRecordsPerSecond: 200, etaSeconds: 30 },
    )
  })

  it('estimate the remaining time by bytes when the number of records is unknown', () => {
    const { clock, tracker } = prepare()
    tracker.begin('stage', { bytes: 4_000 })
    assert.equal(tracker.figures().etaSeconds, null)
    clock.ms = 5_000
    tracker.add({ records: 1, bytes: 1_000 })
    assert.equal(tracker.figures().etaSeconds, 15)
  })

  it('count work of an earlier run towards the total, but not towards the rate', () => {
    const { clock, tracker } = prepare(1_000)
    tracker.begin('send', { records: 10_000 })
    tracker.add({ records: 8_000, isEarlier: true })
    assert.equal(tracker.figures().etaSeconds, null, 'the rate is not known yet')
    clock.ms += 5_000
    tracker.add({ records: 500 })
    const { recordsDone, recordsPerSecond, meanRecordsPerSecond, etaSeconds } = tracker.figures()
    assert.deepEqual(
      { recordsDone, recordsPerSecond, meanRecordsPerSecond, etaSeconds },
      { recordsDone: 8_500, recordsPerSecond: 100, meanRecordsPerSecond: 100, etaSeconds: 15 },
    )
    tracker.begin('stage', { bytes: 1_000 })
    tracker.add({ bytes: 500, isEarlier: true })
    clock.ms += 5_000
    tracker.add({ bytes: 250 })
    assert.equal(tracker.figures().etaSeconds, 5)
  })

  it('give no remaining time until 5 s and 1 % of the work, or one minute, have passed', () => {
    const { clock, tracker } = prepare()
    tracker.begin('send', { records: 100_000 })
    const etaAfter = (ms: number, records: number) => {
      clock.ms = ms
      tracker.add({ records })
      return tracker.figures().etaSeconds
    }
    assert.equal(etaAfter(1_000, 25), null)
    assert.equal(etaAfter(4_999, 1_975), null)
    assert.equal(etaAfter(5_000, 0), 245)
    tracker.begin('send', { records: 100_000 })
    assert.equal(etaAfter(15_000, 500), null, 'less than a hundredth')
    assert.equal(etaAfter(65_000, 0), 11_940, 'after a minute in any case')
  })

  it('start at zero with each stage, and include how the run ended', () => {
    const { tracker } = prepare()
    tracker.begin('stage', {})
    tracker.add({ records: 5, rejects: 2, retries: 1 })
    tracker.day('2024-05-01')
    tracker.waiting('source limit, 14 min')
    assert.deepEqual(tracker.figures().waiting, 'source limit, 14 min')
    tracker.begin('scan', {})
    const { stage, day, recordsDone, rejects, retries, waiting } = tracker.figures()
    assert.deepEqual([stage, day, recordsDone, rejects, retries, waiting], ['scan', null, 0, 0, 0, null])
    const ended = tracker.figures('paused', 'why')
    assert.deepEqual([ended.state, ended.message, ended.etaSeconds], ['paused', 'why', null])
  })
})
