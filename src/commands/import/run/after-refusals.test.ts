import assert from 'node:assert/strict'
import { it } from 'node:test'
import { parseShare } from '../plan/plan-options.ts'
import { describeStepAfterRefusals } from './after-refusals.ts'

it('the suggested limit is above the refused share, whatever the plan allowed', () => {
  for (const [refused, events, share] of [
    [11, 1_000, '2%'],
    [51, 1_000, '6%'],
    [100_001, 1_000_000, '11%'],
    // Where nothing was accepted, only 100% is enough.
    [7, 7, '100%'],
  ] as const) {
    const message = describeStepAfterRefusals({ refused, events }, 'job')
    assert.match(message, new RegExp(`pennon import run job --max-reject-share ${share}, pennon import approve job,`))
    assert.ok(parseShare(share, '--max-reject-share') >= refused / events)
  }
})
