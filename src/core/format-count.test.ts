import assert from 'node:assert/strict'
import { it } from 'node:test'
import { formatCount } from './format-count.ts'

it('a formatted count uses the singular for one thing, and the plural for none or several', () => {
  const texts = [formatCount(0, 'record'), formatCount(1, 'record'), formatCount(1_234, 'record')]
  assert.deepEqual(texts, ['0 records', '1 record', '1,234 records'])
  assert.deepEqual([formatCount(1, 'retry', 'retries'), formatCount(2, 'retry', 'retries')], ['1 retry', '2 retries'])
})
