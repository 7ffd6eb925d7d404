import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import { listSources } from '#importer/sources/sources.ts'
import { describeRejectShare, formatSufficientRejectShare, OtherSourceDetector } from './rejects.ts'

const path = new URL('../../../../tests/conformance/import-vectors.json', import.meta.url)
const { vectors } = parseJson(readFileSync(path, 'utf8')) as unknown as {
  readonly vectors: readonly { readonly source: string; readonly input: JsonObject; readonly config?: JsonObject }[]
}

describe('records rejected under a wrong source', () => {
  for (const name of ['amplitude', 'mixpanel', 'segment', 'ga4', 'posthog'])
    it(`are recognised as records of ${name}`, () => {
      const others = new OtherSourceDetector(
        listSources().filter(source => source.name !== 'matomo'),
        Date.UTC(2026, 0, 15),
      )
      const inputs = vectors.filter(({ source, config, input }) => source === name && !config && !Array.isArray(input))
      assert.ok(inputs.length > 0)
      for (const { input } of inputs) others.add(rejected(JSON.stringify(input)), null)
      assert.equal(others.likely(), name)
    })

  it('are not attributed to any source if none can convert them', () => {
    const others = new OtherSourceDetector(listSources(), Date.UTC(2026, 0, 15))
    for (const text of ['{"a":1}', 'broken', '[1]']) others.add(rejected(text), null)
    assert.equal(others.likely(), null)
  })
})

it('the share of rejects is shown as 0 % or 100 % only if it is exactly 0 % or 100 %', () => {
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

it('the suggested limit is above the share of rejects', () => {
  for (const [rejected, read, share] of [
    [11, 1_000, '2%'],
    [51, 1_000, '6%'],
    [100_001, 1_000_000, '11%'],
    // Where nothing was accepted, only 100% is enough.
    [7, 7, '100%'],
  ] as const)
    assert.equal(formatSufficientRejectShare(rejected, read), share)
})

function rejected(text: string): StagedOutcome {
  return {
    ...{ line: 1, raw: { object: 'raw', line: 1, byte: 0 }, textBytes: text.length },
    source: () => ({ text, sha256: '', unreadableBytes: null }),
    result: { kind: 'rejected', reason: 'event_missing', field: null },
  }
}
