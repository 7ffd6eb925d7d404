import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TableLines } from './tool-texts.ts'

describe('a line of a table for tools', () => {
  it('is well-formed even if a cell is truncated between the halves of a character', () => {
    const cell = JSON.stringify([`${'a'.repeat(497)}😀`, 'b'.repeat(100)])
    const line = new TableLines({ truncatesValues: true }).lineOf(JSON.stringify([cell]))
    assert.equal(line, `["${'a'.repeat(497)}\ufffd...truncated`)
  })
})
