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

describe('writing rules (a version 2 document)', () => {
  it('requires that the rules can be read', () => {
    assert.deepEqual(pathsOf(rulesDocument('boolean', 'yes', [release('no')])), ['filters.default_value'])
  })

  it('refuses a value type that differs from the stored one', () => {
    const texts = rulesDocument('string', 'a', [])
    assert.deepEqual(pathsOf(texts, rulesDocument('boolean', null, [])), ['filters.return_type'])
    assert.deepEqual(pathsOf(texts, texts), [])
  })

  it('refuses texts that are reserved for booleans', () => {
    const rules = [release('$true'), experiment(['a', '$false']), release('true')]
    assert.deepEqual(pathsOf(rulesDocument('string', '$false', rules)), [
      'filters.default_value',
      'filters.rules.0.value',
      'filters.rules.1.variants.1.value',
    ])
  })

  it('refuses a pattern outside the supported syntax, unless the stored document already contains it', () => {
    const stored = withPatterns('(?=a)')
    assert.deepEqual(pathsOf(stored), [pattern(0)])
    assert.deepEqual(pathsOf(withPatterns('(?=a)', '^b', '(?<=c)'), stored), [pattern(2)])
  })

  it('refuses patterns that together exceed the limits of a flag', () => {
    const long = (letter: string) => letter.repeat(999)
    const patterns = ['a', 'b', 'c', 'd', 'e', 'f'].map(long)
    assert.deepEqual(pathsOf(withPatterns(...patterns)), [pattern(5)])
  })

  it('refuses more than 16 KiB of metadata in a rule', () => {
    const of = (bytes: number) =>
      rulesDocument('boolean', null, [{ ...release(true), metadata: { a: 'x'.repeat(bytes - '{"a":""}'.length) } }])
    assert.deepEqual(pathsOf(of(metadataBytesMax)), [])
    assert.deepEqual(pathsOf(of(metadataBytesMax + 1)), ['filters.rules.0.metadata'])
  })
})
