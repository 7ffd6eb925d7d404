import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { generatePersonalKey, generateProjectKey } from './generate-key.ts'

test('a key consists of its prefix and 43 letters and digits', () => {
  assert.match(generateProjectKey(randomBytes), /^phc_[0-9A-Za-z]{43}$/)
  assert.match(generatePersonalKey(randomBytes), /^phx_[0-9A-Za-z]{43}$/)
  assert.notEqual(generateProjectKey(randomBytes), generateProjectKey(randomBytes))
})

test('bytes that would make some characters of a key more likely are discarded', () => {
  const batches = [new Uint8Array(43).fill(248), new Uint8Array(43).fill(247)]
  assert.equal(
    generateProjectKey(() => batches.shift()!),
    `phc_${'z'.repeat(43)}`,
  )
})
