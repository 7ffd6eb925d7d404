// `hash_vectors`: the text that is hashed, its digest and its point on the unit line, through the core's own functions.

import { createHash } from 'node:crypto'
import { computeFlagHash01, computeHoldoutHash01 } from '#core/flags/rollout/rollout.ts'
import { sha1Top60 } from '#core/flags/rollout/sha1.ts'
import { assertKnownVectorFields, CannotRun, exactDifferences, type Fields } from '../compare.ts'
import type { VectorCase } from '../vector-case.ts'

export interface HashVector extends Fields {
  readonly id: string
  /** Which parts the text is made of. */
  readonly layout: string
  readonly key: string | null
  readonly identifier: string
  readonly salt: '' | 'variant'
  readonly hashed_text: string | null
  readonly sha1: string | null
  readonly first_15_hex: string | null
  readonly value: number
}

export function hashCases(vectors: readonly HashVector[]): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: () => hashDifferences(vector) }))
}

export function hashDifferences(vector: HashVector): string[] {
  const fields = ['layout', 'key', 'identifier', 'salt', 'hashed_text', 'sha1', 'first_15_hex', 'value']
  assertKnownVectorFields(vector, fields)
  const { text, value } = computed(vector)
  const digest = text === null ? null : createHash('sha1').update(text).digest('hex')
  const top60 = digest?.slice(0, 15) ?? null
  return [
    ...exactDifferences(vector.hashed_text, text, 'hashed_text'),
    ...exactDifferences(vector.sha1, digest, 'sha1'),
    ...exactDifferences(vector.first_15_hex, top60, 'first_15_hex'),
    ...exactDifferences(
      top60 === null ? null : Number(BigInt(`0x${top60}`)),
      text === null ? null : sha1Top60(text),
      'the first 60 bits',
    ),
    ...exactDifferences(vector.value, value, 'value'),
  ]
}

function computed({ layout, key, identifier, salt }: HashVector): { text: string | null; value: number } {
  switch (layout) {
    case 'key.identifier+salt':
      return { text: `${key}.${identifier}${salt}`, value: computeFlagHash01(key!, identifier, salt) }
    case 'empty identifier':
      return { text: null, value: computeFlagHash01(key!, identifier, salt) }
    case 'holdout-identifier':
      return { text: `holdout-${identifier}`, value: computeHoldoutHash01(identifier) }
    case 'seed+identifier':
      return { text: `${key}${identifier}`, value: sha1Top60(key!, identifier) / 2 ** 60 }
    default:
      throw new CannotRun(`there is no layout ${layout}`)
  }
}
