import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatJobName, ProgressReporter } from './service-job.ts'

describe('progress reports to the service', () => {
  it('are sent every ten seconds, but not while an earlier report is still being sent', async () => {
    let nowMs = 0
    let answer: (() => void) | null = null
    const reported: number[] = []
    const reporter = new ProgressReporter(
      () => {
        reported.push(nowMs)
        return new Promise<void>(resolve => {
          answer = resolve
        })
      },
      () => nowMs,
    )
    for (; nowMs <= 25_000; nowMs += 1_000) reporter.moved()
    assert.deepEqual(reported, [10_000])
    answer!()
    await reporter.ended()
    reporter.moved()
    assert.deepEqual(reported, [10_000, 26_000])
    answer!()
  })

  it('continue after a report fails', async () => {
    let nowMs = 0
    let count = 0
    const reporter = new ProgressReporter(
      async () => {
        count++
        throw new Error('away')
      },
      () => nowMs,
    )
    for (nowMs = 10_000; nowMs <= 20_000; nowMs += 10_000) {
      reporter.moved()
      await reporter.ended()
    }
    assert.equal(count, 2)
  })
})

it('a job is named after its source and its range of days, if it has any events', () => {
  const day = '2024-05-01T12:00:00.000Z'
  assert.equal(
    formatJobName('mixpanel', { first: day, last: '2024-05-31T00:00:00.000Z' }),
    'mixpanel 2024-05-01 to 2024-05-31',
  )
  assert.equal(formatJobName('mixpanel', { first: day, last: day }), 'mixpanel 2024-05-01')
  assert.equal(formatJobName('amplitude', null), 'amplitude without events')
})
