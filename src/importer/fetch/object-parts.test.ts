import assert from 'node:assert/strict'
import { join, normalize } from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ObjectSource } from '#ports/object-source.ts'
import { createPartTools } from '../../../tests/support/fetching.ts'
import { BrokenAnswer } from './fetch-faults.ts'
import { createObjectFetchSource, toFileName } from './object-parts.ts'

describe('the file of an object', () => {
  it('has the name of its key, with special characters percent-encoded', () => {
    assert.equal(toFileName('logs/2024-05-01/part_1.json.gz'), 'logs/2024-05-01/part_1.json.gz')
    assert.equal(toFileName('a b/ü#1.gz'), 'a%20b/%C3%BC%231.gz')
    assert.equal(toFileName('x.json.part'), 'x.json%2Epart')
  })

  it('is inside the target folder, and differs for every key', () => {
    const names = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.constantFrom('.', '..', '', 'a', '%2E', '...'),
    )
    const keys = fc.array(names, { minLength: 1, maxLength: 5 }).map(parts => parts.join('/').toWellFormed())
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        const [first, second] = [toFileName(a), toFileName(b)]
        assert.equal(normalize(join('/raw', first)), `/raw/${first}`)
        assert.ok(first.split('/').every(name => name !== '' && name.length <= 255 && !name.endsWith('.part')))
        assert.equal(first === second, a === b)
      }),
    )
  })
})

it('a download of an object stops before writing more bytes than listed, however many more would come', async t => {
  const { tools, seen } = createPartTools(t)
  let sent = 0
  async function* withoutEnd() {
    for (; sent < 1_000; sent++) yield Buffer.alloc(1_024)
  }
  const source: ObjectSource = {
    list: async function* () {},
    open: async () => ({ startsAt: 0, bytes: withoutEnd() }),
    close: () => undefined,
  }
  const part = { id: 'a.json', asks: { key: 'a.json', version: '1', bytes: 10 }, bytes: 10 }
  const fetched = createObjectFetchSource(source).fetchPart(part, tools)
  await assert.rejects(fetched, new BrokenAnswer('a.json has more bytes than the 10 of its list'))
  assert.deepEqual([sent, seen.written(), seen.saved], [0, 0, 0])
})
