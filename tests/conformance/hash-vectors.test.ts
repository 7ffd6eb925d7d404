import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type HashVector, hashDifferences } from './forms/hash.ts'
import { passing, wrongVersions } from './wrong-versions.ts'

const vectors = ['evaluation', 'wire-2026'].flatMap(name => {
  const text = readFileSync(new URL(`./${name}-vectors.json`, import.meta.url), 'utf8')
  return (JSON.parse(text) as { hash_vectors: HashVector[] }).hash_vectors
})

describe('hash test vectors', () => {
  for (const vector of vectors)
    it(`${vector.id} gives the same digest and the same double`, () => assert.deepEqual(hashDifferences(vector), []))

  it('fail if any of their expectations is changed', async () => {
    for (const { hashed_text, sha1, first_15_hex, value, ...vector } of vectors) {
      const wrong = wrongVersions({ hashed_text, sha1, first_15_hex, value })
      const versions = wrong.map(version => ({ ...vector, ...version }))
      assert.deepEqual(await passing(versions, hashDifferences), [], vector.id)
    }
  })
})
