import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { noteSentence } from './note-messages.ts'

describe('what the service notes of an import', () => {
  it('is a sentence with its count and its code', () => {
    assert.equal(
      noteSentence({ reason: 'undo_left:property_was_written', count: 1_234 }),
      '1,234 values stay as they are: live data or another import has written the property since (undo_left:property_was_written).',
    )
    assert.match(noteSentence({ reason: 'undo_left:merge_was_built_on', count: 1 }), /^1 merge stays: /)
  })

  it('is a sentence also where publishing counts other rows than were stored', () => {
    const codes = [...readFileSync('src/services/imports/check-rows.ts', 'utf8').matchAll(/'(rows_\w+)'/g)]
    assert.equal(codes.length, 2)
    for (const [, reason] of codes)
      assert.match(noteSentence({ reason: reason!, count: 30 }), /^30 (rows|counts of the rows) .*: .* \(rows_\w+\)\.$/)
  })

  it('is told by its code where there is no sentence for it', () => {
    assert.equal(noteSentence({ reason: 'constructor', count: 2 }), '2 times: constructor.')
  })

  it('is explained in the guide where discarding leaves something', () => {
    const guide = readFileSync('docs/import.md', 'utf8')
    const codes = readFileSync('src/core/processing/imports/undo-publish.ts', 'utf8').match(/undo_left:\w+/g)!
    for (const code of new Set(codes)) assert.ok(guide.includes(`\`${code}\``), `${code} is not in docs/import.md`)
  })
})
