import assert from 'node:assert/strict'
import { it } from 'node:test'
import { nothingFound } from './checked-load.ts'
import { jumpClock } from './clock-jumps.ts'

it('keeps events, days of usage, uuids and positions right while the clock of the host is set to and fro', async () => {
  assert.deepEqual(await jumpClock(1), nothingFound)
})
