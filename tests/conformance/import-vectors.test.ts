import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '#core/json.ts'
import { findSource } from '#importer/sources/sources.ts'
import { convertRecords } from '../support/convert-records.ts'
import { parseVectorFile } from './compare.ts'
import { type ImportVector, importCases } from './forms/imports.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

// The vectors of parsed records, without a process for each. The runner gives all of them to `pennon import convert`.
const text = readFileSync(new URL('./import-vectors.json', import.meta.url), 'utf8')
const file = parseVectorFile(text) as { vectors: (ImportVector & { title: string })[] }
const vectors = file.vectors.filter(({ input }) => typeof input !== 'string')

describe('import test vectors, without running the import command', () => {
  for (const vector of vectors)
    it(`${vector.id}: ${vector.title}`, async () => assert.deepEqual(await differences(vector), []))

  it('fail if any of their expectations is changed', async () => {
    const wrong = vectors.flatMap(vector =>
      [...wrongVersions(withoutOrigins(vector.expected))].map(expected => ({ ...vector, expected })),
    )
    assert.ok(wrong.length > 500)
    assert.deepEqual(await passing(wrong, differences), [])
  })
})

async function differences(vector: ImportVector): Promise<readonly string[]> {
  const [only] = importCases([vector], convert)
  return await only!.run(null as never)
}

function convert({ source, input, config = {} }: ImportVector): string[] {
  const [record, settings] = [input, config].map(each => parseJson(JSON.stringify(each)) as JsonObject)
  return convertRecords(findSource(source)!, [record!], settings).map(outcome => {
    if ('events' in outcome) return JSON.stringify({ events: outcome.events })
    return JSON.stringify(outcome)
  })
}

/** Without `uuid_from`, which explains how each uuid is derived: its wording is not compared. */
function withoutOrigins(expected: ImportVector['expected']): ImportVector['expected'] {
  const events = expected.events?.map(({ uuid_from: _, ...event }) => event)
  return events === undefined ? expected : { events }
}
