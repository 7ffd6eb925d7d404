import assert from 'node:assert/strict'
import { it } from 'node:test'
import { personUuid, rejectUuid } from './person-uuid.ts'

it('names persons by project and distinct id', () => {
  assert.equal(personUuid(1, 'u1'), '66545e47-9600-5f24-95fd-044cb5baa8f0')
  assert.equal(personUuid(1, 'user'), '60160341-b11a-5f3e-91e6-49846c4afaa3')
  assert.notEqual(personUuid(2, 'u1'), personUuid(1, 'u1'))
})

it('names rejects by their place in the log', () => {
  assert.equal(rejectUuid('main', 7, 1), rejectUuid('main', 7, 1))
  assert.equal(new Set([rejectUuid('main', 7, 1), rejectUuid('main', 8, 1), rejectUuid('historical', 7, 1)]).size, 3)
  assert.match(rejectUuid('main', 7, 1), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})
