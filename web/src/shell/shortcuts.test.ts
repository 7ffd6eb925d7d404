import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isPlainLetter } from './shortcuts.ts'

it('a shortcut is found on every layout, by the letter where the layout has Latin letters', () => {
  const isK = (key: string, code: string, other = {}) =>
    isPlainLetter({ key, code, shiftKey: false, altKey: false, ...other }, 'k')
  assert.ok(isK('k', 'KeyK'))
  assert.ok(isK('K', 'KeyK'), 'with Caps Lock')
  assert.ok(isK('k', 'KeyV'), 'Dvorak')
  assert.ok(!isK('t', 'KeyK'), 'Dvorak')
  assert.ok(isK('л', 'KeyK'), 'Russian')
  assert.ok(!isK('м', 'KeyV'), 'Russian')
  assert.ok(!isK('k', 'KeyK', { shiftKey: true }) && !isK('k', 'KeyK', { altKey: true }))
})
