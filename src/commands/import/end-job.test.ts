import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createStepReporter } from './end-job.ts'

describe('the lines printed while the service publishes an import', () => {
  it('show each step once, and again every 30 s while it lasts', () => {
    const lines: string[] = []
    let seconds = 0
    const report = createStepReporter('publish', {
      nowMs: () => seconds * 1_000,
      say: line => lines.push(`${seconds} ${line}`),
    })
    const stepAt = (second: number) => (second < 5 ? 'links' : second < 80 ? 'persons' : second < 82 ? null : 'rows')
    for (; seconds < 90; seconds++) report(stepAt(seconds))
    assert.deepEqual(lines, [
      '0 publish: linking persons',
      '5 publish: merging person properties',
      '35 publish: still merging person properties, after 30 s',
      '65 publish: still merging person properties, after 1 min',
      '82 publish: making the events visible',
    ])
  })
})
