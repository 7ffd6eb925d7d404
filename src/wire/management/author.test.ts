import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeAuthor } from './author.ts'

test('an author has ids like a PostHog user, derived from the author’s key or, without a key, from the label', () => {
  const keyId = '0199a000-0000-7000-8000-000000000001'
  const ofKey = encodeAuthor({ id: keyId, label: 'ci' })!
  assert.deepEqual([ofKey.first_name, ofKey.last_name, ofKey.email], ['ci', '', ''])
  assert.equal(ofKey.uuid, keyId)
  assert.deepEqual(encodeAuthor({ id: keyId, label: 'renamed' }), { ...ofKey, first_name: 'renamed' })

  const ofLabel = encodeAuthor({ id: null, label: 'ci' })!
  assert.match(ofLabel.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(encodeAuthor({ id: null, label: 'ci' }), ofLabel)

  const ids = [ofKey.id, ofLabel.id, encodeAuthor({ id: null, label: 'deploy' })!.id]
  assert.ok(ids.every(id => Number.isInteger(id) && id >= 0 && id < 2 ** 31))
  assert.equal(new Set(ids).size, 3)
  for (const author of [ofKey, ofLabel]) assert.equal(author.distinct_id, author.uuid)
  assert.equal(encodeAuthor(null), null)
})
