import assert from 'node:assert/strict'
import { it } from 'node:test'
import { personUuid } from './person-uuid.ts'

it('a person’s uuid is derived from its project and distinct id', () => {
  assert.equal(personUuid(1, 'u1'), '66545e47-9600-5f24-95fd-044cb5baa8f0')
  assert.equal(personUuid(1, 'user'), '60160341-b11a-5f3e-91e6-49846c4afaa3')
  assert.notEqual(personUuid(2, 'u1'), personUuid(1, 'u1'))
})
