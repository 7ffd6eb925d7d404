import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { jobName } from './service-job.ts'
import { ToldProgress } from './told-progress.ts'

describe('what the service is told while an import is sent', () => {
  it('comes every ten seconds, and not while it is being told', async () => {
    let nowMs = 0
    let answer: (() => void) | null = null
    const tolds: number[] = []
    const told = new ToldProgress(
      () => {
        tolds.push(nowMs)
        return new Promise<void>(resolve => {
          answer = resolve
        })
      },
      () => nowMs,
    )
    for (; nowMs <= 25_000; nowMs += 1_000) told.moved()
    assert.deepEqual(tolds, [10_000])
    answer!()
    await told.ended()
    told.moved()
    assert.deepEqual(tolds, [10_000, 26_000])
    answer!()
  })

  it('ends nothing when it fails', async () => {
    let nowMs = 0
    let count = 0
    const told = new ToldProgress(
      async () => {
        count++
        throw new Error('away')
      },
      () => nowMs,
    )
    for (nowMs = 10_000; nowMs <= 20_000; nowMs += 10_000) {
      told.moved()
      await told.ended()
    }
    assert.equal(count, 2)
  })
})

it('a job is called by its source and its days, also when it has none', () => {
  const day = '2024-05-01T12:00:00.000Z'
  assert.equal(
    jobName('mixpanel', { first: day, last: '2024-05-31T00:00:00.000Z' }),
    'mixpanel 2024-05-01 to 2024-05-31',
  )
  assert.equal(jobName('mixpanel', { first: day, last: day }), 'mixpanel 2024-05-01')
  assert.equal(jobName('amplitude', null), 'amplitude without events')
})
