import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { flagHash01, holdoutHash01 } from '#core/flags/evaluation/rollout.ts'
import { sha1Hex, sha1Top60 } from '#core/flags/evaluation/sha1.ts'

interface HashVector {
  readonly id: string
  readonly layout: string
  readonly key?: string
  readonly identifier: string
  readonly salt?: '' | 'variant'
  readonly hashed_text: string | null
  readonly sha1: string | null
  readonly first_15_hex: string | null
  readonly value: number
}

const file = new URL('./evaluation-vectors.json', import.meta.url)
const { hash_vectors: vectors } = JSON.parse(readFileSync(file, 'utf8')) as { hash_vectors: HashVector[] }

describe('hash vectors', () => {
  for (const vector of vectors) {
    it(`${vector.id}: ${vector.layout} gives the same double`, () => {
      const isHoldout = vector.layout.startsWith('holdout')
      const hash01 = isHoldout
        ? holdoutHash01(vector.identifier)
        : flagHash01(vector.key ?? '', vector.identifier, vector.salt ?? '')
      assert.equal(hash01, vector.value)
      if (vector.hashed_text === null || vector.sha1 === null || vector.first_15_hex === null) return
      assert.equal(sha1Hex(vector.hashed_text), vector.sha1)
      assert.equal(sha1Top60(vector.hashed_text), Number(BigInt(`0x${vector.first_15_hex}`)))
    })
  }
})
