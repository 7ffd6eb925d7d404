import assert from 'node:assert/strict'
import { join, normalize } from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fileNameOf } from './object-parts.ts'

describe('the file of an object', () => {
  it('is called as its key where that is plain', () => {
    assert.equal(fileNameOf('logs/2024-05-01/part_1.json.gz'), 'logs/2024-05-01/part_1.json.gz')
    assert.equal(fileNameOf('a b/ü#1.gz'), 'a%20b/%C3%BC%231.gz')
    assert.equal(fileNameOf('x.json.part'), 'x.json%2Epart')
  })

  it('stays below its folder, and is another for every other key', () => {
    const names = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.constantFrom('.', '..', '', 'a', '%2E', '...'),
    )
    const keys = fc.array(names, { minLength: 1, maxLength: 5 }).map(parts => parts.join('/').toWellFormed())
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        const [first, second] = [fileNameOf(a), fileNameOf(b)]
        assert.equal(normalize(join('/raw', first)), `/raw/${first}`)
        assert.ok(first.split('/').every(name => name !== '' && name.length <= 255 && !name.endsWith('.part')))
        assert.equal(first === second, a === b)
      }),
    )
  })
})
