import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { parseVectorFile } from './compare.ts'
import { listsAll } from './conformance-suite.ts'
import { type IngestionMeta, type IngestionVector, ingestionCases } from './forms/ingestion.ts'
import { memoryInstances } from './memory-instance.ts'
import { storedDataFields } from './stored-data.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

// Runs every vector of ingestion without an event store, a database or another process. `vectors.ci.ts` runs them on
// whole instances.

const text = readFileSync(new URL('./ingestion-vectors.json', import.meta.url), 'utf8')
const file = parseVectorFile(text) as { meta: IngestionMeta; vectors: (IngestionVector & { description: string })[] }

describe('ingestion test vectors, in memory', () => {
  for (const vector of file.vectors) {
    it(`${vector.id}: ${vector.description}`, async t => assert.deepEqual(await differences(t, vector), []))
  }

  // All wrong versions would take most of a minute; every eleventh covers each field.
  it('fail if any of their expectations is changed', async t => {
    const wrong = file.vectors.flatMap(vector => [...wrongVectors(vector)]).filter((_, index) => index % 11 === 0)
    assert.ok(wrong.length > 100)
    assert.deepEqual(await passing(wrong, version => differences(t, version)), [])
  })
})

/** A vector with another expectation of an answer or of stored data, or with a field that the form does not have. */
function* wrongVectors(vector: IngestionVector): Generator<IngestionVector> {
  yield { ...vector, unknown_field: 1 }
  const { steps = [] } = vector
  for (const [index, step] of steps.entries())
    for (const expect of wrongVersions(step.expect ?? {}))
      yield { ...vector, steps: steps.with(index, { ...step, expect }) }
  for (const name of ['expect', ...storedDataFields].filter(name => Object.hasOwn(vector, name)))
    for (const wrong of wrongVersions(vector[name])) yield { ...vector, [name]: wrong }
}

async function differences(t: TestContext, vector: IngestionVector): Promise<readonly string[]> {
  const [only] = ingestionCases([vector], file.meta, listsAll)
  return only!.run(memoryInstances(t))
}
