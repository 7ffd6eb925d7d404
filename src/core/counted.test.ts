import assert from 'node:assert/strict'
import { it } from 'node:test'
import { counted } from './counted.ts'

it('names one thing in the singular, and none or many in the plural', () => {
  const texts = [counted(0, 'record'), counted(1, 'record'), counted(1_234, 'record')]
  assert.deepEqual(texts, ['0 records', '1 record', '1,234 records'])
  assert.deepEqual([counted(1, 'retry', 'retries'), counted(2, 'retry', 'retries')], ['1 retry', '2 retries'])
})
