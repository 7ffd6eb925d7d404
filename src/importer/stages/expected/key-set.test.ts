import assert from 'node:assert/strict'
import { it } from 'node:test'
import { KeySet } from './key-set.ts'

it('a key set distinguishes new keys from known ones, also after it has grown', () => {
  const keys = new KeySet()
  for (let round = 0; round < 2; round++)
    for (let key = 0; key < 20_000; key++) assert.equal(keys.add(`key ${key}`), round === 0)
  assert.equal(keys.size, 20_000)
})
