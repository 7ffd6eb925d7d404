import assert from 'node:assert/strict'
import { it } from 'node:test'
import { plainTerminal } from '#commands/client/terminal.ts'
import { diffLines } from './rehearse-in-project.ts'

it('the comparison with a rehearsal project escapes control characters in names', () => {
  const odd = 'a\u001b[31m\u009b2J'
  const row = { event: odd, sent: 2, rehearsal: null, target: null }
  const diff = { rows: [row], missing: [odd], newInTarget: [odd] }
  const text = diffLines(diff, 'history', plainTerminal).join('')
  assert.doesNotMatch(text, /\p{Cc}/u)
  assert.equal(text.split('a\\u001b[31m\\u009b2J').length, 4)
})
