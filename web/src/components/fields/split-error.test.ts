import assert from 'node:assert/strict'
import { it } from 'node:test'
import { splitError } from './split-error.ts'

it('an error is shown once: at its field if the form has it, for the whole form otherwise', () => {
  const taken = Object.assign(new Error('Taken.'), { attr: 'email' })
  assert.deepEqual(splitError(taken, ['name', 'email']), { errors: { email: 'Taken.' }, rest: null })
  for (const error of [taken, new Error('No.'), null])
    assert.deepEqual(splitError(error, ['name']), { errors: {}, rest: error })
})
