import assert from 'node:assert/strict'
import { it } from 'node:test'
import { damagedRecordUuid, rejectUuid } from './reject-uuid.ts'

const at = (stream: string, offset: number) => ({ stream, offset })

it('names rejects by their place in the log, whatever the stream', () => {
  assert.equal(rejectUuid(at('main/3', 7), 'main', 1), rejectUuid(at('main/3', 7), 'main', 1))
  const ids = ['main', 'historical', 'main/3', 'main/4'].flatMap(stream =>
    [7, 8].map(offset => rejectUuid(at(stream, offset), stream === 'historical' ? 'historical' : 'main', 1)),
  )
  assert.equal(new Set(ids).size, 8)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

it('gives rejects of the streams main and historical the ids that they have always had', () => {
  // What is processed again after an upgrade has to replace its own rejects.
  assert.equal(rejectUuid(at('main', 7), 'main', 1_790_000_000_000), '4752c52c-a0a0-50cc-8dc7-440495121121')
  assert.equal(rejectUuid(at('main', 7), 'ai', 1_790_000_000_000), '88953bef-f915-5c9a-a3c2-c0db7d742f65')
  assert.equal(rejectUuid(at('historical', 7), 'historical', 1_790_000_000_000), '02bc59eb-bc65-5520-a05d-01c81762724c')
})

it('names damaged records apart in each stream of each log', () => {
  const ids = ['one', 'other'].flatMap(logId =>
    ['main', 'historical', 'main/3'].map(stream => damagedRecordUuid(logId, at(stream, 7))),
  )
  assert.equal(new Set(ids).size, 6)
})
