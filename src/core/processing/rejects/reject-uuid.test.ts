import assert from 'node:assert/strict'
import { it } from 'node:test'
import { damagedRecordUuid, rejectUuid } from './reject-uuid.ts'

const at = (stream: string, offset: number) => ({ stream, offset })

it('derives the id of a reject from its place in the log, in every stream', () => {
  assert.equal(rejectUuid(at('main/3', 7), 1), rejectUuid(at('main/3', 7), 1))
  const ids = ['main', 'historical', 'main/3', 'main/4'].flatMap(stream =>
    [7, 8].map(offset => rejectUuid(at(stream, offset), 1)),
  )
  assert.equal(new Set(ids).size, 8)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

it('gives damaged records different ids in each stream of each log', () => {
  const ids = ['one', 'other'].flatMap(logId =>
    ['main', 'historical', 'main/3'].map(stream => damagedRecordUuid(logId, at(stream, 7))),
  )
  assert.equal(new Set(ids).size, 6)
})
