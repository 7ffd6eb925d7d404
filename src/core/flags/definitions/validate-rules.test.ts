import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { experiment, personPredicate, release, rulesDocument } from '../../../../tests/support/flag-documents.ts'
import type { JsonObject } from '../../json.ts'
import { metadataBytesMax, validateRules } from './validate-rules.ts'

const pathsOf = (document: JsonObject, stored: JsonObject | null = null) =>
  validateRules(document, stored).map(({ path }) => path)
const withPatterns = (...patterns: string[]) =>
  rulesDocument('boolean', null, [
    release(true, ...patterns.map(pattern => personPredicate('email', 'regex', pattern))),
  ])
const pattern = (index: number) => `filters.rules.0.targeting.properties.${index}.value`

describe('a document of version 2 that is written', () => {
  it('has to be readable', () => {
    assert.deepEqual(pathsOf(rulesDocument('boolean', 'yes', [release('no')])), ['filters.default_value'])
  })

  it('keeps the type of its values', () => {
    const texts = rulesDocument('string', 'a', [])
    assert.deepEqual(pathsOf(texts, rulesDocument('boolean', null, [])), ['filters.return_type'])
    assert.deepEqual(pathsOf(texts, texts), [])
  })

  it('has no text that stands for a boolean', () => {
    const rules = [release('$true'), experiment(['a', '$false']), release('true')]
    assert.deepEqual(pathsOf(rulesDocument('string', '$false', rules)), [
      'filters.default_value',
      'filters.rules.0.value',
      'filters.rules.1.variants.1.value',
    ])
  })

  it('has no pattern outside the dialect, unless the stored one has it already', () => {
    const stored = withPatterns('(?=a)')
    assert.deepEqual(pathsOf(stored), [pattern(0)])
    assert.deepEqual(pathsOf(withPatterns('(?=a)', '^b', '(?<=c)'), stored), [pattern(2)])
  })

  it('has patterns within the bounds of a flag together', () => {
    const long = (letter: string) => letter.repeat(999)
    const patterns = ['a', 'b', 'c', 'd', 'e', 'f'].map(long)
    assert.deepEqual(pathsOf(withPatterns(...patterns)), [pattern(5)])
  })

  it('has no more than 16 KiB of metadata in a rule', () => {
    const of = (bytes: number) =>
      rulesDocument('boolean', null, [{ ...release(true), metadata: { a: 'x'.repeat(bytes - '{"a":""}'.length) } }])
    assert.deepEqual(pathsOf(of(metadataBytesMax)), [])
    assert.deepEqual(pathsOf(of(metadataBytesMax + 1)), ['filters.rules.0.metadata'])
  })
})
