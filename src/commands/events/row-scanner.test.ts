import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RowScanner } from './row-scanner.ts'

/** Scans a text in pieces of `size` bytes. @returns the number of whole rows, the last of them, and the rest of the text. */
function scanned(format: 'jsonl' | 'csv', text: string, size: number): [rows: number, last: string, rest: string] {
  const bytes = Buffer.from(text)
  const scanner = new RowScanner(format)
  for (let at = 0; at < bytes.length; at += size) scanner.scan(bytes.subarray(at, at + size))
  const { rowCount, lastStart, lastEnd } = scanner
  return [rowCount, bytes.subarray(lastStart, lastEnd).toString(), bytes.subarray(lastEnd).toString()]
}

describe('the rows of an export', () => {
  for (const size of [1, 2, 3, 7, 1_000]) {
    it(`are found in JSON lines that arrive in chunks of ${size} bytes`, () => {
      assert.deepEqual(scanned('jsonl', '{"a":"„\\n"}\n{"b":2}\n{"c"', size), [2, '{"b":2}\n', '{"c"'])
      assert.deepEqual(scanned('jsonl', '', size), [0, '', ''])
    })

    it(`are found in CSV with line breaks in quotes that arrives in chunks of ${size} bytes`, () => {
      const head = 'cursor,event\r\n'
      const row = '1,"a ""b""\r\n\r\n,"\r\n'
      assert.deepEqual(scanned('csv', `${head}${row}2,"half\r\n`, size), [2, row, '2,"half\r\n'])
      assert.deepEqual(scanned('csv', `${head}${row}2,x`, size), [2, row, '2,x'])
    })
  }
})
