import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeRejectShare } from './reject-share.ts'

it('the share of rejects is shown as 0 % or 100 % only if it is exactly that', () => {
  const cases: [rejected: number, read: number, words: string][] = [
    [0, 1_000_000, '0.0 %'],
    [38, 1_000_000, '0.004 %'],
    [38, 100_000, '0.04 %'],
    [38, 1_000, '3.8 %'],
    [38, 100, '38 %'],
    [999_962, 1_000_000, '99.996 %'],
    [38, 38, '100 %'],
  ]
  for (const [rejected, read, words] of cases)
    assert.equal(
      describeRejectShare(rejected / read, 0.0004),
      `${words} of the records are rejected; the job pauses above 0.04 % (--max-reject-share) and 5 records.`,
    )
})
