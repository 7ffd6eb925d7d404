import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { splitCsvRow } from '#core/csv.ts'
import { splitRecords } from './split-records.ts'

async function split(chunks: readonly (string | Buffer)[], format: 'json' | 'csv', bytesMax?: number) {
  const records = await Array.fromAsync(
    splitRecords(
      (async function* () {
        yield* chunks.map(chunk => Buffer.from(chunk))
      })(),
      format,
      bytesMax,
    ),
  )
  return records.map(({ bytes, ...place }) => ({ text: Buffer.from(bytes).toString(), ...place }))
}
const whole = { ending: 'complete', cutLength: null } as const

describe('the records of a file', () => {
  it('are its lines, each with its position', async () => {
    assert.deepEqual(await split(['{"a":1}\r\n\n{"b', '":2}\n'], 'json'), [
      { text: '{"a":1}\r\n', line: 1, byte: 0, ...whole },
      { text: '\n', line: 2, byte: 9, ...whole },
      { text: '{"b":2}\n', line: 3, byte: 10, ...whole },
    ])
  })

  it('are rows of CSV, whose quoted cells may have line breaks', async () => {
    assert.deepEqual(await split(['a,b\n"x\ny",1', '\n"q""\n",2\n5" z,3\n'], 'csv'), [
      { text: 'a,b\n', line: 1, byte: 0, ...whole },
      { text: '"x\ny",1\n', line: 2, byte: 4, ...whole },
      { text: '"q""\n",2\n', line: 4, byte: 12, ...whole },
      { text: '5" z,3\n', line: 6, byte: 21, ...whole },
    ])
  })

  it('may end with one without a line end, or whose quote is never closed', async () => {
    const endings = async (text: string, format: 'json' | 'csv') =>
      (await split([text], format)).map(({ ending }) => ending)
    assert.deepEqual(await endings('{}\n{}', 'json'), ['complete', 'unended'])
    assert.deepEqual(await endings('a\nb', 'csv'), ['complete', 'unended'])
    assert.deepEqual(await endings('a\n"b\nc\n', 'csv'), ['complete', 'unclosed'])
    assert.deepEqual(await endings('', 'json'), [])
  })

  it('are cut when they are too long, and the next one is read as usual', async () => {
    const long = 'x'.repeat(200_000)
    const records = await split([...long.match(/.{1,3000}/g)!, '\n', '{}\n'], 'json', 150_000)
    assert.deepEqual(
      records.map(({ text, cutLength, line, byte }) => [text.length, cutLength, line, byte]),
      [
        [65_536, 200_001, 1, 0],
        [3, null, 2, 200_001],
      ],
    )
  })

  it('are the same for any chunking', async () => {
    const piece = fc.constantFrom('a', '"', ',', '\n', '\r\n', 'é')
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece),
        fc.array(fc.nat(50)),
        fc.constantFrom('json', 'csv'),
        async (text, cuts, format) => {
          const bytes = Buffer.from(text.join(''))
          const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
          const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
          assert.deepEqual(
            await split(chunks, format as 'json' | 'csv'),
            await split([bytes], format as 'json' | 'csv'),
          )
        },
      ),
    )
  })

  it('end after their last cell', async () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ') })
    const row = fc.tuple(cell, cell)
    await fc.assert(
      fc.asyncProperty(fc.array(row), async rows => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
        const text = rows.map(cells => `${cells.map(quoted).join(',')}\r\n`).join('')
        const found = await split([text], 'csv')
        assert.deepEqual(
          found.map(record => splitCsvRow(record.text)),
          rows,
        )
      }),
    )
  })
})
