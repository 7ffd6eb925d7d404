import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { it } from 'node:test'
import { seededRandom } from '../../../../tests/support/seeded-random.ts'
import { bufferAnswerRows } from './buffered-rows.ts'

const blockBytes = 1024 * 1024
const texts = ['', 'plain', '日本', '👩‍👩‍👧', '\ud800', '\r\n\u2028\0', '"\\', '\ufeff']

/** The bytes in random pieces, each allocated separately, as from a socket; some are empty. */
function* inPieces(bytes: Buffer, random: () => number): Generator<Buffer> {
  for (let from = 0; from < bytes.length; ) {
    const length = Math.floor(random() ** 4 * 200_000)
    yield Buffer.from(new Uint8Array(bytes.subarray(from, from + length)).buffer)
    from += length
  }
}

it('a buffered answer contains every row once and in order, however its bytes are split and wherever blocks end', async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = seededRandom(seed)
    const rows = Array.from({ length: 60 }, (_, index) => {
      const length = random() < 0.05 ? 2.5 * blockBytes : random() ** 3 * 60_000
      return [index, texts[index % texts.length]!.repeat(3), 'é'.repeat(length / 2)]
    })
    // A row of the length that ends the first block with it, or a byte before or behind.
    const first = `[-1,"${'x'.repeat(blockBytes - 9 + (seed % 4))}"]\n`
    const bytes = Buffer.from(first + rows.map(row => `${JSON.stringify(row)}\n`).join(''))
    const pieces = [...inPieces(bytes, random)]
    const stream = Readable.from(pieces, { objectMode: true })
    const held = await bufferAnswerRows({ stream, query_id: '', response_headers: {} }, json => json)
    assert.ok(pieces.every(piece => piece.length === 0))
    assert.equal(held.rowCount, rows.length + 1)
    const found = [...held.batches()].flatMap(batch => [...batch])
    assert.deepEqual(found, [JSON.parse(first), ...rows], `seed ${seed}`)
  }
})
