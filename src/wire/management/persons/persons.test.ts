import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PropertyBag } from '#core/json.ts'
import { encodePerson } from './persons.ts'

const uuid = '11111111-1111-5111-8111-111111111111'

function nameAndIds(properties: PropertyBag, ids: readonly string[]): [string, string[]] {
  const json = encodePerson({
    projectId: 1,
    uuid,
    propertiesJson: JSON.stringify(properties),
    createdAtMs: 0,
    isIdentified: false,
    version: 0,
    lastSeenAtMs: 0,
    id: 1,
    distinctIds: ids.map(distinctId => ({ projectId: 1, distinctId, personUuid: uuid, version: 0 })),
    distinctIdCount: ids.length,
    flagOverrides: [],
  })
  const { name, distinct_ids } = JSON.parse(json)
  return [name, distinct_ids]
}

describe('a person’s name', () => {
  it('is the first name property that has a value', () => {
    assert.equal(nameAndIds({ username: 'al', name: 'Ada', email: 'ada@example.com' }, ['ada'])[0], 'ada@example.com')
    assert.equal(nameAndIds({ username: 'al', Name: 'Ada', $email: '' }, ['ada'])[0], 'Ada')
    assert.equal(nameAndIds({ name: 7, email: null, nickname: 'x' }, ['ada'])[0], 'ada')
  })

  it('is otherwise the first distinct id, and ids that no SDK generated are preferred', () => {
    const ofUuid = '0190b7a5-6b2e-7c3d-9f10-2a4c6e8f0b1d'
    const ofOldBrowser = '17c2e5a1b2c3d4-0e1f2a3b4c5d6e-1c3c645d-1fa400-17c2e5a1b2d8f6'
    for (const made of [ofUuid, ofUuid.toUpperCase(), ofOldBrowser]) {
      assert.deepEqual(nameAndIds({}, [made, 'b', 'a']), ['b', ['b', 'a', made]])
      assert.deepEqual(nameAndIds({}, [made]), [made, [made]])
    }
    assert.deepEqual(nameAndIds({}, ['a-b', '1-2-3-4', ofUuid])[1], ['a-b', '1-2-3-4', ofUuid])
    assert.equal(nameAndIds({}, [])[0], uuid)
  })
})
