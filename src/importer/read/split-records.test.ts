import assert from 'node:assert/strict'
import { it } from 'node:test'
import { cutInto } from '../../../tests/support/reading.ts'
import { splitRecords } from './split-records.ts'

it('a record that is too long is truncated, and the next one is read as usual', async () => {
  const text = Buffer.from(`${'x'.repeat(200_000)}\n{}\n`)
  const records = await Array.fromAsync(splitRecords(cutInto(text, 3_000), 'json', 150_000))
  assert.deepEqual(
    records.map(({ bytes, cutLength, line, byte }) => [bytes.length, cutLength, line, byte]),
    [
      [65_536, 200_001, 1, 0],
      [3, null, 2, 200_001],
    ],
  )
})
