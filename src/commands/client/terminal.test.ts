import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readTerminalWidth } from './terminal.ts'

describe('readTerminalWidth', () => {
  const cases: [isTTY: boolean, columns: number, width: number | null][] = [
    [true, 80, 80],
    [false, 80, null],
    // As under `script` and `docker exec -t`, where all lines were cut to nothing.
    [true, 0, null],
  ]
  for (const [isTTY, columns, width] of cases)
    it(`is ${width} for ${columns} columns of ${isTTY ? 'a terminal' : 'a file'}`, () => {
      assert.equal(readTerminalWidth({ isTTY, columns }), width)
    })
})
