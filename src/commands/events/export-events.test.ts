import assert from 'node:assert/strict'
import { it } from 'node:test'
import { describeUnfinishedExport } from './export-events.ts'

it('an interrupted export says how many rows were written, and whether the file was closed properly', () => {
  assert.equal(describeUnfinishedExport(1_200, 'all.jsonl.part', null), '1,200 rows are in all.jsonl.part.')
  assert.equal(
    describeUnfinishedExport(3, 'all.jsonl.part', new Error('EIO: i/o error, close')),
    '3 rows are in all.jsonl.part, or fewer: the file could not be closed (EIO: i/o error, close).',
  )
})
