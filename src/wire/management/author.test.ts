import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeAuthor } from './author.ts'

test('an author has the ids of a PostHog user, the same for the same label', () => {
  const author = encodeAuthor('ci')!
  assert.deepEqual(encodeAuthor('ci'), author)
  assert.deepEqual([author.first_name, author.last_name, author.email], ['ci', '', ''])
  assert.match(author.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(author.distinct_id, author.uuid)
  assert.ok(Number.isInteger(author.id) && author.id >= 0 && author.id < 2 ** 31)
  assert.notEqual(encodeAuthor('deploy')!.id, author.id)
  assert.equal(encodeAuthor(null), null)
})
