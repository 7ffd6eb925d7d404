import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, parseJson } from '../../json.ts'
import { normalizeFilters } from './normalize-filters.ts'

function normalized(filters: string, rolloutPercentage?: number): string {
  return JSON.stringify(normalizeFilters(parseJson(filters) as JsonObject, rolloutPercentage))
}

test('a definition from before groups existed becomes one condition set with the flag’s own percentage', () => {
  assert.equal(normalized('{}', 30), '{"groups":[{"properties":[],"rollout_percentage":30}]}')
  assert.equal(normalized('{}'), '{"groups":[{"properties":[]}]}')
  assert.equal(
    normalized(
      '{"properties":[{"key":"a","value":1.0},{"key":"b","type":"cohort","value":2}],"payloads":{"true":"1"}}',
    ),
    '{"groups":[{"properties":[{"key":"a","value":1.0,"type":"person"},{"key":"b","type":"cohort","value":2}]}],"payloads":{"true":"1"}}',
  )
})

test('groups, including empty ones, stay unchanged', () => {
  assert.equal(normalized('{"groups":[]}', 30), '{"groups":[]}')
  assert.equal(normalized('{"groups":[{"properties":[{"key":"a"}]}]}'), '{"groups":[{"properties":[{"key":"a"}]}]}')
})

test('a document of another version stays unchanged', () => {
  for (const text of ['{"version":2,"rules":[]}', '{"version":3,"properties":[]}', '{"version":null}'])
    assert.equal(normalized(text, 30), text)
})

test('__proto__ stays an ordinary key', () => {
  const text = '{"__proto__":{"groups":[]},"properties":[{"__proto__":{"type":"x"},"key":"a"}]}'
  assert.equal(
    normalized(text),
    '{"groups":[{"properties":[{"__proto__":{"type":"x"},"key":"a","type":"person"}]}],"__proto__":{"groups":[]}}',
  )
})
