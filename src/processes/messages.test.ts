import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { processingStates } from './messages.ts'

it('the table of processing states for operators has a row for each state and no other', () => {
  const page = readFileSync(new URL('../../docs/operating/monitoring.md', import.meta.url), 'utf8')
  const rows = page.slice(page.indexOf('| `processing` |')).split('\n\n', 1)[0]!
  const named = Array.from(rows.matchAll(/^\|[^|]*\| `(\w+)` \|/gm), ([, state]) => state)
  assert.deepEqual(named.toSorted(), processingStates.toSorted())
})
