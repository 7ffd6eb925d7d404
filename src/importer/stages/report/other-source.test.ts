import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { StagedOutcome } from '#importer/job/staged-part.ts'
import { listSources } from '#importer/sources/sources.ts'
import { OtherSource } from './other-source.ts'

const path = new URL('../../../../tests/conformance/import-vectors.json', import.meta.url)
const { vectors } = parseJson(readFileSync(path, 'utf8')) as unknown as {
  readonly vectors: readonly { readonly source: string; readonly input: JsonObject; readonly config?: JsonObject }[]
}

describe('records rejected under a wrong source', () => {
  for (const name of ['amplitude', 'mixpanel', 'segment', 'ga4', 'posthog'])
    it(`are recognised as records of ${name}`, () => {
      const others = new OtherSource(
        listSources().filter(source => source.name !== 'matomo'),
        Date.UTC(2026, 0, 15),
      )
      const inputs = vectors.filter(({ source, config, input }) => source === name && !config && !Array.isArray(input))
      assert.ok(inputs.length > 0)
      for (const { input } of inputs) others.add(rejected(JSON.stringify(input)), null)
      assert.equal(others.likely(), name)
    })

  it('are not attributed to any source if none can convert them', () => {
    const others = new OtherSource(listSources(), Date.UTC(2026, 0, 15))
    for (const text of ['{"a":1}', 'broken', '[1]']) others.add(rejected(text), null)
    assert.equal(others.likely(), null)
  })
})

function rejected(text: string): StagedOutcome {
  return {
    ...{ line: 1, byteEnd: text.length, raw: { object: 'raw', line: 1, byte: 0 }, text, sourceSha256: () => '' },
    result: { kind: 'rejected', reason: 'event_missing', field: null },
  }
}
