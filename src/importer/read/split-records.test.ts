import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { splitCsvRow } from '#core/csv.ts'
import { cutInto } from '../../../tests/support/reading.ts'
import { splitRecords } from './split-records.ts'

async function split(text: string, format: 'json' | 'csv', cuts: readonly number[] = [], bytesMax?: number) {
  const records = await Array.fromAsync(splitRecords(cutInto(Buffer.from(text), cuts), format, bytesMax))
  return records.map(({ bytes, ...place }) => ({ text: Buffer.from(bytes).toString(), ...place }))
}

/** Text, line and byte of each record. */
async function placesIn(text: string, format: 'json' | 'csv', ...cuts: readonly number[]) {
  return (await split(text, format, cuts)).map(({ text, line, byte, ending }) => {
    assert.equal(ending, 'complete')
    return `${line}:${byte} ${text}`
  })
}

describe('the records of a file', () => {
  it('are its lines, each with its position', async () => {
    const lines = ['1:0 {"a":1}\r\n', '2:9 \n', '3:10 {"b":2}\n']
    assert.deepEqual(await placesIn('{"a":1}\r\n\n{"b":2}\n', 'json', 13), lines)
  })

  it('are rows of CSV, whose quoted cells may have line breaks', async () => {
    const rows = ['1:0 a,b\n', '2:4 "x\ny",1\n', '4:12 "q""\n",2\n', '6:21 5" z,3\n']
    assert.deepEqual(await placesIn('a,b\n"x\ny",1\n"q""\n",2\n5" z,3\n', 'csv', 11), rows)
  })

  it('may end with one without a line end, or whose quote is never closed', async () => {
    const endings = async (text: string, format: 'json' | 'csv') =>
      (await split(text, format)).map(({ ending }) => ending)
    assert.deepEqual(await endings('{}\n{}', 'json'), ['complete', 'unended'])
    assert.deepEqual(await endings('a\nb', 'csv'), ['complete', 'unended'])
    assert.deepEqual(await endings('a\n"b\nc\n', 'csv'), ['complete', 'unclosed'])
    assert.deepEqual(await endings('', 'json'), [])
  })

  it('are cut when they are too long, and the next one is read as usual', async () => {
    const long = 'x'.repeat(200_000)
    const cuts = Array.from({ length: 67 }, (_, index) => index * 3_000)
    const records = await split(`${long}\n{}\n`, 'json', cuts, 150_000)
    assert.deepEqual(
      records.map(({ text, cutLength, line, byte }) => [text.length, cutLength, line, byte]),
      [
        [65_536, 200_001, 1, 0],
        [3, null, 2, 200_001],
      ],
    )
  })

  it('are the same for any chunking', async () => {
    const texts = fc.array(fc.constantFrom('a', '"', ',', '\n', '\r\n', 'é')).map(pieces => pieces.join(''))
    const formats = fc.constantFrom('json' as const, 'csv' as const)
    await fc.assert(
      fc.asyncProperty(texts, fc.array(fc.nat(50)), formats, async (text, cuts, format) => {
        assert.deepEqual(await split(text, format, cuts), await split(text, format))
      }),
    )
  })

  it('end after their last cell', async () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ') })
    const row = fc.tuple(cell, cell)
    await fc.assert(
      fc.asyncProperty(fc.array(row), async rows => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
        const text = rows.map(cells => `${cells.map(quoted).join(',')}\r\n`).join('')
        assert.deepEqual(
          (await split(text, 'csv')).map(record => splitCsvRow(record.text)),
          rows,
        )
      }),
    )
  })
})
