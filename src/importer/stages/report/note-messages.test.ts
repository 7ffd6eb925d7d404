import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { formatNote } from './note-messages.ts'

describe('a note of the service about an import', () => {
  it('is a sentence with its count and its code', () => {
    assert.equal(
      formatNote({ reason: 'undo_left:history_is_incomplete', count: 1_234 }),
      '1,234 changes not undone: the stored events do not explain what is there (undo_left:history_is_incomplete).',
    )
    assert.match(
      formatNote({ reason: 'undo_left:group_type_is_used', count: 1 }),
      /^1 created group type not removed: /,
    )
  })

  it('is a sentence for every code about rows that are missing when the import is published', () => {
    const codes = [...readFileSync('src/services/imports/add-missing-rows-note.ts', 'utf8').matchAll(/'(rows_\w+)'/g)]
    assert.equal(codes.length, 2)
    for (const [, reason] of codes)
      assert.match(formatNote({ reason: reason!, count: 30 }), /^30 (rows|row counts) missing: .* \(rows_\w+\)\.$/)
  })

  it('is shown as its code if there is no sentence for it', () => {
    assert.equal(formatNote({ reason: 'constructor', count: 2 }), '2 times: constructor.')
  })

  it('is explained in the guide if it is about data that discarding the import does not remove', () => {
    const guide = readFileSync('docs/import.md', 'utf8')
    const codes = readFileSync('src/core/imports/import-changes.ts', 'utf8').match(/undo_left:\w+/g)!
    assert.equal(codes.length, 3)
    for (const code of codes) assert.ok(guide.includes(`\`${code}\``), `${code} is not in docs/import.md`)
  })
})
