import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'

// Merging two changes may bring a line back or put it outside its group.
it('the changelog has each line once, below a heading', () => {
  const [, unreleased = ''] = readFileSync('CHANGELOG.md', 'utf8').split(/^## Unreleased\n/m)
  const [ungrouped = '', ...groups] = unreleased.split(/^### /m)
  assert.equal(ungrouped.trim(), '')
  const names = groups.map(group => group.slice(0, group.indexOf('\n')))
  assert.deepEqual(names, [...new Set(names)])
  const lines = groups.flatMap(group => group.split('\n').slice(1)).filter(line => line !== '')
  assert.deepEqual(
    lines.filter((line, index) => !line.startsWith('- ') || lines.indexOf(line) !== index),
    [],
  )
})
