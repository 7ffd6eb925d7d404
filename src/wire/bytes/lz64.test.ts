import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import lzString from 'lz-string'
import { lz64Bomb } from '../../../tests/support/lz64-bomb.ts'
import { decompressLz64 } from './lz64.ts'

const { compressToBase64, decompressFromBase64 } = lzString
const plenty = 10_000_000

function textOf(base64: string, bytesMax = plenty): string | null {
  const result = decompressLz64(Buffer.from(base64, 'latin1'), bytesMax)
  return result.kind === 'text' ? result.text : null
}

describe('decompressLz64', () => {
  it('returns the text that lz-string compressed', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 500 }),
      fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 500 }),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 }).map(units => String.fromCharCode(...units)),
      fc.json({ maxDepth: 4 }),
    )
    fc.assert(
      fc.property(texts, text => assert.equal(textOf(compressToBase64(text)), text)),
      { numRuns: 60 },
    )
  })
  it('reads long texts, whose codes have more bits', () => {
    const texts = ['x'.repeat(100_000), JSON.stringify(Array.from({ length: 3_000 }, (_, n) => ({ n, at: n * 7.5 })))]
    for (const text of texts) assert.equal(textOf(compressToBase64(text)), text)
  })
  it('accepts missing padding, and the spaces that result from plus signs in forms', () => {
    const texts = Array.from({ length: 100 }, (_, n) => `${n} signs up, ${n ** 5} € > ${n ** 7}?`)
    const compressed = texts.map(text => compressToBase64(text))
    assert.ok(compressed.some(base64 => base64.includes('+')) && compressed.some(base64 => base64.endsWith('=')))
    for (const [index, base64] of compressed.entries())
      assert.equal(textOf(base64.replaceAll('+', ' ').replaceAll('=', '')), texts[index])
  })
  it('returns for any base64 text the same as lz-string, or nothing', () => {
    const alphabet = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
    fc.assert(
      fc.property(fc.string({ unit: alphabet, minLength: 1, maxLength: 60 }), base64 => {
        const text = textOf(base64)
        if (text !== null) assert.equal(text, decompressFromBase64(base64) ?? '')
      }),
      { numRuns: 1_000 },
    )
  })
  it('reports a text that ends early or is not base64 as damaged', () => {
    const base64 = compressToBase64('{"event":"e"}')
    for (const broken of ['', '====', base64.slice(0, 8), `${base64.slice(0, 4)}%${base64.slice(5)}`, '{"event":"e"}'])
      assert.deepEqual(decompressLz64(Buffer.from(broken), plenty), { kind: 'broken' }, broken)
  })
  it('stops at the limit without decompressing the whole of a small input', () => {
    const bomb = Buffer.from(lz64Bomb(50_000_000))
    assert.ok(bomb.length < 25_000)
    const before = process.memoryUsage().arrayBuffers
    assert.deepEqual(decompressLz64(bomb, 1_000_000), { kind: 'too_large' })
    assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 1024 * 1024)
    for (const [text, bytes] of [
      ['xyz', 3],
      ['€', 3],
      ['\u{1f600}', 4],
    ] as const) {
      assert.equal(textOf(compressToBase64(text), bytes), text)
      assert.equal(textOf(compressToBase64(text), bytes - 1), null)
    }
  })
})
